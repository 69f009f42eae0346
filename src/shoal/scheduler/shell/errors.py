"""What code beside the scheduler may get wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ShoalError


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
