"""Runs that may take only so long, or that nobody wants: they are ended, or given up.

First the run is interrupted, which ends Python code and coroutines.  Native code does not hear of
it; so when some seconds have passed the run has failed whatever its thread does, and that thread is
left behind, with a substitute in its place.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from threading import Thread
from time import monotonic, time
from typing import Final, Protocol

from shoal.observe.errors import TaskTimeout
from shoal.observe.stacks import frames_of
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.worker.model.entities import FAILED, WITHDRAWN, Run, RunEnded
from shoal.worker.shell.context import Host
from shoal.worker.shell.errors import ManyLeftBehind, ThreadLeftBehind
from shoal.worker.shell.execution import Execution, Job
from shoal.worker.shell.interruption import OVERDUE, UNWANTED

logger = logging.getLogger("shoal.worker")

GRACE_SECONDS: Final = 5.0
"""What a run that was told to end may take for it, if nobody says otherwise."""


class Threads(Protocol):
    """Who has the threads."""

    def leave_behind(self, job: Job) -> Thread | None:
        """Go on without the thread that is busy with it; None: it came back just now."""

    def report(self, ended: RunEnded) -> None:
        """A run has ended without its thread."""


class TimeLimits:
    """Watches over the runs of one worker that have a limit.  Methods are for the loop, but one."""

    def __init__(
        self, host: Host, execution: Execution, threads: Threads, grace_seconds: float
    ) -> None:
        """`grace_seconds`: what a run that was told to end may take for it."""
        self._host = host
        self._execution = execution
        self._threads = threads
        self._grace_seconds = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[Run, Job] = {}  # handed to the threads, and not reported
        self._timers: dict[Run, asyncio.TimerHandle] = {}
        self._left_behind: list[Thread] = []

    def enter(self, job: Job) -> None:
        """It was handed to the threads, and has a limit."""
        self._jobs[job.run] = job

    def leave(self, runs: Iterable[Run]) -> None:
        """These were reported, or taken back.  Cost: nothing while no run has a limit."""
        if not self._jobs:
            return
        for run in runs:
            self._jobs.pop(run, None)
            timer = self._timers.pop(run, None)
            if timer is not None:
                timer.cancel()

    def begun(self, job: Job) -> None:
        """A thread has begun it: from now on its time passes.  From that thread."""
        try:
            self._loop.call_soon_threadsafe(self._watch, job, monotonic())
        except RuntimeError:
            pass  # the loop was closed under a thread that was left behind

    def end(self, runs: Iterable[Run]) -> None:
        """Nobody wants what these give: those that have a limit are ended before it is over."""
        for run in runs:
            job = self._jobs.get(run)
            if job is not None:
                self._interrupt(job, UNWANTED, monotonic())

    def close(self) -> None:
        """Nothing is ended any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._jobs.clear()

    def _watch(self, job: Job, begun_at: float) -> None:
        interruption = job.interruption
        if interruption is None or job.run not in self._jobs or interruption.why:
            return
        seconds = interruption.timeout_seconds - (monotonic() - begun_at)
        self._timers[job.run] = self._loop.call_later(
            max(0.0, seconds), self._interrupt, job, OVERDUE, begun_at
        )

    def _interrupt(self, job: Job, why: str, begun_at: float) -> None:
        run, interruption = job.run, job.interruption
        if interruption is None or interruption.why:
            return
        interruption.interrupt(why)
        self._execution.cancel(run)
        timer = self._timers.pop(run, None)
        if timer is not None:
            timer.cancel()
        self._timers[run] = self._loop.call_later(self._grace_seconds, self._give_up, job, begun_at)

    def _give_up(self, job: Job, begun_at: float) -> None:
        """It was told to end, and has not: its thread is in native code, or does not listen."""
        run, interruption = job.run, job.interruption
        thread = self._threads.leave_behind(job)
        if thread is None or interruption is None:
            return
        limit, seconds = interruption.timeout_seconds, monotonic() - begun_at
        frames = frames_of(sys._current_frames().get(thread.ident or 0))
        where = frames[-1].strip().partition("\n")[0] if frames else ""
        self._left_behind = [each for each in self._left_behind if each.is_alive()]
        self._left_behind.append(thread)
        key, nleft = to_text(run.key), len(self._left_behind)
        name, address = self._host.name, self._host.address
        is_overdue = interruption.why is OVERDUE
        logger.warning(
            "%s", ThreadLeftBehind(key, thread.name, self._grace_seconds, where, is_overdue, nleft)
        )
        if nleft > self._host.nthreads:
            logger.warning("%s", ManyLeftBehind(str(name), nleft, self._host.nthreads))
        ended = RunEnded(run, WITHDRAWN, seconds=seconds, started_at=time() - seconds)
        if is_overdue:
            error = TaskTimeout(key, limit, seconds, where, is_over=False)
            ended.how, ended.failure = FAILED, to_failure(error, run.key, address)
        self._threads.report(ended)
