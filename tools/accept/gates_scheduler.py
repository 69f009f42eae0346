"""The scheduler's machine alone: what it costs, and that it grows as it should."""

from collections.abc import Iterator
from statistics import median

from benchmarks import growth, machine, yardstick
from tools.accept.figure import GATES, Figure

FLAT_US_MAX = 12.0
GRAPH_US_MAX = 16.0
"""On the machine of `yardstick.REFERENCE_US`; they may only tighten.  6 and 12 are the goal."""
ROUNDS = 5
TASKS_RATIO_MAX = 1.3
WORKERS_RATIO_MAX = 3.0
CHAIN_TASKS = 100_000
HELD_BYTES_MAX = 1229
"""1.2 KB."""


@GATES.register("scheduler cost per task")
def cost_per_task() -> Iterator[Figure]:
    """Submit, process and release, in processor time."""
    limits = {"flat": FLAT_US_MAX, "two inputs": GRAPH_US_MAX}
    kinds = {name: machine.KINDS[name] for name in limits}
    totals: dict[str, list[float]] = {name: [] for name in limits}
    sticks: list[float] = []
    for _ in range(ROUNDS):
        sticks.append(yardstick.measure_us())
        for name, cost in machine.measure(20_000, 1, kinds).items():
            totals[name].append(cost.total)
    slowness = yardstick.slowness(sticks)
    for name, readings in totals.items():
        here = median(readings)
        yield Figure(
            f"scheduler's machine, {name}",
            f"{here / slowness:.1f} us per task ({here:.1f} here, {slowness:.2f} times as slow)",
            f"<= {limits[name]:.0f} us",
            passed=here <= limits[name] * slowness,
        )


@GATES.register("scheduler growth with tasks")
def growth_with_tasks() -> Figure:
    """A task of a large map costs about as much as one of a small map."""
    small, large = growth.tasks_ratio()
    return Figure(
        "growth 1k->500k",
        f"{small:.1f} -> {large:.1f} us per task, {large / small:.2f} times",
        f"<= {TASKS_RATIO_MAX}",
        passed=large <= TASKS_RATIO_MAX * small,
    )


@GATES.register("scheduler growth with workers")
def growth_with_workers() -> Iterator[Figure]:
    """A task costs about as much among many workers as among few."""
    for name, (few, many) in growth.workers_ratio().items():
        yield Figure(
            f"10->10,000 workers, {name}",
            f"{few:.1f} -> {many:.1f} us per task, {many / few:.2f} times",
            f"<= {WORKERS_RATIO_MAX:.0f}",
            passed=many <= WORKERS_RATIO_MAX * few,
        )


@GATES.register("scheduler chain", cheap=True)
def chain() -> Figure:
    """No graph is too deep."""
    nfinished = growth.run_chain(CHAIN_TASKS)
    return Figure(
        f"chain of {CHAIN_TASKS:,} runs and is released",
        f"{nfinished:,} ran within {growth.RECURSION_MAX} frames, none is left",
        f"{CHAIN_TASKS:,}",
        passed=nfinished == CHAIN_TASKS,
    )


@GATES.register("scheduler memory per task", cheap=True)
def memory_per_task() -> Figure:
    """All that a held result costs in the scheduler, names and indexes included."""
    held = growth.bytes_per_task()
    return Figure(
        "memory of a held task",
        f"{held:,.0f} bytes",
        f"<= {HELD_BYTES_MAX:,} bytes",
        passed=held <= HELD_BYTES_MAX,
    )
