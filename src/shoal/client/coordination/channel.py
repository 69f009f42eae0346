"""Pub and Sub: what is published reaches everybody who has subscribed by then."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Self

from shoal.client.coordination.errors import NothingCame
from shoal.client.coordination.named import (
    Claims,
    Named,
    calling_task,
    connected,
    is_to_be_connected,
    seconds_of,
)
from shoal.client.coordination.values import Packed, unpack
from shoal.client.inboxes import Inbox, Subscriptions
from shoal.observe.inside import RunningTask, waiting_for_tasks
from shoal.protocol.coordination import Publish, Subscribe, Unsubscribe


class Pub(Named):
    """Publishes values in a channel, for the `Sub` objects of that name in the whole cluster.

    A value reaches those that have subscribed by then, and is kept for nobody else.  The results of
    futures in it are not kept either, so their publisher has to hold them until they are received.

    Args:
        name: of the channel.
        worker: not used.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __init__(self, name: Any, worker: Any = None, client: Any = None) -> None:
        super().__init__(name, client)

    def put(self, msg: Any) -> Any:
        """Publish a value; waits for nobody.

        Raises:
            ValueError: the value is too large to go through the scheduler.
            Exception: the value can't be pickled.
            OSError: the connection ended.
        """
        return self._say(Publish(self._on_wire, Packed(f"channel {self.name!r}", msg).pieces))


class Sub(Named):
    """Receives what is published in a channel from now on, in its order.

    Can be iterated over, which waits for what comes; with an asynchronous client by `async for`.
    What has come and was not looked at yet is kept here, however much that is.

    Args:
        name: of the channel.
        worker: not used.
        client: by whom to subscribe; None: the one that is meant here.

    Raises:
        ValueError: there is no client.
        OSError: the connection ended.
    """

    def __init__(self, name: Any, worker: Any = None, client: Any = None) -> None:
        super().__init__(name, client)
        self._client = client = self._face
        self._inbox = Inbox(self._on_wire)
        self._subscribing: asyncio.Task[None] | None = None
        if is_to_be_connected(client):
            self._subscribing = asyncio.ensure_future(self._subscribe_when_connected(client))
        else:
            self._subscribe(client.session)

    def _subscribe(self, session: Any) -> None:
        subscriptions = session.state_of(Subscriptions)
        if not subscriptions.is_watched:
            subscriptions.is_watched = True
            session.closers.append(subscriptions.close)
            session.greetings.append(subscriptions.greeting)
        claim = session.state_of(Claims).new()
        subscriptions.by_claim[claim] = self._inbox
        session.say(Subscribe(self._on_wire, claim))
        weakref.finalize(self, _unsubscribe, session, self._on_wire, claim).atexit = False

    async def _subscribe_when_connected(self, client: Any) -> None:
        self._subscribe(await connected(client))

    def get(self, timeout: Any = None) -> Any:
        """The next value, waiting for it if need be.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            TimeoutError: nothing was published in time.
            OSError: the connection ended.
        """
        client = self._face
        work = self._take(client, seconds_of(timeout), calling_task())
        if client.asynchronous:
            return self._received(client, work)
        return unpack(client, client.sync(lambda: work))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.get()

    next = __next__

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        found = self.get()
        return await found if self._face.asynchronous else found

    async def _take(
        self, client: Any, seconds: float | None, task: RunningTask | None
    ) -> list[bytes]:
        if self._subscribing is not None:
            await asyncio.shield(self._subscribing)
        client.session.require_running()
        try:
            async with asyncio.timeout(seconds):
                with waiting_for_tasks(task):
                    return await self._inbox.take(client.session.address)
        except TimeoutError:
            assert seconds is not None
            raise NothingCame(f"message in the channel {self.name!r}", seconds) from None

    async def _received(self, client: Any, work: Any) -> Any:
        return unpack(client, await work)


def _unsubscribe(session: Any, name: str, claim: int) -> None:
    """Say it on the loop: whoever collects a Sub may hold any lock."""
    loop = session.loop
    if loop is not None and session.is_open:
        try:
            loop.call_soon_threadsafe(_say_unsubscribed, session, name, claim)
        except RuntimeError:
            pass  # the loop was closed, and with it the session


def _say_unsubscribed(session: Any, name: str, claim: int) -> None:
    if session.is_open:
        session.say(Unsubscribe(name, claim))
