"""The future of a call to an actor."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future as ConcurrentFuture
from functools import partial
from typing import Any, Final, NoReturn

from shoal.client.actors.errors import ActorSilent, CallStays
from shoal.client.blocking import CALLBACKS
from shoal.client.errors import BlockingCall
from shoal.client.future import Future
from shoal.client.standins import StandIn
from shoal.observe.inside import waiting_for_tasks
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.messages import Failure
from shoal.units import to_seconds

SOON_SECONDS: Final = 0.01
"""So long a task waits for an actor before its worker runs another in its place."""

Outcome = tuple[Failure | None, Any]
"""Why a call failed, or None; and what it returned."""


class BaseActorFuture(ABC, Awaitable[Any]):
    """What a call to an actor returns: something to be waited for, or awaited."""

    @abstractmethod
    def result(self, timeout: Any = None) -> Any:
        """Wait for what the call returned, or raise what it raised."""

    @abstractmethod
    def done(self) -> bool:
        """Whether the call has ended."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class EagerActorFuture(BaseActorFuture):
    """Of a call that was made in the thread of its caller, and has ended."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self._result = result
        self._error = error

    @property
    def status(self) -> str:
        """`finished` or `error`."""
        return "finished" if self._error is None else "error"

    def result(self, timeout: Any = None) -> Any:
        """What the call returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self, timeout: Any = None) -> BaseException | None:
        """What the call raised, if it did."""
        return self._error

    def done(self) -> bool:
        """It has ended."""
        return True

    def add_done_callback(self, fn: Callable[[EagerActorFuture], object]) -> None:
        """Call `fn(future)` soon, in a thread that all callbacks share."""
        CALLBACKS.put(fn, self)

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()  # a generator, as whoever awaits it needs one
        return self.result()


class ActorFuture(StandIn, BaseActorFuture):
    """Of a call that is made where the actor lives.

    It works in `gather`, `wait` and `as_completed`, and as an argument of `submit` and `map`.
    """

    __slots__ = ("_face", "_loop", "_outcome", "_promise")

    key: Any

    def __init__(self, key: str, loop: Any, face: Any = None) -> None:
        """Made by proxies.

        Args:
            key: names the call, and its result where that is an input of a task.
            loop: that will resolve it.
            face: the client of whoever called; None: it was a task.
        """
        self.key = key
        self._loop = loop
        self._face = face
        self._outcome: ConcurrentFuture[Outcome] = ConcurrentFuture()
        self._promise: Future | None = None

    # --- what is known -----------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """The client of whoever called; None if it was a task."""
        return self._face

    @property
    def status(self) -> str:
        """`pending`, `finished` or `error`."""
        if not self._outcome.done():
            return "pending"
        return "finished" if self._outcome.result()[0] is None else "error"

    def done(self) -> bool:
        """Whether the call has ended."""
        return self._outcome.done()

    def cancelled(self) -> bool:
        """A call can't be cancelled."""
        return False

    def __repr__(self) -> str:
        return f"<ActorFuture: {self.status}, key: {self.key}>"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __dask_tokenize__(self) -> tuple[str, Any]:
        return "ActorFuture", self.key

    def __reduce__(self) -> NoReturn:
        raise CallStays(self.key)

    # --- what takes time ---------------------------------------------------------------------

    def result(self, timeout: Any = None) -> Any:
        """Wait for what the call returned.

        Args:
            timeout: seconds, or a text such as "10s"; None: no limit.

        Raises:
            BaseException: what the method raised, with its traceback.
            ActorLost: the actor's worker is gone; also a RuntimeError and a ConnectionError.
            ActorSilent: the call has not ended in time; a TimeoutError.
            BlockingCall: on the loop that it would come by; await it there.
        """
        self._wait(timeout)
        return self._taken()

    def exception(self, timeout: Any = None) -> BaseException | None:
        """Wait, and return what `result` would raise; None if the call went well."""
        self._wait(timeout)
        failure = self._outcome.result()[0]
        return None if failure is None else from_failure(failure)

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._outcome.done():
            yield from asyncio.shield(asyncio.wrap_future(self._outcome)).__await__()
        return self._taken()

    def add_done_callback(self, fn: Callable[[ActorFuture], object]) -> None:
        """Call `fn(future)` once it is done, in a thread that all callbacks share."""
        self._outcome.add_done_callback(lambda _: CALLBACKS.put(fn, self))

    def _wait(self, timeout: Any) -> None:
        if self._outcome.done():
            return
        here = asyncio._get_running_loop()
        if here is not None and here is self._loop:
            raise BlockingCall
        seconds = None if timeout is None else to_seconds(timeout)
        soon = SOON_SECONDS if seconds is None else min(SOON_SECONDS, seconds)
        try:
            self._outcome.result(soon)
            return
        except TimeoutError:
            pass  # it takes longer
        try:
            with waiting_for_tasks():
                self._outcome.result(None if seconds is None else max(0.0, seconds - soon))
        except TimeoutError:
            raise ActorSilent(self.key, seconds or 0.0) from None

    def _taken(self) -> Any:
        failure, value = self._outcome.result()
        if failure is not None:
            raise from_failure(failure)
        return value

    # --- whoever called ----------------------------------------------------------------------

    def end(self, value: Any = None, error: BaseException | Failure | None = None) -> None:
        """The call has ended; on the loop, once."""
        if self._outcome.done():
            return
        failure = to_failure(error) if isinstance(error, BaseException) else error
        self._outcome.set_result((failure, value))

    # --- as an argument ----------------------------------------------------------------------

    def future_for(self, face: Any) -> Future:
        """A future of the same result, for tasks that depend on it.

        The result goes to a worker once it is here, as if it was scattered then.
        """
        promise = self._promise
        if promise is None or promise.client is not face:
            from shoal.client.actors.promises import promised  # when it is needed at all

            promise, keep = promised(self.key, face)
            self._promise = promise
            self._outcome.add_done_callback(partial(_kept, keep))
        return promise


def _kept(keep: Callable[[Failure | None, Any], None], outcome: ConcurrentFuture[Outcome]) -> None:
    keep(*outcome.result())
