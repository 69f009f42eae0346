"""Every text that a user of the benchmarks may see when something goes wrong."""

from __future__ import annotations


class BenchmarkError(Exception):
    """Base of the errors of this package."""


class WrongResult(BenchmarkError):
    """A workload ended with another value than plain Python gives."""

    def __init__(self, what: str, got: object, expected: object) -> None:
        super().__init__(what, got, expected)
        self.what, self.got, self.expected = what, got, expected

    def __str__(self) -> str:
        return (
            f"wrong result of {self.what}: got {self.got!r:.80}, plain Python gives "
            f"{self.expected!r:.80}; its times mean nothing until that is mended"
        )


class UnknownWorkload(BenchmarkError):
    """`--only` names a workload that does not exist."""

    def __init__(self, pattern: str, names: tuple[str, ...]) -> None:
        super().__init__(pattern, names)
        self.pattern, self.names = pattern, names

    def __str__(self) -> str:
        return f"no workload is called {self.pattern!r}; there are: {', '.join(self.names)}"


class OracleNotInstalled(BenchmarkError):
    """The environment with the released `distributed` could not be made."""

    def __init__(self, folder: str, step: str, output: str) -> None:
        super().__init__(folder, step, output)
        self.folder, self.step, self.output = folder, step, output

    def __str__(self) -> str:
        return (
            f"cannot make the environment {self.folder} for the released distributed: "
            f"{self.step} failed.\n{self.output.strip()}\n"
            "Give an interpreter that has distributed, numpy, pandas and joblib with "
            "--oracle PYTHON, or leave that side out with --no-oracle."
        )


class SideNotUsable(BenchmarkError):
    """An interpreter lacks the module that it is to be measured with."""

    def __init__(self, python: str, module: str, output: str) -> None:
        super().__init__(python, module, output)
        self.python, self.module, self.output = python, module, output

    def __str__(self) -> str:
        lines = self.output.strip().splitlines() or ["it said nothing"]
        return (
            f"{python_name(self.python)} cannot import {self.module} and psutil: {lines[-1]}. "
            "Install them there, or name another interpreter (--oracle, --shoal)."
        )


class ClusterNotComplete(BenchmarkError):
    """The cluster came up with another number of workers than asked for."""

    def __init__(self, nworkers: int, expected: int) -> None:
        super().__init__(nworkers, expected)
        self.nworkers, self.expected = nworkers, expected

    def __str__(self) -> str:
        return (
            f"the cluster has {self.nworkers} workers where {self.expected} were asked for; "
            "look at the standard error of the run for the reason"
        )


class BudgetsNotValid(BenchmarkError):
    """`budgets.toml` says something that cannot be meant, or loosens a budget."""

    def __init__(self, budget: str, reason: str) -> None:
        super().__init__(budget, reason)
        self.budget, self.reason = budget, reason

    def __str__(self) -> str:
        return f"budgets.toml, {self.budget!r}: {self.reason}"


def python_name(python: str) -> str:
    """`python` as the errors show it."""
    return python or "the running interpreter"
