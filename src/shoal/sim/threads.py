"""Threads of a simulated worker: runs begin, wait, secede, and end when the plan says so."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from shoal.ids import Epoch, TaskId
from shoal.protocol.messages import Failure, RunTask
from shoal.sim.amounts import Amounts
from shoal.sim.footprints import Memory, Owner
from shoal.sim.making_room import MemoryWatch
from shoal.sim.process import Process
from shoal.sim.shuffling import TRANSFER, UNPACK, Shuffling
from shoal.sim.specs import NBYTES_MIN, TaskSpec, Value, call_of, compute, from_bytes, to_bytes
from shoal.worker.machine.effects import StartRuns
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    RESCHEDULED,
    WITHDRAWN,
    Run,
    RunEnded,
)

RETURN_SECONDS = 0.0001
"""What threads take to give back a run that they haven't begun."""

SLOWED_SECONDS_MAX = 30.0
"""A run lasts no longer for being on a slow worker: heartbeats would fill all steps there are."""


class Host(Owner, Protocol):
    """The worker whose threads they are."""

    nthreads: int
    slowness: tuple[float, float]
    inline_bytes_max: int
    memory: Memory
    process: Process
    room: MemoryWatch
    shuffling: Shuffling
    store: dict[TaskId, Value]

    def code_of(self, run: Run) -> bytes:
        """What it is to call."""

    def keep(self, run: Run, value: Value) -> None:
        """Its result is in memory."""

    def beat_now(self) -> None:
        """Say how many runs wait."""


