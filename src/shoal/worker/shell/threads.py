"""The threads that run tasks: own ones, since a run in a pool costs ten times as much.

Runs come in by a queue; how they ended goes out by a deque, with one wake-up of the loop for all
that have ended until it wakes.  Whatever a task raises, `SystemExit` and the like included, is
the end of the run and not of the thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future as ConcurrentFuture
from contextvars import Context, copy_context
from queue import SimpleQueue
from time import monotonic, perf_counter, time
from types import CoroutineType
from typing import Any, Final

from shoal.comms.cancellation import is_our_cancellation
from shoal.ids import Key
from shoal.protocol.exceptions import tell_unreadable, to_failure
from shoal.protocol.payload import dump_small, kind_of, load, nbytes_of
from shoal.worker.model.entities import FAILED, FINISHED, Run, RunEnded
from shoal.worker.shell.context import Host, RunContext, current_run
from shoal.worker.shell.errors import NoSubstitute
from shoal.worker.shell.evaluation import evaluate_item
from shoal.worker.shell.functions import Code, call

logger = logging.getLogger("shoal.worker")

PICKLE_BYTES: Final = 512
"""What pickling may add to a value of the inline limit: names of modules, shape and the like."""

_INLINE_FACTOR: Final = 16
"""A value that takes this many times the inline limit in memory is not even tried."""

_OWN_MODULES: Final = frozenset((__name__, evaluate_item.__module__))
"""Whose frames a traceback does not begin with."""


_nforks = 0  # between the first process and this one


def _count_fork() -> None:
    global _nforks  # noqa: PLW0603 -- of the process, as a fork is
    _nforks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Inline:
    """An input that came with its run, still pickled."""

    __slots__ = ("payload",)

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


class Job:
    """What a thread needs for one run."""

    __slots__ = ("code", "has_inline", "inputs", "reported", "run")

    def __init__(self, run: Run, code: Code, inputs: list[object], has_inline: bool) -> None:
        """`inputs`: values in the order of the arguments; Inline ones if `has_inline`."""
        self.run = run
        self.code = code
        self.inputs = inputs
        self.has_inline = has_inline
        self.reported = False


class _Bell:
    """Has the loop call back soon after a thread rang: half the price of asyncio's own way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._descriptor = -1
        if hasattr(os, "eventfd"):
            self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            loop.add_reader(self._descriptor, self._rung)

    def ring(self) -> None:
        """From any thread."""
        if self._descriptor >= 0:
            os.eventfd_write(self._descriptor, 1)
            return
        try:
            self._loop.call_soon_threadsafe(self._callback)
        except RuntimeError:
            pass  # the loop was closed under a thread that was left behind

    def _rung(self) -> None:
        os.eventfd_read(self._descriptor)
        self._callback()

    def remove(self, *, still_used: bool) -> None:
        """The loop shall not hear it any more; threads that were left behind may still ring."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            if not still_used:
                self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # Not before the last thread is through with it: the number may mean another file then.
        self._close()


class RunThreads:
    """Runs jobs in `nthreads` threads.  All methods are for the loop's thread."""

    def __init__(
        self,
        host: Host,
        nthreads: int,
        on_ended: Callable[[list[tuple[RunEnded, object]]], None],
    ) -> None:
        """`on_ended`: called on the loop with (how it ended, its value) of each job in turn."""
        self.inline_bytes_max = 1024
        self._host = host
        self._on_ended = on_ended
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Run | None] = SimpleQueue()
        # A job is here until a thread, or `withdraw`, takes it out: whoever does has it.
        self._waiting: dict[Run, Job] = {}
        self._ended: deque[tuple[RunEnded, object]] = deque()
        self._woken = False
        self._bell = _Bell(self._loop, self._report)
        self._executing: dict[int, Job] = {}  # by number of the thread
        self._coroutines: set[asyncio.Task[Any]] = set()
        self._closing = False
        self._nforks = _nforks
        self._nthreads = nthreads
        self._nsurplus = 0  # threads that shall end as soon as they are through with a job
        self._leaving = threading.Lock()
        self._threads: dict[int, threading.Thread] = {}
        self._nstarted = 0
        self._told_shortage = False
        for _ in range(nthreads):
            self._start_thread()

    @property
    def nexecuting(self) -> int:
        """How many runs are being executed."""
        return len(self._executing)

    def executing(self) -> list[Run]:
        """The runs that are being executed now."""
        return [job.run for job in list(self._executing.values())]

    def is_executing(self, run: Run) -> bool:
        """Whether a thread is busy with it.  Cost: O(threads)."""
        return any(job.run is run for job in list(self._executing.values()))

    def start(self, jobs: Iterable[Job]) -> None:
        """Queue jobs, in their order.  Cost: 0.2 us for each."""
        put, waiting = self._queue.put, self._waiting
        for job in jobs:
            waiting[job.run] = job
            put(job.run)

    def substitute(self, nwaiting: int) -> None:
        """So many threads wait for what other tasks compute: keep as many more.

        If the system has no more threads, tasks that wait keep theirs from others, with a line in
        the log; it is tried again with the next one that waits.
        """
        if self._closing:
            return
        with self._leaving:
            nsurplus = len(self._threads) - self._nthreads - nwaiting
            self._nsurplus = max(0, nsurplus)
        try:
            for _ in range(-nsurplus):
                self._start_thread()
        except RuntimeError as error:
            if not self._told_shortage:
                self._told_shortage = True
                logger.warning("%s", NoSubstitute(len(self._threads), nwaiting, str(error)))
        for _ in range(nsurplus):
            self._queue.put(None)

    def _start_thread(self) -> None:
        number = self._nstarted
        self._nstarted += 1
        thread = self._threads[number] = threading.Thread(
            target=self._work,
            args=(number,),
            name=f"shoal-worker-{self._host.name}-thread-{number}",
            daemon=True,  # so that one which never comes back can be left behind
        )
        try:
            thread.start()
        except RuntimeError:
            del self._threads[number]
            raise

    def withdraw(self, runs: Iterable[Run]) -> list[Run]:
        """Take jobs back; returns those that had not begun, which will not be reported."""
        return [run for run in runs if self._waiting.pop(run, None) is not None]

    async def close(self, timeout_seconds: float) -> int:
        """End the threads.  What waits is dropped, what executes may end within the time.

        Returns how many threads did not come back; they are left behind, with a line in the log.
        """
        self._closing = True
        self._waiting.clear()
        with self._leaving:
            threads = list(self._threads.values())
        for _ in threads:
            self._queue.put(None)
        for task in list(self._coroutines):
            task.cancel()
        deadline = monotonic() + timeout_seconds
        pause_seconds = 0.0005
        while any(thread.is_alive() for thread in threads) and monotonic() < deadline:
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, 0.05)
        stuck = [thread for thread in threads if thread.is_alive()]
        if stuck:
            keys = ", ".join(run.key for run in self.executing()[:3])
            logger.warning(
                "%d of %d threads still run tasks (%s) %g s after the worker was told to close; "
                "they are left behind and end with the process",
                len(stuck),
                len(threads),
                keys,
                timeout_seconds,
            )
        for thread in threads:
            if thread not in stuck:
                thread.join()
        self._ended.clear()
        self._bell.remove(still_used=bool(stuck))
        return len(stuck)

    # --- in the threads ----------------------------------------------------------------------

    def _work(self, number: int) -> None:
        """Run jobs until told to end, whatever is thrown into this thread from outside."""
        while True:
            try:
                self._work_on(number)
                return
            except BaseException as error:
                # Somebody's watchdog was late: its exception struck between two runs, or as one
                # was being reported, and not the run that it was meant for.
                self._resume(number, error)

    def _work_on(self, number: int) -> None:
        get, take, executing = self._queue.get, self._waiting.pop, self._executing
        recursion_limit, set_limit = sys.getrecursionlimit, sys.setrecursionlimit
        while True:
            run = get()
            if run is None:
                if self._closing or self._may_leave(number):
                    return
                continue
            job = take(run, None)
            if job is None:
                del run
                continue  # withdrawn
            executing[number] = job
            limit = recursion_limit()
            ended = self._execute(job)
            if recursion_limit() < limit:
                set_limit(limit)  # it is everybody's, and the loop needs more than a task may leave
            if _nforks != self._nforks:
                os._exit(0)  # a fork came back from the task: the original reports, and goes on
            job.reported = True  # and so it is: nothing can strike between these two
            self._ended.append(ended)
            del executing[number]
            if not self._woken:
                self._woken = True
                self._bell.ring()
            del run, job, ended  # or the last value would live until the next run
            if self._nsurplus and self._may_leave(number):
                return

    def _resume(self, number: int, error: BaseException) -> None:
        """Make up for what the thread may have dropped when `error` struck it."""
        job = self._executing.pop(number, None)
        if job is not None and not job.reported:
            self._ended.append((self._failed(job.run, error, time()), None))
        for run in list(self._waiting):
            self._queue.put(run)  # one of them may be in no queue; twice does no harm
        if self._closing:
            self._queue.put(None)
        self._woken = True
        self._bell.ring()

    def _may_leave(self, number: int) -> bool:
        """Whether this thread is one too many; it ends then."""
        with self._leaving:
            if not self._nsurplus:
                return False
            self._nsurplus -= 1
            del self._threads[number]
            return True

    def _execute(self, job: Job) -> tuple[RunEnded, object]:
        """Run a job to its end, whatever that is."""
        started_at = time()
        context = copy_context()  # what a task sets is its own
        try:
            return context.run(self._call, job, context, started_at)
        except BaseException as error:
            return self._failed(job.run, error, started_at), None

    def _failed(self, run: Run, error: BaseException, started_at: float) -> RunEnded:
        """The end of a run that raised.  Never raises, whatever `error` does when looked at."""
        seconds = max(0.0, time() - started_at)
        _drop_own_frames(error)
        failure = to_failure(error, run.key, self._host.address)
        try:
            BaseException.with_traceback(error, None)  # its frames hold the arguments
        except BaseException:
            pass  # thrown in from outside just now; the frames stay a little longer
        return RunEnded(run, FAILED, seconds=seconds, started_at=started_at, failure=failure)

    def _call(self, job: Job, context: Context, started_at: float) -> tuple[RunEnded, object]:
        run = job.run
        message = run.message
        current_run.set(RunContext(self._host, run))
        inputs = job.inputs
        if job.has_inline:
            inputs = _loaded(run, inputs)
        try:
            function, args, kwargs = call(job.code, message.argument, inputs)
        except BaseException as error:
            tell_unreadable(error, run.key, "function or the arguments")
            raise
        del inputs
        started = perf_counter()
        value = function(*args, **kwargs)
        if type(value) is CoroutineType:
            value = self._await(value, context)
        seconds = perf_counter() - started
        nbytes = nbytes_of(value)
        inline = None
        if nbytes <= _INLINE_FACTOR * self.inline_bytes_max:
            inline = dump_small(value, self.inline_bytes_max + PICKLE_BYTES)
        kind = kind_of(value) if inline is None else ""
        return RunEnded(run, FINISHED, nbytes, seconds, inline, kind, started_at), value

    def _await(self, coroutine: CoroutineType[Any, Any, Any], context: Context) -> object:
        """Have the worker's loop run a task that is a coroutine, and wait for it here."""
        outcome: ConcurrentFuture[object] = ConcurrentFuture()
        inner = context.copy()  # the thread is inside of `context` itself

        def start() -> None:
            if self._closing:
                coroutine.close()
                outcome.cancel()
                return
            task = self._loop.create_task(_guarded(coroutine), context=inner)
            self._coroutines.add(task)
            task.add_done_callback(finish)

        def finish(task: asyncio.Task[Any]) -> None:
            self._coroutines.discard(task)
            if task.cancelled():
                outcome.set_exception(asyncio.CancelledError())
                return
            value, error = task.result()
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(value)

        try:
            self._loop.call_soon_threadsafe(start)
        except RuntimeError:
            coroutine.close()
            raise
        return outcome.result()

    # --- on the loop -------------------------------------------------------------------------

    def _report(self) -> None:
        self._woken = False  # before looking: what ends from here on wakes us again
        ended: list[tuple[RunEnded, object]] = []
        take = self._ended.popleft
        while self._ended:
            ended.append(take())
        if ended and not self._closing:
            self._on_ended(ended)


async def _guarded(
    coroutine: CoroutineType[Any, Any, Any],
) -> tuple[object, BaseException | None]:
    """(value, what was raised): a task that raises SystemExit must not end the loop.

    GeneratorExit too: to return is a proper answer to it, should it mean that we are closed.
    """
    try:
        return await coroutine, None
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        return None, error


def _loaded(run: Run, inputs: Sequence[object]) -> list[object]:
    """The inputs, those that came with the run unpickled."""
    loaded: list[object] = []
    try:
        for item in inputs:
            loaded.append(load(item.payload) if type(item) is Inline else item)
    except BaseException as error:
        tell_unreadable(error, _key_of(run, len(loaded)))
        raise
    return loaded


def _key_of(run: Run, place: int) -> Key:
    """The key of an input that came with its run."""
    item = run.message.inputs[place]
    return Key("") if isinstance(item, int) else item.key


def _drop_own_frames(error: BaseException) -> None:
    """Let the traceback begin with the user's code."""
    trace = sys.exc_info()[2]  # what `error` itself says may be of its own making
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _OWN_MODULES:
        trace = trace.tb_next
    if trace is not None:
        BaseException.with_traceback(error, trace)
