"""A worker's eye on its memory: looks again and again, has done what is to be done, and tells.

The one thing here that is polled, since no system says by itself that a process grows: ten times a
second while anything goes on, with each sign of life else, and not at all without a limit.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from heapq import nlargest
from itertools import islice
from time import perf_counter
from typing import Any, Final, Protocol

from dask.utils import key_split

from shoal import config
from shoal.observe.limits import container_memory
from shoal.observe.reasons import RECYCLED
from shoal.protocol.keys import from_canonical, to_text
from shoal.protocol.memory import WantsReplacement
from shoal.storage.results import Results
from shoal.units import format_nbytes
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import FINISHED, Run, RunEnded
from shoal.worker.policies.ageing import Ageing
from shoal.worker.policies.footprints import GAUGE_SECONDS_MIN, Footprints
from shoal.worker.policies.looking import IDLE_FACTOR, LOOK_RATIO, LookPace
from shoal.worker.policies.pressure import Found, Pressure, Relief, Thresholds
from shoal.worker.policies.room import Room
from shoal.worker.shell.context import live_workers
from shoal.worker.shell.errors import MemoryShort
from shoal.worker.shell.lifetime import PATIENCE_SECONDS
from shoal.worker.shell.link import SchedulerLink
from shoal.worker.shell.making_room import RoomHands, Sender
from shoal.worker.shell.readings import ProcessMemory
from shoal.worker.shell.threads import RunThreads
from shoal.worker.shell.trimming import Trimming, give_back

logger = logging.getLogger("shoal.worker.memory")

TOLD_SECONDS: Final = 10.0
"""A pause that comes so soon after another is not worth a warning: they are short then."""

UNCOUNTED_RATIO_MIN: Final = 0.5
"""Of the limit: what a process has before its worker begins in it does not count if it is more.

It is not the worker's then, as in a notebook, and the worker would never begin a task."""

NLARGEST: Final = 3
"""Holders of memory that are named when a worker pauses."""

NLOOKED_AT: Final = 20_000
"""Results that are looked at for that; where there are more, few of them are large."""


