"""Locks of several names at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from shoal.client.coordination.claimed import Claimed
from shoal.client.coordination.errors import NotLocked
from shoal.client.coordination.named import name_on_wire
from shoal.errors import ShoalError
from shoal.protocol.coordination import AcquireJointly, ReleaseJointly
from shoal.protocol.messages import Message
from shoal.units import to_count


class MultiLock(Claimed):
    """Several names that are held together or not at all.

    Whoever waits holds none of them, so no two wait for each other.  The names are no locks of
    `Lock`.  What holds for a Lock as to clients, tasks, pickling and `with` holds here as well.

    Args:
        names: what is to be held.
        client: whom to ask; None: the one that is meant where it is used.
    """

    _not_held: ClassVar[type[ShoalError]] = NotLocked

    def __init__(self, names: Sequence[Any] | None = None, client: Any = None) -> None:
        super().__init__(None, client)
        self.names = list(names or ())
        self._names_on_wire = list(dict.fromkeys(map(name_on_wire, self.names)))

    def acquire(
        self, blocking: bool = True, timeout: Any = None, num_locks: int | None = None
    ) -> Any:
        """Hold the names; whether that came to be.

        Args:
            blocking: False: don't wait for whoever holds one.
            timeout: seconds to wait, or a text such as "10s"; None: no limit.
            num_locks: hold so many of the names, whichever are free first; None: all.

        Raises:
            ValueError: there is a timeout, but nothing to wait for; there are not so many names;
                or there is no client.
            OSError: the connection ended.
        """
        if timeout is not None and not blocking:
            raise ValueError("blocking=False does not wait, so there is no use for a timeout")
        nnames = len(self._names_on_wire)
        count = to_count("num_locks", num_locks, min(1, nnames)) if num_locks else nnames
        if count > nnames:
            raise ValueError(f"num_locks={count} can't be had of {nnames} names")
        return self._claim(count, waits=blocking, timeout=timeout)

    @property
    def id(self) -> Any:
        """A name of this object alone."""
        return self.name

    def locked(self) -> bool:
        """Whether this object holds its names, for the calling task if one calls."""
        return self._held_here() is not None

    def _whole(self) -> tuple[Any, ...]:
        return (len(self._names_on_wire),)

    def _acquiring(
        self, session: Any, claim: int, waits: bool, by: str, count: int = 0
    ) -> Callable[[int], Message]:
        return lambda request: AcquireJointly(request, self._names_on_wire, claim, count, waits, by)

    def _releasing(self, claim: int) -> Message:
        return ReleaseJointly(claim)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.names,)

    def __repr__(self) -> str:
        return f"<MultiLock: {', '.join(map(str, self.names))}>"
