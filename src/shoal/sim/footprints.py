"""What runs take of a simulated worker's memory, and what happens when it is full.

A run grows in the middle of its time, and its worker says so; where all that has grown is more than
the limit, the process dies, as its nanny ends it, and the one that follows says what it had.
"""

from collections.abc import Callable
from typing import Protocol

from shoal.ids import Epoch, TaskId
from shoal.protocol.memory import WantsReplacement
from shoal.sim.network import End
from shoal.sim.specs import TaskSpec, Value
from shoal.sim.stage import Stage
from shoal.sim.wire import FROM_WORKER
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import Run


class Owner(Protocol):
    """The worker whose memory it is, as its parts see it."""

    stage: Stage
    machine: WorkerMachine
    address: str
    name: str
    is_dead: bool
    end: End
    has_reconnected: bool

    def when_awake(self, action: Callable[..., None], *arguments: object) -> None:
        """Do it now, or once the process is no longer frozen; never if it died."""

    def perform(self) -> None:
        """Do what the machine asks for."""

    def serves(self, task: TaskId, epoch: Epoch) -> Value | None:
        """The value, if others may have it."""

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something about this worker can't be."""


class Memory:
    """Of one worker."""

    def __init__(self, worker: Owner, limit: int, *, is_counted: bool) -> None:
        """`limit`: in bytes; 0 = unlimited; `is_counted`: what runs take matters all the same."""
        self.limit = limit
        self._is_counted = is_counted
        self._worker = worker
        self._grown: dict[Run, int] = {}
        self._going: dict[Run, None] = {}  # is about to grow
        self._hinted: dict[Run, int] = {}  # what executes, and was said to take so much

    @property
    def grown_bytes(self) -> int:
        """What all runs have taken."""
        return sum(self._grown.values())

    def begin(self, run: Run, spec: TaskSpec, seconds: float) -> None:
        """A thread takes the run, which will last so long."""
        worker = self._worker
        if not spec.peak_bytes or not (self.limit or self._is_counted):
            return
        hint = worker.stage.memory_of(run.task, worker.machine.state.epoch)
        if hint and self.limit and not spec.secedes and not spec.awaits:
            self._hinted[run] = hint
            self._require_room(run)
        self._going[run] = None
        worker.stage.world.after(seconds / 2, worker.when_awake, self._grow, run, spec)

    def end(self, run: Run) -> int:
        """The run is over, and what it took is there again: so much."""
        self._hinted.pop(run, None)
        self._going.pop(run, None)
        return self._grown.pop(run, 0)

    def _grow(self, run: Run, spec: TaskSpec) -> None:
        worker = self._worker
        if run not in self._going:
            return  # it has ended before that
        self._grown[run] = spec.peak_bytes
        if not self.limit:
            return
        nbytes = sum(self._grown.values())
        gauged = min(spec.peak_bytes, max(0, self.limit - nbytes + spec.peak_bytes))
        worker.machine.runs_gauged([(run, gauged)], worker.stage.world.now)
        worker.perform()
        if nbytes > self.limit and not worker.is_dead:
            worker.stage.memory_is_full(worker.address, nbytes)

    def _require_room(self, run: Run) -> None:
        """Where it was said what runs take, they never take more together than there is.

        A scheduler that was lost and is back does not know of runs that go on from before.
        """
        worker = self._worker
        total = sum(self._hinted.values())
        if len(self._hinted) > 1 and total > self.limit and not worker.has_reconnected:
            worker.stage.fail(
                "memory holds",
                f"{worker.name} runs what takes {total} of {self.limit} bytes",
                run.key,
            )


class Shortage:
    """Times in which one worker is short of memory, and begins nothing."""

    def __init__(self, worker: Owner, patience_seconds: float) -> None:
        """`patience_seconds`: without progress, until it stays though it is to be replaced."""
        self._worker = worker
        self._patience_seconds = patience_seconds
        self.until = 0.0  # whatever else makes room

    def begin(self, until: float, leaks: bool) -> None:
        """Nothing is begun until then."""
        worker, stage = self._worker, self._worker.stage
        self.until = max(self.until, until)
        worker.machine.pause("the plan says so", stage.world.now)
        worker.perform()
        if leaks and not worker.end.is_closed:
            is_of_results = int(until * 1000) % 2 == 0
            asks = WantsReplacement("recycled", self._patience_seconds, is_of_results)
            stage.say(worker.end, [asks], FROM_WORKER)
        stage.world.at(until, worker.when_awake, self._end)

    def _end(self) -> None:
        worker = self._worker
        if self.until <= worker.stage.world.now:
            worker.machine.resume("the plan says so", worker.stage.world.now)
            worker.perform()
