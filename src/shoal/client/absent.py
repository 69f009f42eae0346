"""Methods of `distributed` that this version of shoal lacks, and how they are refused.

The tables here are the client's; a cluster has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shoal.errors import ShoalError

ABSENT: Final = frozenset(
    (
        "get_task_stream",
        "profile",
    )
)
"""A method that comes to be leaves this table; a test says so."""

REMEDIES: Final[Mapping[str, str]] = {
    "get_task_stream": "The page at client.dashboard_link shows what runs.",
    "profile": "client.call_stack() shows what runs now.",
}
"""What to do instead, where there is something."""


UNDERSCORED: Final = frozenset(
    (
        "_cancel",
        "_close",
        "_gather",
        "_rebalance",
        "_replicate",
        "_restart",
        "_run",
        "_run_on_scheduler",
        "_scatter",
    )
)
"""What programs of old call on the asynchronous client by the names of upstream's coroutines."""


class AbsentMethod(ShoalError, AttributeError):
    """A method of the released `distributed` that this version of shoal does not have."""

    def __init__(self, method: str, remedy: str = "", owner: str = "Client") -> None:
        """`remedy`: what to do instead; `owner`: the class that has it upstream."""
        super().__init__(method, remedy, owner)
        self.method, self.remedy, self.owner = method, remedy, owner

    def __str__(self) -> str:
        lack = f"This version of shoal does not have {self.owner}.{self.method}."
        return f"{lack} {self.remedy}".rstrip()


class Absent:
    """Refuses what is absent by name; `hasattr` says that it is not there."""

    _owner_of_absent: ClassVar[str] = "Client"
    _absent: ClassVar[Set[str]] = ABSENT
    _remedies: ClassVar[Mapping[str, str]] = REMEDIES
    _underscored: ClassVar[Set[str]] = frozenset()

    if not TYPE_CHECKING:  # or a type checker would believe in every attribute

        def __getattr__(self, name: str) -> Any:
            if name in self._underscored:
                return getattr(self, name[1:])
            if name in self._absent:
                raise AbsentMethod(name, self._remedies.get(name, ""), self._owner_of_absent)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
