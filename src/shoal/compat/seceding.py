"""`secede` and `rejoin` of old: names that libraries import whether they use them or not."""

from __future__ import annotations

from typing import NoReturn

from shoal.errors import ShoalError


class CannotSecede(ShoalError, RuntimeError):
    """A task asked to be left out of account."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"This version of shoal does not have {self.name}(). A task that waits for the results "
            "of other tasks needs none: its worker puts another thread in its place meanwhile. "
            "For other long waits give workers more threads: LocalCluster(threads_per_worker=...)."
        )


def secede(adjust: bool = True) -> NoReturn:
    """Raises CannotSecede."""
    raise CannotSecede("secede")


def rejoin() -> NoReturn:
    """Raises CannotSecede."""
    raise CannotSecede("rejoin")