class Watched(Protocol):
    """What a worker's memory is used by, and what has something done about it."""

    memory: MemoryWatch | None
    """Set while there is something to watch over."""
    machine: WorkerMachine
    results: Results
    threads: RunThreads
    link: SchedulerLink

    @property
    def disk_trouble(self) -> str:
        """Why nothing is written; "": it is."""

    def spill(self, nbytes: int, why: str) -> int:
        """Begin to write so many bytes of results to disk."""

    def on_pause(self, why: str) -> None:
        """Begin nothing."""

    def on_resume(self, why: str) -> None:
        """Begin what has waited."""

    @property
    def server(self) -> Sender:
        """What gives values to others."""

    @property
    def leaving_nbytes(self) -> int:
        """Of results that are being written to disk, or freed."""

    def on_looked(self, process_bytes: int | None = None) -> None:
        """The process may have less memory: let in what waits, if there is room."""

    def now(self) -> float:
        """The loop's time."""

    def on_gauged(self, gauged: Sequence[tuple[Run, int]]) -> None:
        """These runs have taken so much by now."""

    def do_aside(self, function: Callable[[], Any]) -> Future[Any]:
        """Call it in a thread."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        """Do it beside everything else, until the worker closes."""


class MemoryWatch:
    """Watches over the memory of one worker's process.  All on the worker's loop."""

    def __init__(
        self,
        feed: Watched,
        address: str,
        limit: int,
        settings: config.Memory,
        *,
        is_watched: bool,
        beat: Callable[[], object],
        process: ProcessMemory | None = None,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            limit: bytes; 0: none, so that only heartbeats ask.
            is_watched: a nanny keeps this process, and all of it is the worker's.
            beat: sends a heartbeat, since the numbers are others than in the last.
            process: what reads the memory; None: that of this process.
        """
        self._feed, self._address, self._limit = feed, address, limit
        self._is_watched, self._beat = is_watched, beat
        self._loop = asyncio.get_running_loop()
        self._interval_seconds = settings.monitor_seconds
        self._process = process or ProcessMemory(aside=feed.do_aside)
        self._ageing = Ageing(settings.recent_to_old_seconds)
        self._trimming = Trimming(limit)
        self._footprints: Footprints[Run] = Footprints(_kind_of)
        self._pressure = Pressure(
            Thresholds.of(
                limit,
                target_ratio=settings.target_ratio,
                spill_ratio=settings.spill_ratio,
                pause_ratio=settings.pause_ratio,
                recycle_after_seconds=settings.recycle_after_seconds if is_watched else None,
            )
        )
        self.room = RoomHands(
            feed, self._do_aside, self._now, lambda: self._footprints.grown, time.process_time
        )
        """Has what is lacking made, while there is a limit."""
        self._timer: asyncio.Handle | None = None
        self._is_due = False  # the next look comes as soon as the loop is free
        self._pace = LookPace()
        self._is_collecting = self._is_trimming = False
        self._is_told = False  # people were warned of this pause
        self._told_at = float("-inf")
        self._told_trouble = ""  # with the disk, of which the scheduler knows
        self._uncounted = 0  # bytes that the process had before

    def __repr__(self) -> str:
        return f"<memory watch of {self._address}, limit {format_nbytes(self._limit)}>"

    @property
    def thresholds(self) -> Thresholds:
        """At how many bytes something is done."""
        return self._pressure.thresholds

    def begin(self) -> None:
        """Look from now on, if there is a limit."""
        if self._limit and self._timer is None:
            self._feed.memory = self
            had = self._process.now()
            if not self._is_watched and had > UNCOUNTED_RATIO_MIN * self._limit:
                self._uncounted = had
            self._pressure.begin(had)
            self._begin_to_count()
            self._timer = self._loop.call_later(self._interval_seconds, self._tick)

    def _begin_to_count(self) -> None:
        """Have the machine let nothing in that would not fit."""
        bound, machine = self._near_bytes, self._feed.machine
        if bound is not None:
            nthreads = machine.state.settings.nthreads
            machine.limit_memory(Room(bound, nthreads, self._footprints.kinds, _kind_of))
            self.room.look()

    @property
    def _near_bytes(self) -> int | None:
        """Of the process, from where on it may not go on like that; None: it always may."""
        bounds = self._pressure.thresholds
        if bounds.pause is None:
            return None
        return int(bounds.pause if bounds.spill is None else (bounds.spill + bounds.pause) / 2)

    def look(self) -> None:
        """Look as soon as the loop is free, and not when it would be time: much has come.

        Not at once, since whoever says so is about to do what its machine asks for.
        """
        if self._timer is not None and not self._is_due:
            self._timer.cancel()
            self._is_due = True
            self._timer = self._loop.call_soon(self._tick)

    @property
    def much_bytes(self) -> int:
        """After so much that has come it is time to look again."""
        return int(self._limit * LOOK_RATIO)

    def is_short(self) -> bool:
        """Whether a worker that goes on like this is about to pause.  Cost: 20 us."""
        bound = self._near_bytes
        return bound is not None and self._now() > bound

    def _now(self) -> int:
        return self._share_of(self._process.now())

    def close(self) -> None:
        """Look no more."""
        self._feed.memory = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- heartbeats --------------------------------------------------------------------------

    def tell(self, process: int | None = None) -> dict[str, int]:
        """What a heartbeat says of memory, by the names that it has there.

        `process`: what the process has, if it was looked at just now.
        """
        results = self._feed.results
        if process is None:
            process = self._process.now()
        unmanaged = max(0, process - results.nbytes)
        used, most = container_memory()
        return {
            "memory_bytes": process,
            "managed_bytes": results.nbytes,
            "spilled_bytes": results.spilled_nbytes,
            "spilled_disk_bytes": results.disk_nbytes,
            "unmanaged_old_bytes": self._ageing.note(unmanaged, self._loop.time()),
            "container_bytes": used,
            "container_limit_bytes": most,
        }

    def trim_if_due(self, process: int) -> None:
        """Give back what tasks have freed, if that is much, whatever the limit."""
        feed = self._feed
        is_idle = feed.threads.nexecuting == 0
        if self._trimming.is_due(process, feed.results.nbytes, is_idle=is_idle):
            feed.do_aside(give_back)

    # --- runs --------------------------------------------------------------------------------

    @property
    def _gauges(self) -> bool:
        """Whether what comes is of this worker's runs."""
        return self._is_watched or len(live_workers) == 1

    def gauge(self, ended: Sequence[tuple[RunEnded, object]]) -> bool:
        """Runs are over, and their results not kept yet; whether to call `settle` once they are.

        Those that took much are told of.  Cost: a comparison for each, and 20 us if any of them
        took a while.
        """
        if not any(end.seconds >= GAUGE_SECONDS_MIN for end, _ in ended) or not self._gauges:
            self._note_small(ended)
            return False
        runs = [end.run for end, _ in ended]
        self._gauge(runs)
        told = self._footprints.to_tell(runs, at_end=True)
        if told:
            self._feed.machine.runs_gauged(told, self._loop.time())
        self._footprints.end(runs)
        self._note_small(ended)
        return True

    def _note_small(self, ended: Sequence[tuple[RunEnded, object]]) -> None:
        """Those for which room was kept did not need it, unless it is known better."""
        room = self._feed.machine.state.room
        if room is None or not room.reserved_bytes:
            return
        for end, _ in ended:
            if end.run.reserved_bytes and end.how == FINISHED:  # others may not have begun
                self._footprints.took_little(end.run)

    def settle(self) -> None:
        """The results of runs that were gauged are kept, or dropped."""
        self._footprints.settle(self._process.now(), self._feed.results.nbytes)

    def _gauge(self, ended: Sequence[Run] = ()) -> int:
        """Share what has come since the last time; the process's memory now."""
        process = self._process.now()
        peak, feed = self._process.peak(process), self._feed
        going = [*feed.threads.executing(), *ended]
        state = feed.machine.state
        managed, coming = feed.results.nbytes, state.coming_nbytes
        self._footprints.look(going, process, peak, managed, coming)
        return process

    # --- looks -------------------------------------------------------------------------------

    def stir(self) -> None:
        """Something comes: look as often as there is reason to."""
        if self._pace.factor > 1 and self._timer is not None and not self._is_due:
            self._pace.stir()
            self._timer.cancel()
            self._timer = self._loop.call_later(self._interval_seconds, self._tick)

    def look_beside(self) -> int | None:
        """Look now if that is rarely done, as something else has woken the loop anyway.

        Returns the bytes that the process has; None: it was not looked, and is not worth it.
        """
        if self._timer is None or self._is_due or self._pace.factor < IDLE_FACTOR:
            return None
        self._timer.cancel()
        return self._tick()

    def _tick(self) -> int:
        feed = self._feed
        self._is_due = False
        if self._gauges:
            process = self._gauge()
            told = self._footprints.to_tell(feed.threads.executing(), at_end=False)
            if told:
                feed.on_gauged(told)
        else:
            process = self._process.now()
        found = Found(
            process=self._share_of(process),
            managed=feed.results.nbytes,
            leaving=feed.leaving_nbytes,
            nexecuting=feed.threads.nexecuting,
            is_trimming=self._is_trimming,
        )
        feed.on_looked(found.process)
        relief = self._pressure.look(found, self._loop.time())
        if relief:
            self._relieve(relief, found)
        if self._pressure.paused_at is not None and feed.disk_trouble != self._told_trouble:
            self._say_pause(self._shortage(found))
        room = feed.machine.state.room
        self._pace.looked(
            process,
            found.managed,
            is_executing=bool(found.nexecuting),
            is_lacking=room is not None and bool(room.lacking_bytes),
            is_high=self._pressure.is_high,
        )
        if self._timer is not None and not self._is_due:  # else what we did has closed the worker
            seconds = self._pace.factor * self._interval_seconds
            self._timer = self._loop.call_later(seconds, self._tick)
        return process

    def _share_of(self, process: int) -> int:
        """What counts of so much: workers that share a process share what it has."""
        nsharers = 1 if self._is_watched else max(1, len(live_workers))
        return max(0, process - self._uncounted) // nsharers

    def _relieve(self, relief: Relief, found: Found) -> None:
        feed = self._feed
        if relief.spill_bytes:
            feed.spill(relief.spill_bytes, "the process has much memory")
        if relief.collect and not self._is_collecting:
            self._is_collecting = True
            self._do_aside(_collect, self._collected)
        if relief.trim and not self._is_trimming:
            self._is_trimming = True
            self._do_aside(give_back, self._trimmed)
        if relief.pauses:
            now = self._loop.time()
            self._is_told = now >= self._told_at + TOLD_SECONDS
            short = self._shortage(found, self._largest() if self._is_told else ())
            if self._is_told:
                self._told_at = now
            self._log("%s", short)
            self._beat()  # so that it is said of the same moment
            self._say_pause(short)
        if relief.resumes:
            short = self._shortage(found)
            self._log("The worker at %s goes on: %s", self._address, short.why)
            self._beat()
            feed.on_resume(short.why)
        if relief.recycle and feed.machine.state.connected:
            why = f"{RECYCLED}: {self._shortage(found).why}"
            unmanaged, pause = found.process - found.managed, self.thresholds.pause
            is_of_results = pause is not None and unmanaged <= pause
            feed.link.send([WantsReplacement(why, PATIENCE_SECONDS, is_of_results)])

    def _say_pause(self, short: MemoryShort) -> None:
        """Begin nothing, and let others know why."""
        self._told_trouble = short.disk_trouble
        trouble = f". {short.disk_trouble}" if short.disk_trouble else ""
        self._feed.on_pause(short.why + trouble)

    def _log(self, text: str, *words: object) -> None:
        """Of one pause in a while people are warned; the log has all."""
        logger.log(logging.WARNING if self._is_told else logging.DEBUG, text, *words)

    def _do_aside(self, function: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Call `function` in a thread, and `then` with what it returns on the loop.

        At once if the system has no more threads, as may be where it has no more memory.
        """
        try:
            doing = self._feed.do_aside(function)
        except RuntimeError:
            then(function())
            return

        async def do() -> None:
            then(await asyncio.wrap_future(doing))

        self._feed.spawn(do())

    def _collected(self, seconds: float) -> None:
        self._is_collecting = False
        self._pressure.collected(seconds, self._loop.time())

    def _trimmed(self, knows_how: bool) -> None:
        self._is_trimming = False

    def _largest(self) -> list[str]:
        """What has most of the memory, for people.  Cost: O(results), at most `NLOOKED_AT`."""
        state = self._feed.machine.state
        looked_at = islice(state.held.values(), NLOOKED_AT)
        there = (replica for replica in looked_at if replica.task not in state.absent)
        held = nlargest(NLARGEST, there, key=lambda r: r.nbytes)
        largest = [f"{to_text(r.key)} ({format_nbytes(r.nbytes)})" for r in held if r.nbytes]
        largest += [
            f"what {to_text(run.key)} has taken as it runs ({format_nbytes(nbytes)})"
            for run, nbytes in self._footprints.largest(NLARGEST)
        ]
        return largest

    def _shortage(self, found: Found, largest: Sequence[str] = ()) -> MemoryShort:
        """The numbers, for people."""
        feed, pause = self._feed, self.thresholds.pause
        return MemoryShort(
            self._address,
            found.process,
            self._limit,
            found.managed,
            self._limit if pause is None else int(pause),
            largest=list(largest),
            disk_trouble=feed.disk_trouble,
        )


def _kind_of(run: Run) -> str:
    """The prefix of the task's key."""
    return str(key_split(from_canonical(run.key)))


def _collect() -> float:
    """Collect garbage, which holds up everything; the seconds that it took."""
    started = perf_counter()
    gc.collect()
    return perf_counter() - started