class Threads:
    """Of one worker."""

    def __init__(self, worker: Host) -> None:
        self._worker = worker
        self._stage = worker.stage
        self._amounts = Amounts(worker)
        self._queue: deque[tuple[Run, bytes]] = deque()  # handed over, each with its code
        self.nexecuting = 0  # with a slot
        self.executing: dict[Run, None] = {}  # with a slot or without
        self.computing: dict[Run, float] = {}  # of those, what waits for nothing; since when
        self.waiting: dict[Run, None] = {}  # for other tasks, as their worker knows
        self._returning: dict[Run, None] = {}  # withdrawn, and on their way back
        self._worked_seconds = 0.0  # by those before
        self._seceded: dict[Run, None] = {}
        self._rejoining: deque[Callable[[], None]] = deque()
        self._plain: dict[Run, None] = {}  # of those that execute: they do nothing but compute

    # --- what they are told ------------------------------------------------------------------

    def start(self, effect: StartRuns) -> None:
        """Begin these as soon as a thread is free."""
        self._queue += [(run, self._worker.code_of(run)) for run in effect.runs]
        self._begin_some()

    def withdraw(self, runs: list[Run]) -> None:
        """Give back what no thread has begun."""
        withdrawn = self._take_unbegun(runs)
        if withdrawn:
            ended = [RunEnded(run, WITHDRAWN) for run in withdrawn]
            self._returning.update(dict.fromkeys(withdrawn))
            self._stage.world.after(RETURN_SECONDS, self._worker.when_awake, self._ended, ended)

    def hold(self, runs: list[Run]) -> None:
        """Have what no thread has begun wait until the worker resumes, or has room."""
        held = self._take_unbegun(runs)
        if held:
            self._worker.machine.runs_held(held, self._stage.world.now)

    def end(self, runs: list[Run]) -> None:
        """Nobody wants these, and they may be ended; those that do nothing but compute are."""
        for run in runs:
            if run in self._plain:
                self._stage.world.after(
                    RETURN_SECONDS, self._worker.when_awake, self._end_unwanted, run
                )

    def _end_unwanted(self, run: Run) -> None:
        if run in self._plain:  # it has not ended meanwhile
            self.deprived(RunEnded(run, WITHDRAWN))

    def worked_seconds(self) -> float:
        """Of a processor, by all runs so far."""
        now = self._stage.world.now
        return self._worked_seconds + sum([now - since for since in self.computing.values()])

    def handed(self) -> list[Run]:
        """All runs that are here, begun or not."""
        return [*self.executing, *self._returning, *self.unbegun()]

    def unbegun(self) -> list[Run]:
        """Those that wait for a thread."""
        return [run for run, _ in self._queue]

    @property
    def nwaiting(self) -> int:
        """Runs that wait for other tasks, as their worker knows."""
        return len(self.waiting)

    def _take_unbegun(self, runs: list[Run]) -> list[Run]:
        waiting = {id(run) for run, _ in self._queue}
        taken = [run for run in runs if id(run) in waiting]
        gone = {id(run) for run in taken}
        self._queue = deque(item for item in self._queue if id(item[0]) not in gone)
        return taken

    # --- runs --------------------------------------------------------------------------------

    def _begin_some(self) -> None:
        """Runs that wait for others have substitutes."""
        while self._rejoining and self.nexecuting - self.nwaiting < self._worker.nthreads:
            self._rejoining.popleft()()
        while self._queue and self.nexecuting - self.nwaiting < self._worker.nthreads:
            run, code = self._queue.popleft()
            self.nexecuting += 1
            self._begin(run, code)

    def _begin(self, run: Run, code: bytes) -> None:
        """A thread takes the run: from here on its inputs are its own."""
        worker, stage, message = self._worker, self._stage, run.message
        state, world = worker.machine.state, stage.world
        if state.pause is not None and run is not state.excepted:
            worker.fail("paused workers begin nothing", f"begins {run!r}", run.key)
        function, label = call_of(code, message.argument)
        spec = stage.specs[label]
        stage.run_begins(worker.address, state.epoch, message, spec)
        self._amounts.take(run)
        stage.occasion("begin", worker.address)
        inputs = [self._input(message, i) for i in range(len(message.inputs))]
        value = Value(compute(function, label, inputs), spec.nbytes, spec.is_unsendable)
        if stage.is_actor(run.task, state.epoch):
            value = Value(value.fingerprint, NBYTES_MIN)  # its proxy
        factor, until = worker.slowness
        seconds = spec.seconds
        if until > world.now:
            seconds = max(seconds, min(seconds * factor, SLOWED_SECONDS_MAX))
        stage.trace.note(world.now, worker.name, "begins", f"{run!r}")
        self.executing[run] = None
        self.computing[run] = world.now
        worker.memory.begin(run, spec, seconds)
        is_of_lost = state.epoch != stage.epoch  # scheduler: nobody says where shards are
        if worker.shuffling.joins(run, spec) or (spec.role == UNPACK and is_of_lost):
            join = partial(self._join, run, spec, (function, label), seconds, state.epoch)
            world.after(seconds, worker.when_awake, join)
        elif spec.awaits:
            world.after(seconds / 3, worker.when_awake, self._await, run, spec, value, seconds)
        elif spec.secedes:
            world.after(seconds / 3, worker.when_awake, self._secede, run, spec, seconds)
            act = self._want_slot if spec.rejoins else self._end
            world.after(seconds * 2 / 3, worker.when_awake, act, run, spec, value, seconds)
        else:
            self._plain[run] = None
            world.after(seconds, worker.when_awake, self._end_plain, run, spec, value, seconds)

    def _end_plain(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        if run in self._plain:  # it was not ended before
            self._end(run, spec, value, seconds)

    def _join(
        self, run: Run, spec: TaskSpec, call: tuple[str, str], seconds: float, epoch: Epoch
    ) -> None:
        """The run is an unpack: its value is made of the shards that it finds.

        Of another epoch than it began in it finds none.
        """
        self._stop_computing(run)
        if self._worker.machine.state.epoch != epoch or self._stage.epoch != epoch:
            self.deprived(RunEnded(run, RESCHEDULED))
            return

        def joined(inputs: list[int]) -> None:
            self._end(run, spec, Value(compute(*call, inputs), spec.nbytes), seconds)

        self._worker.shuffling.join(run, spec, lambda i: self._input(run.message, i), joined)

    def deprived(self, ended: RunEnded) -> None:
        """A run ends without all that it needs."""
        self._leave(ended.run)
        self._ended([ended])
        self._begin_some()

    def _await(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        """The run waits for another task; as it had submitted that, or without a word."""
        worker, world = self._worker, self._stage.world
        self._stop_computing(run)
        if spec.says_so:
            self.waiting[run] = None
            self._tell_waiting()

        def go_on() -> None:
            self.computing[run] = world.now
            if spec.says_so:
                del self.waiting[run]
                self._tell_waiting()
            world.after(seconds * 2 / 3, worker.when_awake, self._end, run, spec, value, seconds)

        self._stage.awaited.wait(spec, lambda: worker.when_awake(go_on))
        self._begin_some()

    def _tell_waiting(self) -> None:
        """Nothing is performed then, as in the shell."""
        self._worker.machine.waiting(self.nwaiting)
        self._worker.beat_now()

    def _secede(self, run: Run, spec: TaskSpec, seconds: float) -> None:
        """The run gives its slot to others."""
        worker = self._worker
        self.nexecuting -= 1
        self._seceded[run] = None
        self._stage.occasion("secede", worker.address)
        worker.machine.seceded(run, seconds / 3, self._stage.world.now)
        worker.perform()
        self._begin_some()

    def _want_slot(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        """It takes one again as soon as there is any, and before others."""
        worker, world = self._worker, self._stage.world

        def rejoin() -> None:
            self.nexecuting += 1
            del self._seceded[run]
            worker.machine.rejoined(run, world.now)
            worker.perform()
            world.after(seconds / 3, worker.when_awake, self._end, run, spec, value, seconds)

        self._rejoining.append(rejoin)
        self._begin_some()

    def _input(self, message: RunTask, index: int) -> int:
        item = message.inputs[index]
        if not isinstance(item, int) and item.value is not None:
            return from_bytes(item.value).fingerprint
        task = item if isinstance(item, int) else item.task
        value = self._worker.store.get(task)
        if value is None:
            self._worker.fail(
                "runs have their inputs",
                f"begins {message.key!r} without its input {task}",
                message.key,
            )
            raise AssertionError
        return value.fingerprint

    def _end(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        worker, stage = self._worker, self._stage
        label = spec.label
        nended = stage.nended[label] = stage.nended.get(label, 0) + 1
        if nended <= spec.nsent_back:
            ended = RunEnded(run, RESCHEDULED, seconds=seconds)
        elif nended <= spec.nsent_back + spec.nfailures:
            failure = Failure(b"", f"ValueError: {label}", "", run.key, worker.address)
            ended = RunEnded(run, FAILED, seconds=seconds, failure=failure)
        else:
            is_small = value.nbytes <= max(worker.inline_bytes_max, NBYTES_MIN)
            if spec.role == TRANSFER:
                is_small = False
                value = worker.shuffling.cut(run, spec, value, nended)
            stage.run_is_over(run.task, worker.machine.state.epoch)
            ended = RunEnded(
                run,
                FINISHED,
                nbytes=value.nbytes,
                seconds=seconds,
                value=to_bytes(value) if is_small else None,
            )
        is_gauged = worker.room.gauge(ended)
        self._leave(run)
        worker.machine.runs_ended([ended], stage.world.now)
        if ended.kept:
            worker.keep(run, value)
        if is_gauged:
            worker.room.settle()
        stage.occasion("end", worker.address)
        worker.perform()
        self._begin_some()

    def _leave(self, run: Run) -> None:
        """A thread is through with it."""
        self._stop_computing(run)
        self._plain.pop(run, None)
        del self.executing[run]
        if run in self._seceded:
            del self._seceded[run]
        else:
            self.nexecuting -= 1
        self._amounts.give_back(run)
        worker = self._worker
        worker.process.shrunk(worker.memory.end(run))

    def _stop_computing(self, run: Run) -> None:
        since = self.computing.pop(run, None)
        if since is not None:
            self._worked_seconds += self._stage.world.now - since

    def _ended(self, ended: list[RunEnded]) -> None:
        for end in ended:
            self._returning.pop(end.run, None)
        self._worker.machine.runs_ended(ended, self._stage.world.now)
        self._worker.perform()
