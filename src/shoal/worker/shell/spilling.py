"""Results to disk and back: what the machine asks for is done by threads, and told when it is.

The loop never waits for a disk.  A disk that takes nothing is no error of any task: results stay in
memory, it is said once, and tried again after a while; files that are lost are as good as a peer
that has gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from shoal.ids import TaskId
from shoal.protocol.keys import to_text
from shoal.protocol.payload import kind_of
from shoal.protocol.teaching import pickling
from shoal.shuffle.kept import KeptShards
from shoal.storage.results import Results
from shoal.storage.spilled import Spilled
from shoal.units import format_nbytes
from shoal.worker.machine.effects import Evict, ReadBack, Write
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.shell.replicas import Held, Stored

if TYPE_CHECKING:
    from shoal.storage.spill import Spill
    from shoal.storage.waiting_threads import WaitingThreads

logger = logging.getLogger("shoal.worker")

NWRITERS: Final = 2
NREADERS: Final = 2
"""At once; apart from writers, since runs wait for what is read."""

RETRY_SECONDS: Final = 0.5
"""A disk that took nothing is tried again after this long, then after twice as long, and so on."""

RETRY_SECONDS_MAX: Final = 8.0

DISTRUST_SECONDS: Final = 60.0
"""The same, of one that has lost what it took."""

NLOST_MAX: Final = 10
"""Files that may be lost in a row."""

STALL_SECONDS: Final = 60.0
SLOWEST_BYTES_PER_SECOND: Final = 1e6
"""A disk that is slower than this, beyond that time, hangs: what it was to read is lost, and what
it was to write stays in memory."""

HOLD_SECONDS_MAX: Final = 1.0
"""How long runs are held back for a disk; if it is slower than that, the worker may have to pause.
"""

CLOSE_SECONDS: Final = 1.0
"""How long threads may take to come back when the worker closes."""


class Loop(Protocol):
    """Where threads tell what they have done."""

    def on_disk(self, act: Callable[[], object]) -> None:
        """Tell the machine, by `act`, and perform what it asks for."""

    def is_memory_short(self) -> bool:
        """Whether the process has nearly as much as it may have."""

    def on_results(self, nbytes_before: int) -> None:
        """Results are in memory that were not, when they had so many bytes."""

    def now(self) -> float:
        """The loop's time."""


