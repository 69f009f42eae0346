"""Actors on their worker: each has a thread of its own, which calls its methods one after another.

Methods that are coroutine functions run on the worker's loop, beside whatever else the actor does.
An actor lives as long as its proxy is among the worker's results, and until calls that had come
before that have ended.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from functools import partial
from queue import SimpleQueue
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from shoal.comms.aside import aside
from shoal.comms.cancellation import is_our_cancellation
from shoal.errors import ActorLost, NoSuchActor
from shoal.ids import Key, RunId
from shoal.protocol.actors import ActorReply, CallActor, ReadActor
from shoal.protocol.answers import Refusal
from shoal.protocol.exceptions import tell_unreadable, to_failure
from shoal.protocol.keys import from_canonical, to_text
from shoal.protocol.messages import Failure
from shoal.protocol.payload import dump, dump_function, kind_of, load, nbytes_of
from shoal.worker.model.entities import Run
from shoal.worker.shell.context import RunContext, current_run, current_worker
from shoal.worker.shell.errors import NoThreadForActor
from shoal.worker.shell.replicas import LARGE_NBYTES
from shoal.worker.shell.turns import Turns

if TYPE_CHECKING:
    from typing_extensions import Buffer

JOIN_SECONDS: Final = 1.0
"""What threads that have nothing to do may take to end, as the worker closes."""

Parcel = tuple[bytes, list[Any]]
Say = Callable[[Any, Parcel | Failure], None]
"""Answers a message, from whatever thread."""

Ending = Callable[[Any, BaseException | None], None]
"""Is told what a coroutine returned, or raised.  On the loop."""

_thread: Final = threading.local()  # `actor`: the one whose thread it is


class Hosted:
    """One actor: the object, and what calls it."""

    __slots__ = (
        "__weakref__",
        "context",
        "forget",
        "instance",
        "key",
        "loading",
        "queue",
        "run",
        "thread",
    )

    def __init__(self, instance: object, key: Key, run: RunId, context: Context) -> None:
        self.instance = instance
        self.key = key
        self.run = run
        self.context = context  # that its methods are called in
        self.queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.thread: threading.Thread | None = None  # started with the first call
        self.loading: asyncio.Lock | None = None  # who is to be called on the loop next
        self.forget: Callable[[], object] | None = None  # called once nobody has it any more

    def __del__(self) -> None:
        self.end()
        forget = getattr(self, "forget", None)
        if forget is not None:
            forget()

    def end(self) -> None:
        """The thread ends once it has done what was asked of it before."""
        queue: SimpleQueue[Callable[[], None] | None] | None = getattr(self, "queue", None)
        if queue is not None:
            queue.put(None)


class Actors:
    """All actors of one worker."""

    def __init__(self, worker: Any) -> None:
        """From a thread, with the first actor."""
        self._worker = worker
        self._loop: asyncio.AbstractEventLoop = worker.loop
        self._turns = Turns()
        self._by_key: weakref.WeakValueDictionary[Key, Hosted] = weakref.WeakValueDictionary()
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._on_loop: set[asyncio.Task[Any]] = set()
        self._closing = False
        worker.before_close.append(self.close)

    def by_key(self) -> dict[object, object]:
        """The objects, by the keys that users know."""
        return {from_canonical(hosted.key): hosted.instance for hosted in self._living()}

    def _living(self) -> list[Hosted]:
        """All of them; while tasks may make others."""
        return [hosted for ref in self._by_key.valuerefs() if (hosted := ref()) is not None]

    def host(self, task: RunContext, instance: object, proxy: object) -> None:
        """Keep an actor for as long as its proxy is kept.  In the thread of its task."""
        run = task.run
        message = replace(run.message, argument=b"", inputs=[])  # nobody reads them again
        context = Context()
        context.run(_enter, RunContext(task.worker, Run(message)))
        hosted = Hosted(instance, run.key, run.number, context)
        task.actor = dump_function(proxy), kind_of(instance)
        object.__setattr__(proxy, "_tie", hosted)
        older = self._by_key.get(run.key)
        if older is not None and older.run > run.number:
            return  # this run was given up, and its result will be thrown away
        self._by_key[run.key] = hosted
        reference = weakref.ref(hosted)

        def dropped() -> None:
            self._release(reference())

        results = self._worker.results
        results.watch(run.task, dropped)
        hosted.forget = partial(results.unwatch, run.task, dropped)

    def _release(self, hosted: Hosted | None) -> None:
        """Its proxy is no longer among the results; what was asked before is still done."""
        if hosted is not None:
            if self._by_key.get(hosted.key) is hosted:
                del self._by_key[hosted.key]
            hosted.end()

    def close(self) -> None:
        """The worker closes: what has begun may go on, nothing else begins.  On the loop."""
        self._closing = True
        for task in list(self._on_loop):
            task.cancel()
        threads = list(self._threads)
        for hosted in self._living():
            hosted.end()
        for thread in threads:
            if not self._turns.has_any(thread.ident):
                thread.join(JOIN_SECONDS)

    # --- from far ----------------------------------------------------------------------------

    def on_call_actor(self, connection: Any, message: CallActor, buffers: list[Any]) -> None:
        """Begin a call; those of one peer begin in their order.  On the loop."""
        say = _replier(self._loop, connection)
        hosted = self._meant(message, say)
        if hosted is None:
            return
        if message.separate_thread and not _is_coroutine_method(hosted, message.method):
            try:
                self._put(hosted, lambda: self._call(hosted, message, buffers, say))
            except RuntimeError as error:
                lack = NoThreadForActor(to_text(hosted.key), self._worker.address, str(error))
                say(message, to_failure(lack, hosted.key, self._worker.address))
        else:
            self._spawn(hosted, self._call_on_loop(hosted, message, buffers, say))

    def on_read_actor(self, connection: Any, message: ReadActor) -> None:
        """Read an attribute, whatever the actor does just now.  On the loop."""
        say = _replier(self._loop, connection)
        hosted = self._meant(message, say)
        if hosted is not None:
            self._spawn(hosted, self._read(hosted, message, say))

    def _meant(self, message: CallActor | ReadActor, say: Say) -> Hosted | None:
        """The actor that is meant; if it is not here, whoever asks is told."""
        hosted = self._by_key.get(message.key)
        if hosted is not None and not self._closing and message.run in (0, hosted.run):
            return hosted
        error = NoSuchActor(to_text(message.key), self._worker.address)
        say(message, to_failure(error, message.key, self._worker.address))
        return None

    def _spawn(self, hosted: Hosted, work: Any) -> asyncio.Task[Any]:
        """Run `work` on the loop, until we close."""
        task: asyncio.Task[Any] = self._loop.create_task(work, context=hosted.context.copy())
        self._on_loop.add(task)
        task.add_done_callback(self._on_loop.discard)
        if self._closing:
            task.cancel()
        return task

    def _put(self, hosted: Hosted, job: Callable[[], None]) -> None:
        """Have the actor's thread do something, after all that it was asked for before.

        Raises:
            RuntimeError: the system gives it no thread.
        """
        if hosted.thread is None:
            thread = threading.Thread(
                target=_work,
                args=(hosted.queue,),
                name=f"shoal-actor-{hosted.key}"[:100],
                daemon=True,  # so that a call which never ends can be left behind
            )
            thread.start()
            hosted.thread = thread
            self._threads.add(thread)
        hosted.queue.put(job)

    def _call(self, hosted: Hosted, message: CallActor, buffers: list[Any], say: Say) -> None:
        """Call a method and answer.  In the actor's thread."""
        if not self._closing:
            hosted.context.copy().run(self._call_inside, hosted, message, buffers, say)

    def _call_inside(
        self, hosted: Hosted, message: CallActor, buffers: list[Any], say: Say
    ) -> None:
        _thread.actor = hosted
        try:
            args, kwargs = _loaded(message, buffers)
            with self._turns.of(hosted):
                value = getattr(hosted.instance, message.method)(*args, **kwargs)
                del args, kwargs
                if not inspect.isawaitable(value):
                    say(message, _packed(value))
                    return
            later = self._await_later(hosted, message, value, say)
            self._loop.call_soon_threadsafe(self._spawn, hosted, later)
        except BaseException as error:
            say(message, self._failure(hosted, error))
        finally:
            _thread.actor = None

    async def _await_later(self, hosted: Hosted, message: Any, value: Any, say: Say) -> None:
        """A method that is no coroutine function has returned what is to be awaited."""
        try:
            say(message, _packed(await value))
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            say(message, self._failure(hosted, error))

    async def _call_on_loop(
        self, hosted: Hosted, message: CallActor, buffers: list[Any], say: Say
    ) -> None:
        """Call a method on the loop and answer; several are begun in their order."""
        line = hosted.loading
        if line is None:
            line = hosted.loading = asyncio.Lock()
        try:
            async with line:
                if sum([memoryview(buffer).nbytes for buffer in buffers]) < LARGE_NBYTES:
                    args, kwargs = _loaded(message, buffers)
                else:
                    args, kwargs = await aside(_loaded, message, buffers)
            value = getattr(hosted.instance, message.method)(*args, **kwargs)
            del args, kwargs
            if inspect.isawaitable(value):
                value = await value
            say(message, await _packed_aside(value))
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            say(message, self._failure(hosted, error))

    async def _read(self, hosted: Hosted, message: ReadActor, say: Say) -> None:
        """Read an attribute and answer."""
        try:
            if _is_computed(hosted, message.name):
                value = await aside(getattr, hosted.instance, message.name)
            else:
                value = getattr(hosted.instance, message.name)
            say(message, await _packed_aside(value))
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            say(message, self._failure(hosted, error))

    def _failure(self, hosted: Hosted, error: BaseException) -> Failure:
        """What was raised, from where the user's code begins."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
            trace = trace.tb_next
        BaseException.with_traceback(error, trace)
        failure = to_failure(error, hosted.key, self._worker.address)
        BaseException.with_traceback(error, None)  # its frames hold the arguments
        return failure

    # --- from an actor's thread --------------------------------------------------------------

    def nearby(self, key: Key, run: RunId) -> Nearby | None:
        """An actor that another one of this worker may call in its own thread."""
        hosted = self._by_key.get(key) if getattr(_thread, "actor", None) is not None else None
        if hosted is None or run not in (0, hosted.run):
            return None
        return Nearby(self._turns, self._loop, hosted, partial(self._begin_beside, hosted))

    def _begin_beside(self, hosted: Hosted, coming: Any, end: Ending) -> None:
        """Run a coroutine of an actor on the loop; `end` is told, at the latest as we close."""

        def ended(task: asyncio.Task[tuple[Any, BaseException | None]]) -> None:
            if task.cancelled():
                why = "the worker closes"
                end(None, ActorLost(to_text(hosted.key), self._worker.address, why))
            else:
                end(*task.result())

        def start() -> None:
            self._spawn(hosted, outcome).add_done_callback(ended)

        outcome = _outcome(coming)
        try:
            self._loop.call_soon_threadsafe(start)
        except RuntimeError:  # the loop was closed under a call that was left behind
            outcome.close()
            coming.close()
            raise


class Nearby:
    """An actor as seen from the thread of another one on the same worker, or from its own."""

    def __init__(
        self,
        turns: Turns,
        loop: asyncio.AbstractEventLoop,
        hosted: Hosted,
        begin: Callable[[Any, Ending], None],
    ) -> None:
        self._turns = turns
        self.loop = loop
        self._hosted = hosted
        self.begin = begin
        """Have the loop run a coroutine that `call` has returned, and tell somebody its end."""

    def read(self, name: str) -> Any:
        """An attribute as it is."""
        return getattr(self._hosted.instance, name)

    def call(self, name: str, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """Call a method here, once the other actor has nothing else to do.

        Returns what it returns, which may be a coroutine; that runs on the loop, if anywhere.
        """
        with self._turns.of(self._hosted):
            return self._hosted.context.copy().run(
                getattr(self._hosted.instance, name), *args, **kwargs
            )


def _work(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    """An actor's thread; it holds the actor only while that is called."""
    while (job := queue.get()) is not None:
        job()
        del job


