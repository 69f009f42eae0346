"""One run from its start to its end, in whichever thread it is executed.

Whatever a task raises, `SystemExit` and the like included, is the end of the run and not of the
thread.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as ConcurrentFuture
from contextvars import Context, copy_context
from time import perf_counter, time
from types import CoroutineType, TracebackType
from typing import Any, Final

from shoal.comms.cancellation import is_our_cancellation
from shoal.errors import Reschedule
from shoal.ids import Key
from shoal.observe.errors import RunInterrupted, TaskTimeout
from shoal.protocol.exceptions import tell_unreadable, to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import RunTask
from shoal.protocol.payload import dump_small, kind_of, load, nbytes_of
from shoal.shuffle.errors import RunTakenBack, ShardsUnavailable
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    RESCHEDULED,
    WITHDRAWN,
    Run,
    RunDeprived,
    RunEnded,
)
from shoal.worker.shell.context import Host, RunContext, current_run
from shoal.worker.shell.evaluation import evaluate_item
from shoal.worker.shell.functions import Code, call
from shoal.worker.shell.interruption import OVERDUE, Interruption

_logger = logging.getLogger("shoal.worker")

PICKLE_BYTES: Final = 512
"""What pickling may add to a value of the inline limit: names of modules, shape and the like."""

_INLINE_FACTOR: Final = 16
"""A value that takes this many times the inline limit in memory is not even tried."""

_OWN_MODULES: Final = frozenset((__name__, f"{__package__}.threads", evaluate_item.__module__))
"""Whose frames a traceback does not begin with."""

_OURS: Final = (RunInterrupted, asyncio.CancelledError, CancelledError)
"""What a run raises that was told to end, and has nothing to say about it."""


class Inline:
    """An input that came with its run, still pickled."""

    __slots__ = ("payload",)

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


class Job:
    """What a thread needs for one run."""

    __slots__ = ("code", "has_inline", "inputs", "interruption", "reported", "run")

    def __init__(self, run: Run, code: Code, inputs: list[object], has_inline: bool) -> None:
        """`inputs`: values in the order of the arguments; Inline ones if `has_inline`."""
        self.run = run
        self.code = code
        self.inputs = inputs
        self.has_inline = has_inline
        self.reported = False
        self.interruption: Interruption | None = None  # of a run that may be ended
        if type(run.message) is not RunTask and run.timeout_seconds:
            self.interruption = Interruption(run.timeout_seconds)

    def may_report(self) -> bool:
        """Whether its thread says how it has ended; False: that thread was given up."""
        return self.interruption is None or self.interruption.may_report()


class Execution:
    """Executes jobs, one at a time in each thread that asks; coroutines on the worker's loop."""

    def __init__(self, host: Host) -> None:
        """To be made on the loop that coroutines shall run on."""
        self.inline_bytes_max = 1024
        self.has_default = False  # an executor has all that name none, in place of threads of ours
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._coroutines: dict[asyncio.Task[Any], Context] = {}
        self._closing = False

    def close(self) -> None:
        """Cancel the coroutines under way; later ones are not begun.  On the loop."""
        self._closing = True
        for task in list(self._coroutines):
            task.cancel()

    def coroutines(self) -> dict[Run, asyncio.Task[Any]]:
        """Runs that are coroutines, and what runs them.  On the loop."""
        found = {}
        for task, context in self._coroutines.items():
            running = context.get(current_run)
            if running is not None:
                found[running.run] = task
        return found

    def execute(self, job: Job) -> tuple[RunEnded, object]:
        """Run a job to its end, whatever that is."""
        started_at = time()
        context = copy_context()  # what a task sets is its own
        if job.interruption is not None:
            return self._execute_until(job, job.interruption, context, started_at)
        try:
            return context.run(self._call, job, context, started_at)
        except BaseException as error:
            return self.failed(job.run, error, started_at), None

    def _execute_until(
        self, job: Job, interruption: Interruption, context: Context, started_at: float
    ) -> tuple[RunEnded, object]:
        """The same for a run that may be interrupted, wherever that strikes.

        It does so once at most, so what follows it is safe.  What the run returns in spite of it is
        its result.
        """
        outcome: tuple[RunEnded, object] | None = None
        error: BaseException | None = None
        try:
            try:
                interruption.begin()
                outcome = context.run(self._call, job, context, started_at)
            except BaseException as raised:
                error = raised
            interruption.close()
        except BaseException as raised:
            interruption.close()
            error = raised if error is None else error
        if outcome is not None:
            return outcome
        assert error is not None
        run, why = job.run, interruption.why
        if why is OVERDUE:
            error = self._overdue(run, error, interruption.timeout_seconds, started_at)
        elif why:
            seconds = max(0.0, time() - started_at)
            return RunEnded(run, WITHDRAWN, seconds=seconds, started_at=started_at), None
        return self.failed(run, error, started_at), None

    def _overdue(
        self, run: Run, error: BaseException, limit_seconds: float, started_at: float
    ) -> TaskTimeout:
        """What the run has failed with, instead of what it raised as it was told to end."""
        seconds = max(0.0, time() - started_at)
        timeout = TaskTimeout(to_text(run.key), limit_seconds, seconds)
        cause = None if issubclass(type(error), _OURS) else error
        trace = _without_own_frames(error.__traceback__)
        timeout.__cause__, timeout.__suppress_context__ = cause, True
        return timeout.with_traceback(trace)

    def cancel(self, run: Run) -> None:
        """If it is a coroutine that is under way, have it cancelled.  On the loop."""
        task = self.coroutines().get(run) if self._coroutines else None
        if task is not None:
            task.cancel()

    def failed(self, run: Run, error: BaseException, started_at: float) -> RunEnded:
        """The end of a run that raised.  Never raises, whatever `error` does when looked at."""
        seconds = max(0.0, time() - started_at)
        if issubclass(type(error), Reschedule):  # which asks the error nothing
            if type(error) is ShardsUnavailable:
                return RunDeprived(run, error.missing, error.unreachable, error.lacking)
            how = WITHDRAWN if type(error) is RunTakenBack else RESCHEDULED
            return RunEnded(run, how, seconds=seconds, started_at=started_at)
        _drop_own_frames(error)
        failure = to_failure(error, run.key, self._host.address)
        try:
            _logger.info("Exception in task %s:\n%s", run.key, failure.traceback_text)
        except BaseException:
            pass  # tasks may have broken the clock that log records ask
        try:
            BaseException.with_traceback(error, None)  # its frames hold the arguments
        except BaseException:
            pass  # thrown in from outside just now; the frames stay a little longer
        return RunEnded(run, FAILED, seconds=seconds, started_at=started_at, failure=failure)

    def _call(self, job: Job, context: Context, started_at: float) -> tuple[RunEnded, object]:
        run = job.run
        message = run.message
        inside = RunContext(self._host, run)
        current_run.set(inside)
        inputs = job.inputs
        if job.has_inline:
            inputs = _loaded(run, inputs)
        try:
            function, args, kwargs = call(job.code, message.argument, inputs)
        except BaseException as error:
            tell_unreadable(error, run.key, "function or the arguments")
            raise
        del inputs
        started = inside.started_at = perf_counter()
        names_none = type(message) is RunTask or not getattr(message, "executor", "")
        if names_none and not self.has_default:
            value = function(*args, **kwargs)
        else:
            if job.interruption is not None:
                job.interruption.close()  # nothing is raised in a thread that has others' locks
            value = self._host.executors.run(message, function, args, kwargs)
        if type(value) is CoroutineType:
            if job.interruption is not None:
                job.interruption.close()  # it is cancelled instead
            value = self._await(value, context, job.interruption)
        seconds = perf_counter() - started
        if inside.actor is not None:  # which is known everywhere by its proxy, small or not
            proxy, kind = inside.actor
            ended = RunEnded(run, FINISHED, len(proxy), seconds, proxy, kind, started_at)
            return ended, value
        nbytes = nbytes_of(value)
        inline = None
        if nbytes <= _INLINE_FACTOR * self.inline_bytes_max:
            inline = dump_small(value, self.inline_bytes_max + PICKLE_BYTES)
        kind = kind_of(value) if inline is None else ""
        return RunEnded(run, FINISHED, nbytes, seconds, inline, kind, started_at), value

    def _await(
        self,
        coroutine: CoroutineType[Any, Any, Any],
        context: Context,
        interruption: Interruption | None,
    ) -> object:
        """Have the worker's loop run a task that is a coroutine, and wait for it here."""
        outcome: ConcurrentFuture[object] = ConcurrentFuture()
        inner = context.copy()  # the thread is inside of `context` itself

        def start() -> None:
            if self._closing or (interruption is not None and interruption.why):
                coroutine.close()
                outcome.cancel()
                return
            task = self._loop.create_task(_guarded(coroutine), context=inner)
            self._coroutines[task] = inner
            task.add_done_callback(finish)

        def finish(task: asyncio.Task[Any]) -> None:
            self._coroutines.pop(task, None)
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


def inline_of(value: object, nbytes: int, nbytes_max: int) -> bytes | None:
    """A result pickled, if it is so small that it travels with the news of it; else None.

    As for results of runs.  Cost: that of pickling something small.

    Args:
        nbytes_max: up to which size they do.
    """
    if nbytes > _INLINE_FACTOR * nbytes_max:
        return None
    return dump_small(value, nbytes_max + PICKLE_BYTES)


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


def _without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """From where on it is the user's code."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _OWN_MODULES:
        trace = trace.tb_next
    return trace


def _drop_own_frames(error: BaseException) -> None:
    """Let the traceback begin with the user's code."""
    trace = _without_own_frames(sys.exc_info()[2])  # what `error` says may be of its own making
    if trace is not None:
        BaseException.with_traceback(error, trace)