class Spilling:
    """What performs the machine's effects that are about disk.  Methods are for the loop."""

    def __init__(
        self,
        name: str,
        machine: WorkerMachine,
        results: Results,
        loop: Loop,
        make_spill: Callable[[], Spill],
        *,
        target_bytes: int,
    ) -> None:
        """`name`: of the worker; `make_spill`: called when something is to be written first.

        `target_bytes`: of results in memory; 0: as much as there are.
        """
        self._name = name
        self._machine = machine
        self._results = results
        self._loop = loop
        self._make_spill = make_spill
        self.target_bytes = target_bytes or (1 << 62)
        self.freeing_nbytes = 0
        """Of values that have left the results, and that a thread is about to let go of."""
        self.disk_trouble = ""
        """Why nothing is written, with numbers; "": it is, or would be."""
        self._retry_at = 0.0
        self._retry_seconds = RETRY_SECONDS
        self._is_distrusted = False
        self._nlost = 0  # since something was read
        self._spill: Spill | None = None
        self._writers: WaitingThreads | None = None
        self._readers: WaitingThreads | None = None
        self._freers: WaitingThreads | None = None
        self._is_closed = False
        self._holding: asyncio.TimerHandle | None = None  # runs, for no longer than that
        self._told: set[type] = set()  # types of which nothing can be written
        self._unreadable: set[type] = set()  # whose values can't be made of what was written
        self.on_shards: Callable[[TaskId, KeptShards], object] = lambda task, kept: None
        """Told of shards that are to make room; set by who has them."""
        results.on_unused = self._remove

    # --- what is asked -----------------------------------------------------------------------

    def spill(self, nbytes: int, why: str) -> int:
        """Begin to write results to disk, those first that are there already.

        Args:
            nbytes: about so many, as they were measured, beside what is being written already.
            why: for the log.

        Returns:
            How many bytes that will be; fewer if too much is under way, none if all that is left
            is in use or too small, or if the disk takes nothing: see `disk_trouble`.
        """
        now = self._loop.now()
        if self._results.is_given:
            return self._results.evict_some(nbytes)
        if self.disk_trouble:
            if now < self._retry_at or self._machine.state.writes:
                return self._machine.spill(nbytes, now, may_write=False)
            nbytes = 1  # one value shows whether there is room again
            self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)
            self._retry_at = now + self._retry_seconds
        begun = self._machine.spill(nbytes, now)
        if begun:
            logger.debug("Worker %s spills %s: %s", self._name, format_nbytes(begun), why)
        return begun

    def to_target(self) -> None:
        """Results have come: if they are more than is meant to be in memory, some must leave."""
        state = self._machine.state
        coming = state.reading_nbytes - state.writing_nbytes
        excess = self._results.nbytes + coming - self.target_bytes
        if excess > 0:
            self.spill(excess, "results have come")
            if self._holding is None and self._is_outrun():
                self._hold()

    def _is_outrun(self) -> bool:
        """Whether results come faster than the disk takes them, and memory is short."""
        return bool(self._machine.state.writes) and self._loop.is_memory_short()

    def _hold(self) -> None:
        """Hand no runs to threads until enough is written."""
        end = partial(self._loop.on_disk, self._go_on)
        self._holding = asyncio.get_running_loop().call_later(HOLD_SECONDS_MAX, end)
        self._machine.hold(self._loop.now())

    def _go_on(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
            self._machine.go_on(self._loop.now())

    async def bring(self, values: Sequence[Held], *, as_values: bool) -> list[Held]:
        """For a peer or a client: what is on disk as it is there, or as values; lost ones lack."""
        as_values = as_values or pickling.is_taught
        brought: list[Held] = []
        for held in values:
            spilled = held.value
            if not isinstance(spilled, Spilled):
                brought.append(held)
                continue
            try:
                value = await self._read_for_others(spilled, as_values)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                entry = self._results.entry(held.task)
                if entry is not None and not isinstance(entry[1], Spilled):
                    brought.append(held._replace(value=entry[1]))  # it has come back meanwhile
                elif not isinstance(error, MemoryError):
                    self._loop.on_disk(partial(self._lost, held.task, spilled, error))
                continue
            brought.append(held._replace(value=value))
        return brought

    async def _read_for_others(self, spilled: Spilled, as_values: bool) -> object:
        spill, living = self._opened(), spilled.living()
        if living is not None:
            return living
        seconds = _patience(spilled.nbytes)
        if as_values:
            return await self._reading().do(partial(spill.load, spilled), seconds)
        return Stored(*await self._reading().do(partial(spill.message, spilled), seconds))

    # --- effects -----------------------------------------------------------------------------

    def write(self, effect: Write) -> None:
        """Have a value written."""
        entry = self._results.entry(effect.task)
        if entry is None or isinstance(entry[1], Spilled):
            return  # it was dropped in this very step
        value = entry[1]
        if self._results.is_watched(effect.task) or type(value) in self._unreadable:
            self._machine.value_not_written(effect, self._loop.now(), is_for_good=True)
            self.to_target()  # others have to go in its stead
            return
        if type(value) is KeptShards:  # which have a way to disk of their own, and are read in part
            self._machine.value_not_written(effect, self._loop.now(), is_for_good=True)
            self.on_shards(effect.task, value)
            return
        spill = self._opened()
        box = [entry]  # so that whoever empties it lets go of the value
        try:
            self._writing().begin(
                partial(spill.write, value, entry[2]),
                partial(self._on_written, effect, box),
                _patience(entry[2]),
                self._remove,
            )
        except RuntimeError as error:  # no more threads
            self._on_written(effect, box, None, OSError(str(error)))

    def evict(self, effect: Evict) -> None:
        """Let go of values that are on disk."""
        before = self._results.nbytes
        box = [self._results.evict(task) for task in effect.tasks]
        self._free(box, before - self._results.nbytes)

    def _free(self, box: list[Any], nbytes: int) -> None:
        """Have a thread empty it: to give memory back takes time, and waits for page faults."""
        self.freeing_nbytes += nbytes
        then = partial(self._on_freed, nbytes)
        try:
            if not self._is_closed:
                self._freeing().begin(box.clear, then)
                return
        except RuntimeError:
            pass  # there are no threads any more
        box.clear()
        then(None, None)

    def _on_freed(self, nbytes: int, value: object, error: BaseException | None) -> None:
        self.freeing_nbytes -= nbytes
        room = self._machine.state.room
        if self._holding is not None or (room is not None and room.lacking_bytes):
            self._loop.on_disk(self._go_on_if_possible)

    def read_back(self, effect: ReadBack) -> None:
        """Have a value in memory again."""
        entry = self._results.entry(effect.task)
        if entry is None or not isinstance(entry[1], Spilled):
            return
        spilled = entry[1]
        self.to_target()  # for it there must be room
        if self._loop.is_memory_short():
            self.spill(effect.nbytes, "a result is to be read")
        value = spilled.living()
        if value is not None:  # somebody has it still
            self._take(effect, value)
            return
        try:
            self._reading().begin(
                partial(self._opened().load, spilled),
                partial(self._on_read, effect, spilled),
                _patience(spilled.nbytes),
            )
        except RuntimeError as error:
            self._fail(effect, spilled, OSError(str(error)))

    # --- what threads have done --------------------------------------------------------------

    def _on_written(self, effect: Write, box: list[Any], spilled: Any, error: Any) -> None:
        """`box`: the entry of what was written.

        It counts as leaving until it is let go of: or more would be written in its stead.
        """
        self.freeing_nbytes += effect.nbytes
        self._loop.on_disk(partial(self._end_write, effect, box, spilled, error))
        self.freeing_nbytes -= effect.nbytes
        if box:
            self._free(box, effect.nbytes)

    def _go_on_if_possible(self) -> None:
        if self._holding is not None and not self._is_outrun():
            self._go_on()

    def _end_write(
        self,
        effect: Write,
        box: list[Any],
        spilled: Spilled | None,
        error: BaseException | None,
    ) -> None:
        now = self._loop.now()
        is_dropped = self._results.entry(effect.task) is not box[0]
        if spilled is None:
            is_for_good = not isinstance(error, OSError | MemoryError)
            self._machine.value_not_written(effect, now, is_for_good=is_for_good)
            if isinstance(error, OSError | MemoryError):
                self._begin_trouble(error)
            else:
                self._tell_unwritable(box[0], error)
        elif is_dropped or effect not in self._machine.state.writes:
            self._remove(spilled)
        else:
            self._end_spill(effect, spilled, now)
        self.to_target()

    def _end_spill(self, effect: Write, spilled: Spilled, now: float) -> None:
        """It is on disk."""
        self._results.add_file(effect.task, spilled)
        if self._machine.value_written(effect, now):
            self._results.evict(effect.task)
        if self.disk_trouble:
            self.disk_trouble = ""
            self._retry_seconds = RETRY_SECONDS
            self._is_distrusted = False
            self._nlost = 0
            logger.info("Worker %s: results are spilled to disk again", self._name)

    def _on_read(self, effect: ReadBack, spilled: Spilled, value: Any, error: Any) -> None:
        entry = self._results.entry(effect.task)
        if entry is None or entry[1] is not spilled:
            return
        if error is None:
            self._nlost = 0
            self._loop.on_disk(partial(self._take, effect, value))
        else:
            self._loop.on_disk(partial(self._fail, effect, spilled, error))

    def _take(self, effect: ReadBack, value: object) -> None:
        if self._machine.value_read(effect, self._loop.now()):
            nbytes_before = self._results.nbytes
            self._results.restore(effect.task, value)
            self._loop.on_results(nbytes_before)

    def _fail(self, effect: ReadBack, spilled: Spilled, error: BaseException) -> None:
        """A run's input can't be read: it is gone, whatever the reason."""
        self._count_lost(spilled, error)
        self._machine.value_not_read(effect, self._loop.now())

    def _lost(self, task: TaskId, spilled: Spilled, error: BaseException) -> None:
        entry = self._results.entry(task)
        if entry is not None and entry[1] is spilled:
            self._count_lost(spilled, error)
            self._machine.value_lost(task, self._loop.now())

    # --- what is said ------------------------------------------------------------------------

    def _count_lost(self, spilled: Spilled, error: BaseException) -> None:
        from shoal.storage.errors import DiskUntrusted

        if not isinstance(error, OSError | MemoryError):
            self._unreadable.add(spilled.kind)  # it would be written, and lost, again and again
        logger.warning("Worker %s: %s", self._name, error)
        self._nlost += 1
        if self._nlost >= NLOST_MAX and not self.disk_trouble:
            what = getattr(error, "what", str(error))
            untrusted = DiskUntrusted(self._opened().disk.folder_name, self._nlost, what)
            self._is_distrusted = True
            self._stop_writing(untrusted, DISTRUST_SECONDS)

    def _begin_trouble(self, error: OSError | MemoryError) -> None:
        from shoal.storage.errors import DiskTrouble

        disk = self._opened().disk
        why = getattr(error, "strerror", None) or str(error) or "no memory is left for that"
        trouble = DiskTrouble(disk.folder_name, disk.nbytes, disk.nbytes_max, why)
        self._stop_writing(trouble, self._retry_seconds)

    def _stop_writing(self, trouble: Exception, seconds: float) -> None:
        if not self.disk_trouble:
            logger.warning("Worker %s: %s", self._name, trouble)
            for task in self._machine.forget_files():  # room for others
                self._results.remove_file(task)
        self.disk_trouble = str(trouble)
        self._retry_at = max(self._retry_at, self._loop.now() + seconds)

    def _tell_unwritable(self, entry: Any, error: BaseException | None) -> None:
        from shoal.storage.errors import CantBeSpilled

        key, value, nbytes = entry
        if type(value) not in self._told:
            self._told.add(type(value))
            told = CantBeSpilled(to_text(key), kind_of(value), nbytes, str(error))
            logger.warning("Worker %s: %s", self._name, told)

    # --- threads -----------------------------------------------------------------------------

    def _opened(self) -> Spill:
        if self._spill is None:
            spill = self._spill = self._make_spill()
            self._results.load = spill.load
        return self._spill

    def _writing(self) -> WaitingThreads:
        if self._writers is None:
            self._writers = self._threads("writes", NWRITERS)
        return self._writers

    def _reading(self) -> WaitingThreads:
        if self._readers is None:
            self._readers = self._threads("reads", NREADERS)
        return self._readers

    def _freeing(self) -> WaitingThreads:
        if self._freers is None:
            self._freers = self._threads("frees", 1)
        return self._freers

    def _threads(self, what: str, nthreads: int) -> WaitingThreads:
        from shoal.storage.waiting_threads import WaitingThreads

        return WaitingThreads(f"shoal-worker-{self._name}-{what}", nthreads)

    def _remove(self, spilled: Spilled) -> None:
        """A file is of no use any more, which makes room for others."""
        if not self._is_distrusted:
            self._retry_at = 0.0
        self._writing().begin(partial(self._opened().remove, spilled), _ignore)

    def close(self) -> Callable[[], object] | None:
        """Stop; returns what a thread has to do so that nothing is left, if anything is.

        That takes as long as it takes to remove the files, and `CLOSE_SECONDS` if the disk hangs.
        """
        self._results.on_unused = _ignore_file
        self._is_closed = True
        if self._holding is not None:
            self._holding.cancel()
        pools = (self._writers, self._readers, self._freers)
        threads = [thread for pool in pools if pool is not None for thread in pool.close()]
        spill = self._spill
        if spill is None:
            return None

        def remove() -> None:
            for thread in threads:
                thread.join(CLOSE_SECONDS / len(threads))
            spill.disk.clear()

        return remove


def _patience(nbytes: int) -> float:
    """Seconds that a disk may take for so many bytes, before it is taken for one that hangs."""
    return STALL_SECONDS + nbytes / SLOWEST_BYTES_PER_SECOND


def _ignore(value: object, error: BaseException | None) -> None:
    """A file that can't be removed goes with its folder."""


def _ignore_file(spilled: Spilled) -> None:
    """Its folder is removed."""
