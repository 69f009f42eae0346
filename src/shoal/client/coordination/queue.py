"""Queues."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Self

from shoal.client.coordination.errors import NothingCame, QueueClosed
from shoal.client.coordination.named import (
    WAIT_SECONDS_MIN,
    Claims,
    Done,
    Named,
    call_for,
    calling_task,
    connected,
    key_of,
    seconds_of,
)
from shoal.client.coordination.values import Packed, hear_of_futures, unpack
from shoal.comms import CallTimeoutError
from shoal.observe.inside import RunningTask
from shoal.protocol.coordination import (
    CloseQueue,
    EndPut,
    EndTake,
    PutInQueue,
    QueueSize,
    SharedValue,
    TakeFromQueue,
)
from shoal.units import to_count


class Queue(Named):
    """Values that some clients and tasks of a cluster put in, and others take out, in their order.

    Each value is taken once; if whoever took it dies before it got it, the next one has it.  Values
    are small things that can be pickled, which the scheduler keeps, or futures at any depth, whose
    results are kept with it.  What is in a queue outlives whoever put it there.  See `Named` for
    clients, tasks and pickling.

    Args:
        name: those of one name are one queue; a new name if None.
        client: whom to ask; None: the one that is meant where it is used.
        maxsize: how many values may be in it before `put` waits; 0: no limit.
    """

    def __init__(self, name: Any = None, client: Any = None, maxsize: int = 0) -> None:
        super().__init__(name, client)
        self.maxsize = max(0, maxsize)

    def __await__(self) -> Generator[Any, Any, Self]:
        """So that it may be made as what has to be awaited."""
        return Done(self).__await__()

    def put(self, value: Any, timeout: Any = None, **kwargs: Any) -> Any:
        """Put a value in, waiting for room if need be.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.

        Raises:
            TimeoutError: there was no room in time; the value is not in the queue.
            QueueClosed: this client closed it meanwhile; the value is not in it (a RuntimeError).
            ValueError: the value is too large to be kept by the scheduler.
            Exception: the value can't be pickled.
            OSError: the connection ended.
        """
        packed = Packed(f"queue {self.name!r}", value)
        return self._run(self._put, packed, seconds_of(timeout), calling_task())

    def get(self, timeout: Any = None, batch: bool | int = False, **kwargs: Any) -> Any:
        """Take the next value out, waiting for it if need be.

        Args:
            timeout: seconds to wait, or a text such as "10s"; None: no limit.
            batch: True: a list of all that are there, now; a number: a list of so many, once
                there are.

        Raises:
            TimeoutError: it did not come in time; nothing was taken.
            QueueClosed: this client closed it meanwhile (a RuntimeError).
            OSError: the connection ended.
        """
        count = 1 if batch is False else 0 if batch is True else to_count("batch", batch, 1)
        seconds = seconds_of(timeout)
        client, is_batch = self._face, batch is not False
        work = self._take(client, count, seconds, calling_task())
        if client.asynchronous:
            return self._received(client, work, is_batch=is_batch)
        claim, values = client.sync(lambda: work)
        with self._receiving(client.session, claim, values):
            unpacked = [unpack(client, value.value) for value in values]
            if any(value.has_futures for value in values):
                client.sync(hear_of_futures, client.session)
        return unpacked if is_batch else unpacked[0]

    def qsize(self, **kwargs: Any) -> Any:
        """How many values are in it."""
        return self._ask(QueueSize)

    def close(self) -> Any:
        """Done with it: unless other clients use it, what is in it is let go of."""
        return self._say(CloseQueue(self._on_wire))

    async def _put(
        self, session: Any, packed: Packed, seconds: float | None, task: RunningTask | None
    ) -> None:
        claim = session.state_of(Claims).new()

        def make(request: int) -> PutInQueue:
            return PutInQueue(
                request,
                self._on_wire,
                claim,
                packed.pieces,
                packed.keys,
                self.maxsize,
                key_of(task),
            )

        answer = asyncio.ensure_future(call_for(task, session, make))
        try:
            await asyncio.wait((answer,), timeout=seconds)
            gave_up = not answer.done()
            if gave_up:
                session.say(EndPut(self._on_wire, claim))  # which has it answered
            was_put = await answer
        except asyncio.CancelledError:
            answer.cancel()
            if session.is_open:
                session.say(EndPut(self._on_wire, claim))
            raise
        if was_put:
            return
        if seconds is None or not gave_up:
            raise QueueClosed("place", self.name)
        raise NothingCame(f"room in the queue {self.name!r}", seconds)

    async def _take(
        self, client: Any, count: int, seconds: float | None, task: RunningTask | None
    ) -> tuple[int, list[SharedValue]]:
        """The claim, and the values that it took."""
        session = await connected(client)
        claim = session.state_of(Claims).new()
        if seconds is not None:
            seconds = max(seconds, WAIT_SECONDS_MIN)

        def make(request: int) -> TakeFromQueue:
            return TakeFromQueue(request, self._on_wire, claim, count, self.maxsize, key_of(task))

        try:
            values: list[SharedValue] = await call_for(task, session, make, seconds)
        except CallTimeoutError:
            session.say(EndTake(self._on_wire, claim, False))
            assert seconds is not None
            raise NothingCame(f"value in the queue {self.name!r}", seconds) from None
        except asyncio.CancelledError:
            if session.is_open:
                session.say(EndTake(self._on_wire, claim, False))
            raise
        if count and not values:
            raise QueueClosed("value", self.name)
        return claim, values

    async def _received(self, client: Any, work: Any, *, is_batch: bool) -> Any:
        claim, values = await work
        with self._receiving(client.session, claim, values):
            unpacked = [unpack(client, value.value) for value in values]
            if any(value.has_futures for value in values):
                await hear_of_futures(client.session)
        return unpacked if is_batch else unpacked[0]

    @contextmanager
    def _receiving(self, session: Any, claim: int, values: list[SharedValue]) -> Iterator[None]:
        """Have the scheduler told that the values are here; whoever is made to give up inside puts
        them back."""
        try:
            yield
        except (asyncio.CancelledError, KeyboardInterrupt):
            if session.is_open:
                session.say(EndTake(self._on_wire, claim, False))
            raise
        except BaseException:  # nobody could read one of them, now or later
            if session.is_open:
                session.say(EndTake(self._on_wire, claim, True))
            raise
        if values:
            session.say(EndTake(self._on_wire, claim, True))

    def _arguments(self) -> tuple[Any, ...]:
        return self.name, None, self.maxsize
