"""What a run says when something that must never be true is."""


class Violation(Exception):
    """An invariant does not hold.

    `invariant` is its name, the class that stays fixed while a failure is made smaller; `words` are
    what to look for in the trace.
    """

    def __init__(self, invariant: str, sentence: str, words: tuple[str, ...] = ()) -> None:
        super().__init__(invariant, sentence, words)
        self.invariant, self.sentence, self.words = invariant, sentence, words

    def __str__(self) -> str:
        return f"{self.invariant}: {self.sentence}"
