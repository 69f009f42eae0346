"""How a call gets to its actor: by way of a client, or of the worker whose task calls.

Calls of one thread to one actor arrive in their order, since each of the steps keeps it: to the
loop, on the one connection to the worker, and there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from shoal.client.actors.errors import CallCutShort, CallerGone
from shoal.client.actors.futures import ActorFuture
from shoal.client.errors import ClientClosed
from shoal.client.incoming import CallsUnderWay
from shoal.client.session import Session
from shoal.comms.aside import aside
from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.exchange import ReplicaExchange
from shoal.errors import ActorLost
from shoal.ids import Key, RunId
from shoal.protocol.actors import (
    CallActor,
    CallActorThroughScheduler,
    ExplainActor,
    ReadActor,
)
from shoal.protocol.answers import Refusal
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.payload import dump_call, load

LARGE_NBYTES: Final = 2**20
"""Results from here on are unpickled in a thread, so that the loop stays responsive."""


Work = Coroutine[Any, Any, None]


class Call:
    """One call, or the reading of an attribute, on its way."""

    __slots__ = (
        "arguments",
        "buffers",
        "future",
        "key",
        "name",
        "proxy",
        "run",
        "separate_thread",
        "was_said",
    )

    def __init__(
        self,
        proxy: Any,
        name: str,
        arguments: bytes | None,
        buffers: list[bytearray],
        *,
        key: Key,
        run: RunId,
        separate_thread: bool = True,
    ) -> None:
        """`proxy`: is kept until the call has ended, and the actor with it; `arguments`: pickled,
        or None: `name` is that of an attribute."""
        self.proxy = proxy
        self.name = name
        self.arguments = arguments
        self.buffers = buffers
        self.key = key
        self.run = run
        self.separate_thread = separate_thread
        self.was_said = False
        self.future: ActorFuture

    def said(self) -> None:
        """It is on its way, and nobody needs the arguments here any more."""
        self.was_said = True
        self.arguments = b""
        self.buffers = []

    def message(self, request: int) -> CallActor | ReadActor:
        """What its worker is asked."""
        if self.arguments is None:
            return ReadActor(request, self.key, self.run, self.name)
        return CallActor(
            request, self.key, self.run, self.name, self.arguments, self.separate_thread
        )

    def message_through_scheduler(self, request: int) -> CallActorThroughScheduler:
        """What the scheduler is asked instead."""
        arguments = self.arguments
        if arguments is not None and self.buffers:
            loaded: Any = load(arguments, self.buffers)
            arguments = dump_call(*loaded)
        return CallActorThroughScheduler(
            request, self.key, self.run, self.name, arguments, self.separate_thread
        )

    async def answer(self, reply: Any, buffers: list[Any]) -> None:
        """What was called has answered."""
        if isinstance(reply, Refusal):
            self.future.end(error=reply.failure)
            return
        nbytes = sum([memoryview(buffer).nbytes for buffer in buffers])
        if nbytes < LARGE_NBYTES and len(reply.value) < LARGE_NBYTES:
            self.future.end(load(reply.value, buffers))
        else:
            self.future.end(await aside(load, reply.value, buffers))


class Way(Protocol):
    """Whoever makes calls for a proxy."""

    @property
    def is_awaited(self) -> bool:
        """Whether the calling code awaits what takes time, and else waits for it."""

    def begin(self, call: Call, key: str) -> ActorFuture:
        """Have a call made."""


class _Calls:
    """The calls of one session that have not ended; they end with it, at the latest."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()  # only to keep them alive
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._under_way: dict[Call, None] = {}

    def enter(self, call: Call, session: Session) -> None:
        """A call is about to begin.  From any thread.  Raises ClientClosed."""
        with self._lock:
            if self._session is None:
                self._session = session
                session.closers.append(self._close)
            session.require_running()  # as whatever is entered from here on is seen by `_close`
            self._under_way[call] = None

    def leave(self, call: Call) -> None:
        """It has ended."""
        with self._lock:
            self._under_way.pop(call, None)

    def spawn(self, work: Work) -> asyncio.Task[None]:
        """Do `work` beside everything else."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _close(self) -> None:
        """The session has ended, and soon there may be no loop that could end a call."""
        session = self._session
        assert session is not None
        with self._lock:
            calls, self._under_way = self._under_way, {}
        if calls:
            failure = to_failure(ClientClosed(session.name, "closed", session.ending_reason))
            for call in calls:
                call.future.end(error=failure)


def _begin(
    loop: Any,
    spawn: Callable[[Work], asyncio.Task[None]],
    call: Call,
    work: Callable[[Call], Work],
    leave: Callable[[Call], None] | None = None,
) -> None:
    """Run `work(call)` on the loop; whatever it raises is how the call has ended."""

    async def ending() -> None:
        try:
            await work(call)
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            call.future.end(error=error)

    def ended(task: asyncio.Task[None]) -> None:
        if leave is not None:
            leave(call)
        if task.cancelled():  # perhaps before it has begun
            call.future.end(error=CallerGone(to_text(call.key)))

    def start() -> None:
        spawn(ending()).add_done_callback(ended)

    if asyncio._get_running_loop() is loop:
        start()
        return
    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError as error:  # the loop has ended
        if leave is not None:
            leave(call)
        call.future.end(error=CallerGone(to_text(call.key), str(error)))


class ClientWay:
    """By way of a client, which asks the worker; or the scheduler, if it can't."""

    def __init__(self, face: Any, address: str) -> None:
        self._face = face
        self._address = address

    @property
    def is_awaited(self) -> bool:
        """Whether the client is an asynchronous one, or is called on its own loop."""
        return bool(not self._face.is_blocking or self._face.is_on_loop)

    def begin(self, call: Call, key: str) -> ActorFuture:
        """Have a call made.  Raises ClientClosed."""
        face, session = self._face, self._face.session
        calls = session.state_of(_Calls)
        call.future = ActorFuture(key, session.loop, face)
        calls.enter(call, session)
        _begin(session.loop, calls.spawn, call, self._answered, calls.leave)
        return call.future

    async def _answered(self, call: Call) -> None:
        await call.answer(*await self._asked(call))

    async def _asked(self, call: Call) -> tuple[Any, list[Any]]:
        face, address = self._face, self._address
        session = face.session
        if face.direct_to_workers is not False:
            exchange: ReplicaExchange = face.exchange
            session.state_of(CallsUnderWay).forget = exchange.forget
            try:
                return await exchange.ask(
                    address, call.message, call.buffers, call.said, has_another_way=True
                )
            except OSError as error:
                if call.was_said:  # so that it may have been called: what became of the actor?
                    session.require_running()
                    await session.call(lambda request: ExplainActor(request, call.key))
                    raise CallCutShort(to_text(call.key), address, str(error)) from error
        try:
            delivery = await session.call(call.message_through_scheduler)
        except ActorLost:
            session.require_running()
            await session.call(lambda request: ExplainActor(request, call.key))
            raise
        return delivery.message, delivery.buffers


class WorkerWay:
    """By way of a worker, for code that its tasks and actors run."""

    def __init__(self, worker: Any, address: str) -> None:
        self._worker = worker
        self._address = address

    @property
    def is_awaited(self) -> bool:
        """Whether the calling code runs on the worker's loop."""
        return asyncio._get_running_loop() is not None

    def begin(self, call: Call, key: str) -> ActorFuture:
        """Have a call made."""
        call.future = ActorFuture(key, self._worker.loop)
        _begin(self._worker.loop, self._worker.feed.spawn, call, self._answered)
        return call.future

    async def _answered(self, call: Call) -> None:
        exchange: ReplicaExchange = self._worker.feed.exchange
        try:
            reply = await exchange.ask(self._address, call.message, call.buffers, call.said)
        except OSError as error:
            raise ActorLost(to_text(call.key), self._address, str(error)) from error
        await call.answer(*reply)
