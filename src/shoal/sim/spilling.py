"""A worker's disk in the simulation: slow, and it may refuse, or lose what it took."""

from collections.abc import Callable, Collection
from typing import Final, Protocol

from shoal.ids import TaskId
from shoal.sim.footprints import Shortage
from shoal.sim.making_room import MemoryWatch
from shoal.sim.process import Process
from shoal.sim.specs import Value
from shoal.sim.stage import Stage
from shoal.worker.machine.effects import Evict, ReadBack, Write
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import HANDED, OVER, WAITING, Run

DISK_SECONDS: Final = 0.003
"""What it takes to write or to read a value."""


FREE_SECONDS: Final = 0.001
"""What it takes to let go of a value in memory."""

FILLING_NBYTES: Final = 10**6
"""Where so much is to leave memory, whatever is read fills it again, and the worker pauses."""

FULL_SECONDS: Final = 0.01
"""After this it is seen whether the run has ended that values were read for."""


class Owner(Protocol):
    """The worker whose disk it is."""

    stage: Stage
    machine: WorkerMachine
    store: dict[TaskId, Value]
    shortage: Shortage
    process: Process
    room: MemoryWatch

    def when_awake(self, action: Callable[..., None], *arguments: object) -> None:
        """Do it now, or once the process is no longer frozen; never if it died."""

    def perform(self) -> None:
        """Do what the machine asks for."""

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something can't be."""


class Disk:
    """The files of one worker."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.files: dict[TaskId, Value] = {}
        self._writing: dict[Write, None] = {}
        self._nworked = 0  # reads and writes
        self._bad_every = 0  # of so many, one fails; 0: none
        self._short_nbytes = 0  # of memory: so much is written
        self._short_until = 0.0

    def spill(self, nbytes: int, bad_every: int, until: float) -> None:
        """Memory is short, and the disk may be bad, for a while."""
        self._bad_every, self._short_nbytes, self._short_until = bad_every, nbytes, until
        self._relieve()

    def heal(self) -> None:
        """There is room, and the disk is good."""
        self._bad_every = self._short_nbytes = 0

    def _relieve(self) -> None:
        owner = self._owner
        if self._short_nbytes:
            owner.machine.spill(self._short_nbytes, owner.stage.world.now)
            owner.perform()

    @property
    def writing(self) -> Collection[Write]:
        """What it is about to take."""
        return self._writing

    def write(self, effect: Write) -> None:
        """Answer in a while."""
        owner = self._owner
        owner.stage.occasion("write", owner.machine.state.settings.address)
        self._writing[effect] = None
        owner.stage.world.after(DISK_SECONDS, owner.when_awake, self._written, effect)

    def _written(self, effect: Write) -> None:
        owner, task = self._owner, effect.task
        now = owner.stage.world.now
        del self._writing[effect]
        is_live = effect in owner.machine.state.writes
        value = owner.store.get(task)
        if is_live and value is None:
            owner.fail("what is written is in memory", f"writes {task}, which is not here")
        elif value is not None and value.is_unsendable:
            owner.machine.value_not_written(effect, now, is_for_good=True)
        elif self._is_bad():
            owner.machine.value_not_written(effect, now, is_for_good=False)
        else:
            is_evicted = owner.machine.value_written(effect, now)
            if is_live and value is not None:
                self.files[task] = value
            if is_evicted:
                self._let_go(task)
        owner.perform()

    def evict(self, effect: Evict) -> None:
        """Only the files stay."""
        for task in effect.tasks:
            if task not in self.files:
                self._owner.fail("what is let go of has a file", f"lets go of {task}")
            self._let_go(task)

    def _let_go(self, task: TaskId) -> None:
        """Of the value in memory, which takes a while if there is a bound."""
        owner = self._owner
        value = owner.store.pop(task, None)
        if value is not None and owner.machine.state.room is not None:
            owner.process.freeing_bytes += value.nbytes
            owner.stage.world.after(FREE_SECONDS, owner.when_awake, self._freed, value.nbytes)

    def _freed(self, nbytes: int) -> None:
        owner = self._owner
        owner.process.freeing_bytes -= nbytes
        if owner.room.lacking_bytes:
            owner.perform()

    def read_back(self, effect: ReadBack) -> None:
        """Answer in a while."""
        owner = self._owner
        owner.stage.occasion("read", owner.machine.state.settings.address)
        if owner.room.is_short():
            owner.machine.spill(effect.nbytes, owner.stage.world.now)
        owner.process.coming[effect] = effect.nbytes
        owner.stage.world.after(DISK_SECONDS, owner.when_awake, self._read, effect)

    def _read(self, effect: ReadBack) -> None:
        owner, task = self._owner, effect.task
        now = owner.stage.world.now
        del owner.process.coming[effect]
        if self._is_bad():
            owner.machine.value_not_read(effect, now)
        elif owner.machine.value_read(effect, now):
            owner.store[task] = self.files[task]
            owner.room.came(effect.nbytes)
            if self._short_nbytes >= FILLING_NBYTES and now < self._short_until:
                self._fill()
        owner.perform()

    def _fill(self) -> None:
        """What was read fills memory, and nothing but its run's end makes room."""
        owner = self._owner
        state = owner.machine.state
        if state.pause is not None:
            return
        owner.machine.pause("what was read fills memory", owner.stage.world.now)
        owner.perform()
        runs = [*state.runs.values(), *state.older_runs.values()]
        has_begun = any(run.state == HANDED for run in runs)
        if not has_begun and state.excepted is None and any(_is_read_for(run) for run in runs):
            owner.fail("one run goes on though memory is short", "holds back all that it read for")
        owner.stage.world.after(FULL_SECONDS, owner.when_awake, self._go_on_if_done)

    def _go_on_if_done(self) -> None:
        """The run that went on has ended, or there was none: memory is free."""
        owner = self._owner
        excepted = owner.machine.state.excepted
        if excepted is not None and excepted.state != OVER:
            owner.stage.world.after(FULL_SECONDS, owner.when_awake, self._go_on_if_done)
        elif owner.shortage.until <= owner.stage.world.now:
            owner.machine.resume("what was read is gone", owner.stage.world.now)
            owner.perform()

    def serve(self, task: TaskId) -> Value | None:
        """For a peer or a client; None: it was lost."""
        owner = self._owner
        if task not in self.files or not self._is_bad():
            return self.files.get(task)
        owner.machine.value_lost(task, owner.stage.world.now)
        owner.perform()
        return None

    def drop(self, task: TaskId) -> bool:
        """Remove a file; whether there was one."""
        return self.files.pop(task, None) is not None

    def replaced(self, task: TaskId) -> None:
        """A value has come to memory: what there is of it on disk is of an old one."""
        self.files.pop(task, None)
        world = self._owner.stage.world
        if self._short_nbytes and world.now < self._short_until:
            world.after(DISK_SECONDS, self._owner.when_awake, self._relieve)

    def _is_bad(self) -> bool:
        self._nworked += 1
        is_over = self._owner.stage.world.now >= self._short_until
        return bool(self._bad_every) and not is_over and self._nworked % self._bad_every == 0


def _is_read_for(run: Run) -> bool:
    """Whether it waits for nothing but memory, and for inputs that are on disk, or were."""
    places = [replica.residence for replica in run.pins]
    is_from_disk = any(
        each is not None and (each.has_file or not each.in_memory) for each in places
    )
    return run.state == WAITING and not run.wants and is_from_disk
