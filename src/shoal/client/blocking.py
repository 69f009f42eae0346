"""The thread whose loop serves all blocking clients of a process, and waiting for it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast

from dask.utils import shorten_traceback

from shoal.client.errors import BlockingCall, ClientClosed
from shoal.client.loops import new_loop
from shoal.comms.cancellation import is_our_cancellation

T = TypeVar("T")

_logger = logging.getLogger("shoal.client")


class LoopThread:
    """An event loop in a daemon thread, shared by whoever acquires it, stopped by the last."""

    _shared: ClassVar[LoopThread | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def acquire(cls) -> LoopThread:
        """The process's one, started if need be; give it back with `release`."""
        with cls._lock:
            shared = cls._shared
            if shared is None or not shared.is_alive:
                shared = cls._shared = cls()
            shared._nusers += 1
            return shared

    def __init__(self) -> None:
        self._nusers = 0
        self._pid = os.getpid()
        self.loop = new_loop()
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="shoal-client-loop", daemon=True
        )
        self._thread.start()
        started.wait()

    def __repr__(self) -> str:
        state = "alive" if self.is_alive else "ended"
        return f"<LoopThread {state}, {self._nusers} users>"

    @property
    def is_alive(self) -> bool:
        """Whether the loop runs; it does not in a child of a fork."""
        return self._thread.is_alive() and not self.loop.is_closed() and self._pid == os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this loop."""
        # Not by the thread's number, which another may get once this one has ended, or in a fork.
        return asyncio._get_running_loop() is self.loop

    def release(self) -> None:
        """One user less; the last one stops the loop, and waits for that."""
        with LoopThread._lock:
            self._nusers -= 1
            if self._nusers > 0:
                return
            if LoopThread._shared is self:
                LoopThread._shared = None
        if not self.is_alive:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_here:
            self._thread.join(5.0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be a user of it, so that it lives for as long as the block at least."""
        with LoopThread._lock:
            self._nusers += 1
        try:
            yield
        finally:
            self.release()

    def run(self, work: Coroutine[Any, Any, T], timeout_seconds: float | None = None) -> T:
        """Run `work` on the loop, and wait for what it returns or raises.

        Ctrl-C cancels it.

        Raises:
            BlockingCall: the caller is on the loop, which would wait for itself.
            ClientClosed: the loop has ended with its last client.
            TimeoutError: `timeout_seconds` passed; the work is cancelled.
        """
        if self.is_here:
            work.close()
            raise BlockingCall
        if not self.is_alive:  # its last client has gone, or we are a child of a fork
            work.close()
            raise ClientClosed("that is asked", "closed")
        outcome: list[tuple[T | None, BaseException | None]] = []
        guarded = _guarded(work, outcome)
        try:
            future = asyncio.run_coroutine_threadsafe(guarded, self.loop)
        except RuntimeError:
            guarded.close()  # the loop was closed
            work.close()
            raise ClientClosed("that is asked", "closed") from None
        try:
            future.result(timeout_seconds)
        except BaseException:
            future.cancel()  # nothing happens if it has ended by itself
            raise
        with _Shortened():
            return taken(outcome)

    async def run_from_elsewhere(self, work: Coroutine[Any, Any, T]) -> T:
        """As `run`, awaited on another loop."""
        if not self.is_alive:
            work.close()
            raise ClientClosed("that is asked", "closed")
        outcome: list[tuple[T | None, BaseException | None]] = []
        future = asyncio.run_coroutine_threadsafe(_guarded(work, outcome), self.loop)
        await asyncio.wrap_future(future)
        return taken(outcome)

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Have `function(*args)` called on the loop; does not wait."""
        self.loop.call_soon_threadsafe(function, *args)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(started.set)
        try:
            self.loop.run_forever()
        finally:
            try:
                tasks = asyncio.all_tasks(self.loop)
                for task in tasks:
                    task.cancel()
                if tasks:
                    self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
                self.loop.run_until_complete(self.loop.shutdown_asyncgens())
                self.loop.run_until_complete(self.loop.shutdown_default_executor())
            finally:
                asyncio.set_event_loop(None)
                self.loop.close()


class _Shortened(shorten_traceback):
    """Dask's way to leave out frames that tell a user nothing, for exceptions of all sorts.

    One may forbid that it is changed, or raise when asked whether it is true.
    """

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, trace: Any) -> None:
        if error is not None and trace is not None:
            BaseException.with_traceback(error, self.shorten(trace))


def shorten(error: BaseException) -> None:
    """Leave only the outermost of our frames in the traceback of what is about to leave us."""
    trace = error.__traceback__
    if trace is not None:
        BaseException.with_traceback(error, _Shortened.shorten(trace))


class Latch:
    """Lets one thread wait until a number of records have ended; made for one wait.

    Cheaper than an Event: one lock that is taken at birth.
    """

    __slots__ = ("_lock", "nleft")

    def __init__(self) -> None:
        self.nleft = 1
        self._lock = threading.Lock()
        self._lock.acquire()

    def __call__(self, record: object) -> None:
        """A record has ended; on the loop."""
        self.nleft -= 1
        if self.nleft == 0:
            self._lock.release()

    def wait(self, timeout_seconds: float | None) -> bool:
        """Whether it came to that in time.  Ctrl-C ends the wait."""
        if timeout_seconds is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=max(0.0, min(timeout_seconds, threading.TIMEOUT_MAX)))


class Callbacks:
    """Calls users' functions one after another in a thread that lives while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[tuple[Callable[[Any], object], Any]] = []
        self._running = False

    def put(self, function: Callable[[Any], object], argument: Any) -> None:
        """Call `function(argument)` soon."""
        with self._lock:
            self._queue.append((function, argument))
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._work, name="shoal-client-callbacks", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                queue, self._queue = self._queue, []
                if not queue:
                    self._running = False
                    return
            for function, argument in queue:
                try:
                    function(argument)
                except BaseException:  # SystemExit, too, must not keep the others from their turn
                    _logger.exception("A callback of %r raised", argument)
            del queue, function, argument


CALLBACKS = Callbacks()


async def _guarded(
    work: Coroutine[Any, Any, T], outcome: list[tuple[T | None, BaseException | None]]
) -> None:
    """Add what `work` returns or raises: a SystemExit of a task must not end the loop itself.

    It is not returned, because the futures that would carry it refer to each other: results, and
    all that an error's frames refer to, would live until the next garbage collection.
    """
    try:
        outcome.append((await work, None))
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        outcome.append((None, _before_coroutines(error)))


def _before_coroutines(error: BaseException) -> BaseException:
    """A StopIteration can't leave a coroutine, which raises a RuntimeError in its place."""
    if type(error) is RuntimeError and str(error) == "coroutine raised StopIteration":
        return error if error.__cause__ is None else error.__cause__
    return error


def taken(outcome: list[tuple[T | None, BaseException | None]]) -> T:
    """What was added, or raise it."""
    value, error = outcome.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error  # it holds this frame, which would hold it
    return cast(T, value)
