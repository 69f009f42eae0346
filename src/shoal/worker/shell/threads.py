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
from queue import SimpleQueue
from time import monotonic, time

from shoal.ids import Key
from shoal.observe.stacks import frames_of, frames_of_coroutine
from shoal.worker.model.entities import Run, RunEnded
from shoal.worker.shell.bell import Bell
from shoal.worker.shell.context import Host, current_run
from shoal.worker.shell.errors import NoSubstitute, NoThreads
from shoal.worker.shell.execution import Execution, Job
from shoal.worker.shell.slots import Slots
from shoal.worker.shell.time_limits import GRACE_SECONDS, TimeLimits

logger = logging.getLogger("shoal.worker")

_nforks = 0  # between the first process and this one


def _count_fork() -> None:
    """What forks in a task is part of that task; the fork is not, and has no slot to give away."""
    global _nforks  # noqa: PLW0603 -- of the process, as a fork is
    _nforks += 1
    current_run.set(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class RunThreads:
    """Runs jobs in `nthreads` threads.  Methods are for the loop's thread, or say for which."""

    def __init__(
        self,
        host: Host,
        nthreads: int,
        on_ended: Callable[[list[tuple[RunEnded, object]]], None],
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`on_ended`: called on the loop with (how it ended, its value) of each job in turn.

        `grace_seconds`: what a run that was told to end may take for it; see `TimeLimits`.

        Raises:
            NoThreads: the system gives no more; those that it gave have ended.
        """
        self._execution = Execution(host)
        self._host = host
        self.on_begun: Callable[[Run], None] | None = None  # told on the loop, if anybody is
        self.on_taken_back: Callable[[Sequence[Run]], object] | None = None  # runs that have begun
        self._on_ended = on_ended
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Run | None] = SimpleQueue()
        # A job is here until a thread, or `withdraw`, takes it out: whoever does has it.
        self._waiting: dict[Run, Job] = {}
        self._ended: deque[tuple[RunEnded, object]] = deque()
        self._woken = False
        self._bell = Bell(self._loop, self._report)
        self._executing: dict[int, Job] = {}  # by number of the thread
        self._closing = False
        self._nforks = _nforks
        self._slots = Slots(nthreads)
        self._limits = TimeLimits(host, self._execution, self, grace_seconds)
        self._nwakes = 0  # of idle threads that may be too many, in the queue among the runs
        self._threads: dict[int, threading.Thread] = {}
        self._nstarted = 0
        self._told_shortage = False
        try:
            with self._slots.lock:
                for _ in range(nthreads):
                    self._start_thread()
        except RuntimeError as error:
            raise NoThreads(nthreads, self._give_up(), str(error)) from error

    def _give_up(self) -> int:
        """End the threads, which have nothing to run; returns how many there were."""
        self._closing = True
        nthreads = len(self._threads)
        for _ in range(nthreads):
            self._queue.put(None)
        for thread in self._threads.values():
            thread.join()
        self._bell.remove(still_used=False)
        return nthreads

    def set_inline_bytes_max(self, nbytes: int) -> None:
        """Results up to this size are pickled in the thread that made them, for their message."""
        self._execution.inline_bytes_max = nbytes

    @property
    def inline_bytes_max(self) -> int:
        """Up to which size results travel with the news of them; below 0: none does."""
        return self._execution.inline_bytes_max

    def leave_to_executors(self) -> None:
        """What names no executor is for one as well, and not for these threads alone."""
        self._execution.has_default = True

    @property
    def nexecuting(self) -> int:
        """How many runs are being executed."""
        return len(self._executing)

    def executing(self) -> list[Run]:
        """The runs that are being executed now."""
        return [job.run for job in list(self._executing.values())]

    def active(self) -> dict[int, Key]:
        """Identifier of each thread that executes a run -> its key.  Any thread."""
        found = {}
        for number, job in list(self._executing.items()):
            thread = self._threads.get(number)
            if thread is not None and thread.ident is not None:
                found[thread.ident] = job.run.key
        return found

    def with_slots(self) -> set[threading.Thread]:
        """The threads that have a slot, or would have if they had a task.  Any thread."""
        slots = self._slots
        with slots.lock:
            return {t for number, t in self._threads.items() if not slots.has_seceded(number)}

    def stacks(self) -> dict[Key, list[str]]:
        """Key of each run that is being executed -> its frames, outermost first, as text."""
        coroutines = self._execution.coroutines()
        frames = sys._current_frames()
        found = {}
        for number, job in list(self._executing.items()):
            task, thread = coroutines.get(job.run), self._threads.get(number)
            if task is not None:
                found[job.run.key] = frames_of_coroutine(task.get_coro())
            elif thread is not None and thread.ident is not None:
                found[job.run.key] = frames_of(frames.get(thread.ident))
        return found

    def is_executing(self, run: Run) -> bool:
        """Whether a thread is busy with it.  Cost: O(threads)."""
        return any(job.run is run for job in list(self._executing.values()))

    def start(self, jobs: Iterable[Job]) -> None:
        """Queue jobs, in their order.  Cost: 0.2 us for each."""
        put, waiting = self._queue.put, self._waiting
        for job in jobs:
            if job.interruption is not None:
                self._limits.enter(job)
            waiting[job.run] = job
            put(job.run)

    def substitute(self, nwaiting: int) -> None:
        """So many threads wait for what other tasks compute: keep as many more.

        If the system has no more threads, tasks that wait keep theirs from others, with a line in
        the log; it is tried again with the next one that waits.
        """
        with self._slots.lock:
            self._slots.nwaiting = nwaiting
            self._adjust()

    def secede(self, run: Run) -> bool:
        """The run goes on without a slot, which others have; False if it had none.  Any thread."""
        slots = self._slots
        with slots.lock:
            number = self._number_of(run)
            if number is None or slots.has_seceded(number):
                return False
            slots.secede(number)
            self._adjust()
        return True

    def rejoin(self, run: Run, *, waits: bool) -> bool:
        """The run has a slot again, once one is free; False if it has not seceded.  Any thread.

        Nobody waits beyond the end of these threads.

        Args:
            waits: False: it has one at once, and those who are too many are so until they end.
        """
        slots = self._slots
        with slots.lock:
            number = self._number_of(run)
            if number is None or not slots.has_seceded(number):
                return False
            event = slots.rejoin(number)
            if self._closing or not waits:
                slots.let_in(number)
            self._adjust()
        try:
            event.wait()
        finally:
            with slots.lock:
                slots.stop_rejoining(number)
                self._adjust()  # where the wait was broken off, no thread has to make room
        return True

    def _number_of(self, run: Run) -> int | None:
        """The thread that is busy with it.  Cost: O(threads)."""
        for number, job in list(self._executing.items()):
            if job.run is run:
                return number
        return None

    def _adjust(self) -> None:
        """Start the threads that are lacking, and wake those that are too many.  Lock held."""
        slots = self._slots
        nlacking = slots.settle()
        if self._closing:
            return
        try:
            for _ in range(nlacking):
                self._start_thread()
        except RuntimeError as error:
            if not self._told_shortage:
                self._told_shortage = True
                logger.warning("%s", NoSubstitute(slots.nalive, slots.nwaiting, str(error)))
        for _ in range(-nlacking - self._nwakes):
            self._nwakes += 1
            self._queue.put(None)

    def _start_thread(self) -> None:
        """Lock held."""
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
        self._slots.nalive += 1

    def withdraw(self, runs: Iterable[Run]) -> list[Run]:
        """Take jobs back; returns those that had not begun, which will not be reported."""
        withdrawn = [run for run in runs if self._waiting.pop(run, None) is not None]
        self._limits.leave(withdrawn)
        return withdrawn

    def end(self, runs: Iterable[Run]) -> None:
        """Nobody wants what these give: end those that have a limit; the others go on."""
        self._limits.end(runs)

    def leave_behind(self, job: Job) -> threading.Thread | None:
        """Go on without the thread that is busy with it; None: it came back just now."""
        number = self._number_of(job.run)
        if number is None or job.interruption is None or not job.interruption.give_up():
            return None
        with self._slots.lock:
            self._executing.pop(number, None)
            thread = self._threads.pop(number)
            self._slots.lose(number)
            self._adjust()
        return thread

    def report(self, ended: RunEnded) -> None:
        """A run has ended without its thread."""
        if not self._closing:
            self._limits.leave([ended.run])
            self._on_ended([(ended, None)])

    async def close(self, timeout_seconds: float) -> int:
        """End the threads.  What waits is dropped, what executes may end within the time.

        Returns how many threads did not come back; they are left behind, with a line in the log.
        """
        self._closing = True
        self._limits.close()
        self._waiting.clear()
        if self.on_taken_back is not None:
            self.on_taken_back(self.executing())
        with self._slots.lock:
            self._slots.let_all_go_on()
            threads = list(self._threads.values())
        for _ in threads:
            self._queue.put(None)
        self._execution.close()
        deadline = monotonic() + timeout_seconds
        pause_seconds = 0.0005
        while any(thread.is_alive() for thread in threads) and monotonic() < deadline:
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, 0.05)
        stuck = [thread for thread in threads if thread.is_alive()]
        if stuck and timeout_seconds > 0:  # else it is known that nobody wants what they do
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
        while number in self._threads:  # else it was left behind
            try:
                self._work_on(number)
                return
            except BaseException as error:
                # Somebody's watchdog was late: its exception struck between two runs, or as one
                # was being reported, and not the run that it was meant for.
                self._resume(number, error)

    def _work_on(self, number: int) -> None:
        get, take, executing = self._queue.get, self._waiting.pop, self._executing
        execute, slots = self._execution.execute, self._slots
        recursion_limit, set_limit = sys.getrecursionlimit, sys.setrecursionlimit
        while True:
            run = get()
            if run is None:
                if self._closing or self._may_leave(number, is_woken=True):
                    return
                continue
            job = take(run, None)
            if job is None:
                del run
                continue  # withdrawn
            executing[number] = job
            if self.on_begun is not None:
                self._tell_begun(run)
            if job.interruption is not None:
                self._limits.begun(job)
            limit = recursion_limit()
            ended = execute(job)
            if recursion_limit() < limit:
                set_limit(limit)  # it is everybody's, and the loop needs more than a task may leave
            if _nforks != self._nforks:
                os._exit(0)  # a fork came back from the task: the original reports, and goes on
            if job.interruption is not None and not job.may_report():
                return  # it was given up, and this thread with it
            job.reported = True  # and so it is: nothing can strike between these two
            self._ended.append(ended)
            del executing[number]
            if not self._woken:
                self._woken = True
                self._bell.ring()
            del run, job, ended  # or the last value would live until the next run
            if slots.some_leave and self._may_leave(number):
                return

    def _tell_begun(self, run: Run) -> None:
        """Somebody wants to know when a run begins."""
        tell = self.on_begun
        if tell is not None:
            try:
                self._loop.call_soon_threadsafe(tell, run)
            except RuntimeError:
                pass  # the loop was closed under a thread that was left behind

    def _resume(self, number: int, error: BaseException) -> None:
        """Make up for what the thread may have dropped when `error` struck it."""
        job = self._executing.pop(number, None)
        if job is not None and not job.reported and job.may_report():
            self._ended.append((self._execution.failed(job.run, error, time()), None))
        for run in list(self._waiting):
            self._queue.put(run)  # one of them may be in no queue; twice does no harm
        with self._slots.lock:
            self._nwakes = 0  # it may have dropped one; one more does no harm either
            self._adjust()
        if self._closing:
            self._queue.put(None)
        self._woken = True
        self._bell.ring()

    def _may_leave(self, number: int, *, is_woken: bool = False) -> bool:
        """Whether this thread is one too many; it ends then."""
        with self._slots.lock:
            self._nwakes -= is_woken
            if not self._slots.leave(number):
                return False
            del self._threads[number]
            return True

    # --- on the loop -------------------------------------------------------------------------

    def _report(self) -> None:
        self._woken = False  # before looking: what ends from here on wakes us again
        ended: list[tuple[RunEnded, object]] = []
        take = self._ended.popleft
        while self._ended:
            ended.append(take())
        if ended and not self._closing:
            self._limits.leave([end.run for end, _ in ended])
            self._on_ended(ended)
