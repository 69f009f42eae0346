"""What is said about a setting that can't be used."""


class SettingError(ValueError):
    """A setting has a value that can't be used, or a name that doesn't exist."""

    def __init__(self, name: str, problem: str, advice: str) -> None:
        super().__init__(name, problem, advice)  # args, so that it survives pickle
        self.name, self.problem, self.advice = name, problem, advice

    def __str__(self) -> str:
        return f"The setting {self.name} can't be used: {self.problem}. {self.advice}"
