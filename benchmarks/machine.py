"""The scheduler's machine by itself: no process, no socket, no thread; workers that answer at once.

`python -m benchmarks.machine` prints microseconds of processor time per task.  Only what the
machine does is timed, not the stub workers; medians over repetitions, kinds of graph in turn.
"""

import argparse
import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import process_time_ns

from shoal.ids import ClientTaskId, CodeId, Epoch, Key
from shoal.protocol.messages import (
    DefineClientCode,
    Message,
    RegisterClient,
    RegisterWorker,
    ReleaseTasks,
    RunTask,
    SubmitTasks,
    TaskFinished,
)
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.shell.collecting import take_over

SLICE = 1000
WIDTH = 100
"""Tasks in a row of the graph with two inputs each."""

FRAME = 32
"""Answers that a worker sends together, at most."""


@dataclass(frozen=True)
class Costs:
    """Microseconds per task, by what was done."""

    submit: float
    process: float
    release: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.submit + self.process + self.release


class Stage:
    """A machine, one client, and workers that are played here."""

    def __init__(self, nworkers: int, nthreads: int = 1) -> None:
        self.machine = SchedulerMachine(SchedulerSettings(), Epoch(1))
        self.now = 0.0
        self.spent_ns = 0
        self.waiting: deque[tuple[Worker, RunTask]] = deque()
        for index in range(nworkers):
            address = f"tcp://10.0.{index >> 8}.{index & 255}:4000"
            self.machine.worker_joined(RegisterWorker(address, f"w{index}", nthreads, 0), 0.0)
        self.client = self.machine.client_joined(RegisterClient("client"), 0.0)
        self.say([DefineClientCode(CodeId(1), b"code")])
        self.spent_ns = 0

    def say(self, frame: Sequence[Message]) -> None:
        """The client sends a frame; what the workers are to run is kept for them."""
        before = process_time_ns()
        self.machine.receive_from_client(self.client, frame, self.now)
        outgoing = self.machine.take_outgoing()
        self.spent_ns += process_time_ns() - before
        self._keep(outgoing)

    def answer(self, worker: Worker, frame: Sequence[Message]) -> None:
        """A worker sends a frame."""
        before = process_time_ns()
        self.machine.receive_from_worker(worker, frame, self.now)
        outgoing = self.machine.take_outgoing()
        self.spent_ns += process_time_ns() - before
        self._keep(outgoing)

    def work(self, inline: bool) -> None:
        """Answer until nothing is left to be run; each worker in turn, some runs at a time."""
        value = b"\x80\x05K\x01." if inline else None
        while self.waiting:
            by_worker: dict[Worker, list[Message]] = {}
            for worker, run in self.waiting:
                said = TaskFinished(run.task, run.run, 1000, 1e-6, value)
                by_worker.setdefault(worker, []).append(said)
            self.waiting.clear()
            for worker, answers in by_worker.items():
                for start in range(0, len(answers), FRAME):
                    self.answer(worker, answers[start : start + FRAME])

    def finish_forgetting(self) -> None:
        """Wake the machine until nothing is left of what it put off, as a service does."""
        before = process_time_ns()
        while self.machine.state.of_no_use:
            self.machine.wake(self.now)
        outgoing = self.machine.take_outgoing()
        self.spent_ns += process_time_ns() - before
        self._keep(outgoing)

    def lap_us(self, ntasks: int) -> float:
        """Microseconds per task since the last lap."""
        spent, self.spent_ns = self.spent_ns, 0
        return spent / 1000 / ntasks

    def _keep(self, outgoing: list[tuple[Worker | Client, list[Message]]]) -> None:
        for peer, said in outgoing:
            if isinstance(peer, Worker):
                self.waiting.extend((peer, one) for one in said if type(one) is RunTask)


