"""What code beside the scheduler may get wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ShoalError
from shoal.units import format_seconds


class MeasureUnknown(ShoalError, ValueError):
    """Workers can't be compared by what was named."""

    def __init__(self, measure: object, known: Sequence[str]) -> None:
        super().__init__(measure, known)
        self.measure, self.known = measure, list(known)

    def __str__(self) -> str:
        return (
            f"There is no measure {self.measure!r} of a worker's memory, to choose by who gets a "
            f"copy of a result or drops one. Those that exist: {', '.join(self.known)}."
        )


class NobodyScales(ShoalError, RuntimeError):
    """A client wants a cluster to adapt, and there is only a scheduler."""

    def __init__(self, address: str) -> None:
        """`address`: the scheduler's."""
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return (
            f"The scheduler at {self.address} was not started by a cluster that can start and end "
            "workers, so nobody can let their number follow the load. Start workers by hand "
            f"(shoal worker {self.address}), or make a cluster that does (LocalCluster, "
            "SpecCluster, ...) and call its adapt()."
        )


class NoSuggestion(ShoalError, TypeError):
    """A policy for copies has yielded something else."""

    def __init__(self, yielded: object) -> None:
        super().__init__(yielded)
        self.yielded = yielded

    def __str__(self) -> str:
        return (
            f"A policy yielded {self.yielded!r}. What it yields is "
            'Suggestion("replicate" or "drop", task) with a task of scheduler.tasks, and perhaps '
            "a set of workers of scheduler.workers among which to choose."
        )


class PolicyRaised(ShoalError):
    """A policy for copies ends with an error."""

    def __init__(self, policy: object, error: BaseException) -> None:
        super().__init__(policy, error)
        self.policy, self.error = policy, error

    def __str__(self) -> str:
        return (
            f"The policy {self.policy!r} for copies of results has raised "
            f"{type(self.error).__name__}: {self.error}. It is asked no more, other policies are. "
            "Mend it, and add it again: manager.add_policy(policy)."
        )


class PolicySlow(ShoalError):
    """A policy for copies keeps the scheduler's loop."""

    def __init__(self, policy: object, seconds: float) -> None:
        super().__init__(policy, seconds)
        self.policy, self.seconds = policy, seconds

    def __str__(self) -> str:
        return (
            f"The policy {self.policy!r} for copies of results took "
            f"{format_seconds(self.seconds)} of the scheduler's loop, in which nothing else is "
            "done; if that goes on it is asked in fewer rounds. Have it look at fewer tasks, or "
            "make active-memory-manager.interval longer."
        )
