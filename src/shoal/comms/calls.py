"""Questions under way on a connection, and the futures that wait for their replies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from shoal.comms.errors import CallTimeoutError, CommClosedError

M = TypeVar("M")


class Reply(Protocol):
    """A message that answers the request of this number."""

    @property
    def request(self) -> int:
        """The number that the question carried."""


class PendingCalls:
    """Numbers the requests on one connection, and gives each reply to whom it is for.

    Belongs to one event loop.  Numbers start at 1 and are never used twice.
    """

    def __init__(self, peer_address: str) -> None:
        """`peer_address`: for the texts of errors.  To be made on the loop that awaits."""
        self._loop = asyncio.get_running_loop()
        self._peer_address = peer_address
        self._numbers = itertools.count(1)
        self._failure: CommClosedError | None = None
        self._waiting: dict[int, tuple[asyncio.Future[Any], asyncio.TimerHandle | None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def open(
        self, what: str = "a request", timeout_seconds: float | None = None
    ) -> tuple[int, asyncio.Future[Any]]:
        """The number for a new request, and the future of its reply.

        Args:
            what: the request in words, for the text of an error.
            timeout_seconds: after which the future fails with CallTimeoutError; None: never.

        Raises:
            CommClosedError: the connection has ended.
        """
        if self._failure is not None:
            raise self._failure
        request = next(self._numbers)
        future: asyncio.Future[Any] = self._loop.create_future()
        timer = None
        if timeout_seconds is not None:
            timer = self._loop.call_later(
                timeout_seconds, self._expire, request, what, timeout_seconds
            )
        self._waiting[request] = future, timer
        # A caller that was cancelled wants no reply; without this its entry would stay.
        future.add_done_callback(lambda _: self._forget(request))
        return request, future

    async def ask(
        self,
        make: Callable[[int], M],
        say: Callable[[M], object],
        timeout_seconds: float | None = None,
    ) -> tuple[M, Any]:
        """Say a question, and wait for the reply to it; returns both.

        Args:
            make: the question, given its request number.
            say: sends it.

        Raises:
            CommClosedError: the connection has ended, or ends.
            CallTimeoutError: no reply came in time.
        """
        request, reply = self.open("a request", timeout_seconds)
        try:
            message = make(request)
            say(message)
            return message, await reply
        finally:
            reply.cancel()  # nobody waits for it any more, if it was not said at all
            del reply  # what it raises holds this frame, which would hold it

    def resolve(self, reply: Reply) -> bool:
        """Give `reply` to whoever asked; False if nobody waits for it any more."""
        future = self._forget(reply.request)
        if future is None or future.done():
            return False
        future.set_result(reply)
        return True

    def fail(self, request: int, error: Exception) -> bool:
        """Let one request fail; False if nobody waits for it any more."""
        future = self._forget(request)
        if future is None or future.done():
            return False
        future.set_exception(error)
        return True

    def fail_all(self, error: Exception) -> None:
        """Every request that waits for its reply fails with `error`; later ones may be made."""
        for request in list(self._waiting):
            self.fail(request, error)

    def close(self, reason: Exception | None = None) -> None:
        """The connection ended: every request fails with CommClosedError, later ones too."""
        if self._failure is not None:
            return
        if isinstance(reason, CommClosedError):
            self._failure = reason
        else:
            why = str(reason) if reason is not None else "it was closed"
            self._failure = CommClosedError.lost(self._peer_address, why)
            self._failure.__cause__ = reason
        self.fail_all(self._failure)

    def _expire(self, request: int, what: str, timeout_seconds: float) -> None:
        self.fail(request, CallTimeoutError(what, self._peer_address, timeout_seconds))

    def _forget(self, request: int) -> asyncio.Future[Any] | None:
        """Strike a request off; its future, if it was still there."""
        future, timer = self._waiting.pop(request, (None, None))
        if timer is not None:
            timer.cancel()
        return future