def flat_frames(ntasks: int) -> Iterator[SubmitTasks]:
    """A map of no-ops."""
    for first in range(1, ntasks + 1, SLICE):
        count = min(SLICE, ntasks + 1 - first)
        yield SubmitTasks(
            first=ClientTaskId(first),
            keys=[Key(f"inc-{index:032x}") for index in range(first, first + count)],
            codes=[CodeId(1)],
            arguments=[b"argument %d" % index for index in range(first, first + count)],
            dependencies=[],
            prefixes=["inc"],
            prefix_indices=[],
        )


def graph_frames(ntasks: int) -> Iterator[SubmitTasks]:
    """Rows of tasks that each need two of the row before; the last row is wanted."""
    assert ntasks % SLICE == 0
    rows = SLICE // WIDTH
    for first in range(1, ntasks + 1, SLICE):
        numbers = range(first, first + SLICE)
        is_last = first + SLICE > ntasks
        edge = list(range(SLICE - WIDTH, SLICE))
        before = [ClientTaskId(number) for number in range(first - WIDTH, first)]
        yield SubmitTasks(
            first=ClientTaskId(first),
            keys=[Key(f"add-{index:032x}") for index in numbers],
            codes=[CodeId(1)],
            arguments=list(range(SLICE)),
            dependencies=[
                _two_above(first, row, column) for row in range(rows) for column in range(WIDTH)
            ],
            prefixes=["add"],
            prefix_indices=[],
            wanted=edge if is_last else [],
            held=[] if is_last else edge,
            let_go=before if first > 1 else [],
            graph=ClientTaskId(1),
            ntasks_ahead=ntasks + 1 - first - SLICE,
        )


def _two_above(first: int, row: int, column: int) -> list[ClientTaskId]:
    above = first + (row - 1) * WIDTH
    if above < 1:
        return []
    return [ClientTaskId(above + column), ClientTaskId(above + (column + 1) % WIDTH)]


def run_flat(ntasks: int, nworkers: int = 10) -> Costs:
    """Submit, compute and release a map of small results."""
    return _run(list(flat_frames(ntasks)), ntasks, nworkers, inline=True)


def run_graph(ntasks: int, nworkers: int = 10, *, inline: bool = False) -> Costs:
    """The same for the graph with two inputs each; the results stay with the workers."""
    return _run(list(graph_frames(ntasks)), ntasks, nworkers, inline=inline)


def _run(frames: list[SubmitTasks], ntasks: int, nworkers: int, *, inline: bool) -> Costs:
    with collector_at_rest():
        stage = Stage(nworkers)
        for frame in frames:
            stage.say([frame])
        submit = stage.lap_us(ntasks)
        stage.work(inline)
        process = stage.lap_us(ntasks)
        wanted = list(stage.client.tasks)
        for start in range(0, len(wanted), SLICE):
            stage.say([ReleaseTasks(wanted[start : start + SLICE])])
        stage.finish_forgetting()
        release = stage.lap_us(ntasks)
        assert not stage.machine.state.tasks
    return Costs(submit, process, release)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """The garbage collector as a scheduler sets it: young objects only, and none of what was."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    take_over()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


KINDS: dict[str, Callable[[int], Costs]] = {
    "flat": run_flat,
    "two inputs, small": lambda ntasks: run_graph(ntasks, inline=True),
    "two inputs": run_graph,
}


def measure(
    ntasks: int, nrounds: int, kinds: dict[str, Callable[[int], Costs]]
) -> dict[str, Costs]:
    """Medians over `nrounds`, the kinds in turn."""
    rounds: dict[str, list[Costs]] = {name: [] for name in kinds}
    for _ in range(nrounds):
        for name, run in kinds.items():
            rounds[name].append(run(ntasks))
    return {
        name: Costs(
            median(cost.submit for cost in costs),
            median(cost.process for cost in costs),
            median(cost.release for cost in costs),
        )
        for name, costs in rounds.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine", description=__doc__)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'us per task':20} submit  process  release  total")
    for name, cost in measure(options.tasks, options.rounds, KINDS).items():
        parts = f"{cost.submit:6.2f} {cost.process:8.2f} {cost.release:8.2f}"
        print(f"{name:20} {parts} {cost.total:6.2f}")


if __name__ == "__main__":
    main()