def _enter(task: RunContext) -> None:
    """What code of an actor is part of: the run that has made it."""
    current_run.set(task)
    current_worker.set(task.worker)


async def _outcome(coming: Any) -> tuple[Any, BaseException | None]:
    """(value, what was raised): a call that raises SystemExit must not end the loop."""
    try:
        return await coming, None
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        return None, error


def _is_coroutine_method(hosted: Hosted, name: str) -> bool:
    try:
        method = getattr(type(hosted.instance), name, None)
    except Exception:
        return False  # the actor's thread will find out, and tell whoever calls
    return inspect.iscoroutinefunction(method)


def _is_computed(hosted: Hosted, name: str) -> bool:
    """Whether reading an attribute calls what users wrote, such as a property."""
    found = inspect.getattr_static(type(hosted.instance), name, None)
    return hasattr(type(found), "__get__") and not isinstance(found, MemberDescriptorType)


def _loaded(message: CallActor, buffers: Sequence[Buffer]) -> tuple[Any, dict[str, Any]]:
    try:
        loaded = load(message.arguments, buffers)
    except BaseException as error:
        tell_unreadable(error, message.key, "arguments of a call")
        raise
    return cast("tuple[Any, dict[str, Any]]", loaded)


def _packed(value: object) -> Parcel:
    """A value as it is now: what the actor changes after this must not travel."""
    stream, buffers = dump(value)
    return stream, [bytearray(buffer) for buffer in buffers]


async def _packed_aside(value: object) -> Parcel:
    """As `_packed`, not on the loop if that takes long."""
    if nbytes_of(value) < LARGE_NBYTES:
        return _packed(value)
    return await aside(_packed, value)


def _replier(loop: asyncio.AbstractEventLoop, connection: Any) -> Say:
    """Answers on that connection, unless whoever has asked has gone."""

    def reply(message: Any, said: Parcel | Failure) -> None:
        if connection.closed:
            return
        if isinstance(said, Failure):
            connection.send([Refusal(message.request, said)])
            return
        try:
            connection.send_with_buffers(ActorReply(message.request, said[0]), said[1])
        except Exception as error:  # too large for a frame
            connection.send([Refusal(message.request, to_failure(error, message.key))])

    def say(message: Any, said: Parcel | Failure) -> None:
        try:
            loop.call_soon_threadsafe(reply, message, said)
        except RuntimeError:
            pass  # the loop was closed under a call that was left behind

    return say
