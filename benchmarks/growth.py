"""How the scheduler's machine grows: with tasks, with workers, with the depth of a graph.

`python -m benchmarks.growth` prints the figures.  Time is virtual: each stub worker runs one task
after the other, each for 10 ms, and says so in a frame of its own.
"""

import sys
import tracemalloc
from heapq import heappop, heappush
from statistics import median
from types import FrameType
from typing import cast

from benchmarks.machine import SLICE, Stage, collector_at_rest, flat_frames, graph_frames, run_flat
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.codec import Decoder, encode
from shoal.protocol.messages import Message, ReleaseTasks, RunTask, SubmitTasks, TaskFinished
from shoal.scheduler.model.entities import Worker

RUN_SECONDS = 0.01
RECURSION_MAX = 200
"""Frames above the caller's that a chain may take, however long it is."""


def tasks_ratio(few: int = 1000, many: int = 500_000, nrounds: int = 3) -> tuple[float, float]:
    """Microseconds per task of a small and of a large map, for all that is done to them.

    The small one is repeated so often that both take about a second.
    """
    small: list[float] = []
    large: list[float] = []
    for _ in range(nrounds):
        small.append(median(run_flat(few).total for _ in range(50)))
        large.append(run_flat(many).total)
    return median(small), median(large)


def workers_us(nworkers: int, ntasks: int, *, flat: bool) -> float:
    """Microseconds per finished task with so many workers, each with one thread."""
    frames = list(flat_frames(ntasks) if flat else graph_frames(ntasks))
    with collector_at_rest():
        stage = Stage(nworkers)
        stage.say(frames)
        stage.spent_ns = 0
        _run_in_virtual_time(stage)
        assert not stage.machine.state.ntasks["queued"]
        return stage.lap_us(ntasks)


def _run_in_virtual_time(stage: Stage) -> None:
    """Each worker ends its runs in the order in which they came, one every 10 ms."""
    free_at: dict[Worker, float] = {}
    ends: list[tuple[float, int, Worker, RunTask]] = []
    while True:
        while stage.waiting:
            worker, run = stage.waiting.popleft()
            at = max(stage.now, free_at.get(worker, 0.0)) + RUN_SECONDS
            free_at[worker] = at
            heappush(ends, (at, run.run, worker, run))
        if not ends:
            return
        stage.now, _, worker, run = heappop(ends)
        stage.answer(worker, [TaskFinished(run.task, run.run, 1000, RUN_SECONDS)])


def workers_ratio(
    few: int = 10, many: int = 10_000, ntasks: int = 50_000, nrounds: int = 3
) -> dict[str, tuple[float, float]]:
    """Microseconds per task with few and with many workers, by kind of graph."""
    costs: dict[tuple[str, int], list[float]] = {}
    for _ in range(nrounds):
        for name in ("flat", "two inputs"):
            for nworkers in (few, many):
                cost = workers_us(nworkers, ntasks, flat=name == "flat")
                costs.setdefault((name, nworkers), []).append(cost)
    return {
        name: (median(costs[name, few]), median(costs[name, many]))
        for name in ("flat", "two inputs")
    }


def run_chain(ntasks: int = 100_000) -> int:
    """Run and release a chain, with no more than so many frames; how many tasks finished.

    Then once more, and let go of it before anything has run.
    """
    stage = Stage(1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_depth() + RECURSION_MAX)
    try:
        _say_chain(stage, 1, ntasks)
        nfinished = 0
        while stage.waiting:
            worker, run = stage.waiting.popleft()
            nfinished += 1
            stage.answer(worker, [TaskFinished(run.task, run.run, 10, 1e-6)])
        stage.say([ReleaseTasks([ClientTaskId(ntasks)])])
        stage.finish_forgetting()
        assert not stage.machine.state.tasks
        _say_chain(stage, ntasks + 1, ntasks)
        stage.say([ReleaseTasks([ClientTaskId(2 * ntasks)])])
        stage.finish_forgetting()
        assert not stage.machine.state.tasks
    finally:
        sys.setrecursionlimit(limit)
    return nfinished


def _say_chain(stage: Stage, first: int, ntasks: int) -> None:
    stage.say([
        SubmitTasks(
            first=ClientTaskId(first),
            keys=[Key(f"link-{first + index}") for index in range(ntasks)],
            codes=[CodeId(1)],
            arguments=[0] * ntasks,
            dependencies=[[], *([ClientTaskId(first + index)] for index in range(ntasks - 1))],
            prefixes=["link"],
            prefix_indices=[],
            wanted=[ntasks - 1],
        )
    ])  # fmt: skip


def _depth() -> int:
    frame: FrameType | None = sys._getframe()
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def bytes_per_task(ntasks: int = 50_000) -> float:
    """Bytes that a task costs while its result is wanted and held by a worker.

    All of it: the names and arguments that came off the wire, and the indexes of client and worker.
    """
    bodies = [encode([frame]) for frame in flat_frames(ntasks)]
    decoder = Decoder(SubmitTasks)
    with collector_at_rest():
        stage = Stage(10)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for body in bodies:
                stage.say(cast("list[Message]", decoder.decode(body)))
                stage.work(inline=False)
            assert stage.machine.state.ntasks["memory"] == ntasks
            stage.waiting.clear()
            return (tracemalloc.get_traced_memory()[0] - before) / ntasks
        finally:
            tracemalloc.stop()


def main() -> None:
    """Print every figure."""
    small, large = tasks_ratio()
    print(f"us per task, 1k and 500k tasks: {small:.2f} {large:.2f}  ratio {large / small:.2f}")
    for name, (few, many) in workers_ratio().items():
        print(
            f"us per task, 10 and 10k workers, {name}: {few:.2f} {many:.2f}  ratio {many / few:.2f}"
        )
    print(f"chain: {run_chain():,} tasks ran in {RECURSION_MAX} frames")
    print(f"bytes per held task: {bytes_per_task(50 * SLICE):.0f}")


if __name__ == "__main__":
    main()
