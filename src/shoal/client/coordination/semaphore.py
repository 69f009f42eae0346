"""Semaphores."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Generator
from typing import Any, Self

from shoal.client.coordination.claimed import Claimed
from shoal.client.coordination.described import claimant_of
from shoal.protocol.coordination import (
    AcquireLease,
    CloseLock,
    CountLeases,
    DescribeCoordination,
    NamedDescription,
    RegisterLock,
    ReleaseLock,
)
from shoal.protocol.messages import Message
from shoal.units import to_count


class Semaphore(Claimed):
    """What so many may hold at once, whichever clients and tasks of one cluster they are.

    A lease is held until it is released, or until the client that it was taken by goes: it never
    ends by itself while its holder gives signs of life, and a worker that dies leaves none behind.
    The object may be made before there is a client, and be pickled: whoever uses it asks the client
    of the task or context that it is used in.

    Args:
        max_leases: how many may hold it; for all objects of one name the same.
        name: those of one name are one semaphore; a new name if None.
        scheduler_rpc, loop: not used.
        client: whom to ask; None: the one that is meant where it is used.

    Raises:
        ValueError: at the first use: the name is known with another `max_leases`.
    """

    def __init__(
        self,
        max_leases: int = 1,
        name: Any = None,
        scheduler_rpc: Any = None,
        loop: Any = None,
        *,
        client: Any = None,
    ) -> None:
        if client is None and hasattr(scheduler_rpc, "session"):  # as older programs give it
            client = scheduler_rpc
        super().__init__(name, client)
        self.max_leases = to_count("max_leases", max_leases, 1)
        self._known_to: weakref.ref[Any] | None = None  # the session that has registered it

    @property
    def id(self) -> str:
        """A name of this object alone, in its process."""
        return f"{self.name}-{id(self):x}"

    @property
    def asynchronous(self) -> bool:
        """Whether methods that wait return coroutines here."""
        return bool(self._face.asynchronous)

    @property
    def loop(self) -> Any:
        """The event loop that serves its client."""
        return self._face.loop

    @property
    def scheduler(self) -> Any:
        """How its client calls the scheduler; None: there is no client."""
        client = self.client
        return None if client is None else client.scheduler

    def sync(
        self,
        func: Any,
        *args: Any,
        asynchronous: bool | None = None,
        callback_timeout: Any = None,
        **kwargs: Any,
    ) -> Any:
        """See `Client.sync`."""
        return self._face.sync(
            func,
            *args,
            asynchronous=asynchronous,
            callback_timeout=callback_timeout,
            **kwargs,
        )

    def __await__(self) -> Generator[Any, Any, Self]:
        async def registered() -> Self:
            await self._run(self._register)
            return self

        return registered().__await__()

    def register(self, **kwargs: Any) -> Any:
        """Have the scheduler know it, which it does by itself at the first use."""
        return self._run(self._register)

    def acquire(self, timeout: Any = None) -> Any:
        """Hold one of the leases; whether that came to be.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            RuntimeError: it was closed.
            ValueError: its name is known with another `max_leases`, or there is no client.
            OSError: the connection ended.
        """
        return self._claim(timeout=timeout)

    def get_value(self) -> Any:
        """How many leases are held, by whomever."""
        return self._ask(CountLeases)

    def holders(self) -> Any:
        """Who holds it: a dict of client, task, worker and seconds for each lease."""
        return self._run(self._describe)

    def close(self) -> Any:
        """Have the scheduler forget it: who waits for it gets a RuntimeError, and so does who
        acquires it by an object that has used it before.

        Warns of leases that are still held: they end.
        """
        return self._run(self._close)

    async def _register(self, session: Any) -> None:
        await session.call(lambda request: RegisterLock(request, self._on_wire, self.max_leases))
        self._known_to = weakref.ref(session)

    async def _close(self, session: Any) -> None:
        nheld = await session.call(lambda request: CloseLock(request, self._on_wire))
        self._held.clear()
        if nheld:
            warnings.warn(
                f"Closing {type(self).__name__.lower()} {self.name} but there remain unreleased "
                f"leases ({nheld}): whoever holds them keeps nobody away any more.",
                RuntimeWarning,
                stacklevel=2,
            )

    async def _describe(self, session: Any) -> list[dict[str, Any]]:
        found: list[NamedDescription] = await session.call(
            lambda request: DescribeCoordination(request, "lock", self._on_wire)
        )
        return [claimant_of(part) for lock in found for part in lock.holders]

    def _acquiring(
        self, session: Any, claim: int, waits: bool, by: str
    ) -> Callable[[int], Message]:
        is_known = self._known_to is not None and self._known_to() is session
        self._known_to = weakref.ref(session)

        def make(request: int) -> Message:
            return AcquireLease(
                request,
                self._on_wire,
                claim,
                self.max_leases,
                waits,
                by,
                registers=not is_known,
                must_exist=is_known,
            )

        return make

    def _releasing(self, claim: int) -> Message:
        return ReleaseLock(self._on_wire, claim)

    def _arguments(self) -> tuple[Any, ...]:
        return self.max_leases, self.name
