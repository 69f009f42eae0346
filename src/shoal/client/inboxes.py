"""What was published in channels and has come here: who hears it, and who waits for it."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import Any, Protocol, TypeVar

from shoal.comms import CommClosedError
from shoal.protocol.coordination import Published, Subscribe

P = TypeVar("P")


class Listening(Protocol):
    """What a handler needs of a session."""

    def state_of(self, kind: type[P]) -> P:
        """The session's one `kind`, made when it is first asked for."""


class Subscriptions:
    """Whom one session has to tell what."""

    def __init__(self) -> None:
        self.by_claim: weakref.WeakValueDictionary[int, Inbox] = weakref.WeakValueDictionary()
        self.is_watched = False  # whether they are told of the session's end

    def greeting(self) -> list[Subscribe]:
        """What to say to a scheduler that does not know of them."""
        return [Subscribe(inbox.name, claim) for claim, inbox in list(self.by_claim.items())]

    async def close(self) -> None:
        """The session has ended: nothing will come."""
        for reference in self.by_claim.valuerefs():  # a list: other threads may subscribe now
            inbox = reference()
            if inbox is not None:
                inbox.close()


class Inbox:
    """What has come for one subscription, and who waits for more; used on the loop alone."""

    def __init__(self, name: str) -> None:
        """`name`: of the channel, as it travels."""
        self.name = name
        self.values: deque[list[bytes]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    def put(self, value: list[bytes]) -> None:
        """Something was published."""
        self.values.append(value)
        self._wake_one()

    def close(self) -> None:
        """Nothing more will come."""
        self._is_closed = True
        while self._waiting:
            self._wake_one()

    async def take(self, address: str) -> list[bytes]:
        """The next one, once it is there.

        Raises:
            CommClosedError: the connection to `address` has ended.
        """
        while not self.values:
            if self._is_closed:
                raise CommClosedError.lost(address, "it was closed")
            due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(due)
            try:
                await due
            except asyncio.CancelledError:
                if due.done() and self.values:  # it is for somebody else then
                    self._wake_one()
                raise
        return self.values.popleft()

    def _wake_one(self) -> None:
        while self._waiting:
            due = self._waiting.popleft()
            if not due.done():
                due.set_result(None)
                return


def on_published(session: Listening, message: Published, buffers: list[Any]) -> None:
    """Put it where whoever has subscribed looks; nothing happens if nobody does any more."""
    inbox = session.state_of(Subscriptions).by_claim.get(message.claim)
    if inbox is not None:
        inbox.put(message.value)
