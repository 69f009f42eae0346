"""What the scheduler's choices are worth: its machine in virtual time, against its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from benchmarks.policies.contest import Entry, Result, entries_of, longest_step_ms, play_all
from benchmarks.policies.kinds import KINDS
from tools.accept.figure import GATES, Figure

TO_BOUND_MAX = 1.10
TO_FORMULAS_MAX = 1.0
TO_FORMULAS_WORST_MAX = 1.10
GROWTH_MAX = 3.0
"""Of the cost of a task in the machine, from the smallest cluster to the largest."""

STEP_MS_MAX = 20.0
NPROCESSES = 2


@dataclass(frozen=True)
class Size:
    """A cluster, and how much is played on it; less for large ones, as it takes longer."""

    nworkers: int
    nthreads: int
    tasks_per_thread: int
    nseeds: int = 1
    graphs: tuple[str, ...] = tuple(KINDS)

    def entries(self) -> list[Entry]:
        """All graphs, so often."""
        return entries_of(KINDS, [self.nworkers], self.nseeds, self.tasks_per_thread, self.nthreads)


LARGE = ("fan-out", "group-by", "transpose", "stencil", "bag", "tree", "merge")
"""What is played on the largest cluster: all of it would take a quarter of an hour."""

SIZES = (
    Size(10, 2, 100, 2),
    Size(100, 2, 50),
    Size(1_000, 1, 50),
    Size(10_000, 1, 20, graphs=LARGE),
)


@GATES.register("policies")
def policies() -> Iterator[Figure]:
    """Makespans, bytes moved and costs, from 10 to 10,000 workers.  Cost: some minutes."""
    entries = [entry for size in reversed(SIZES) for entry in size.entries()]
    results = list(play_all(entries, NPROCESSES))
    costs: dict[int, float] = {}
    for size in SIZES:
        of_size = [one for one in results if one.entry.nworkers == size.nworkers]
        costs[size.nworkers] = median([one.us_per_task for one in of_size])
        yield from _figures(f"policies, {size.nworkers:,} workers", of_size)
    few, many = costs[SIZES[0].nworkers], costs[SIZES[-1].nworkers]
    yield Figure(
        "policies, growth of the cost of a task",
        ", ".join(f"{n:,} workers: {cost:.0f} us" for n, cost in costs.items())
        + f"; {many / few:.1f} times",
        f"<= {GROWTH_MAX:.0f} times",
        passed=many <= GROWTH_MAX * few,
    )


def _figures(name: str, results: Sequence[Result]) -> Iterator[Figure]:
    to_bound = median([one.to_bound for one in results])
    yield Figure(
        f"{name}, makespan over the full-knowledge bound",
        f"{to_bound:.3f} in the median; {_listed(results, 'to_bound')}",
        f"<= {TO_BOUND_MAX:.2f}",
        passed=to_bound <= TO_BOUND_MAX,
    )
    by_graph: dict[str, list[float]] = {}
    for one in results:
        by_graph.setdefault(one.entry.graph, []).append(one.to_formulas)
    graphs = {graph: geometric_mean(ratios) for graph, ratios in by_graph.items()}
    mean = geometric_mean(list(graphs.values()))
    worst = max(graphs, key=lambda graph: graphs[graph])
    yield Figure(
        f"{name}, makespan over distributed's formulas",
        f"{mean:.3f} in the geometric mean, {graphs[worst]:.2f} at worst ({worst}); "
        f"{geometric_mean([one.to_random for one in results]):.2f} of random placement",
        f"<= {TO_FORMULAS_MAX:.1f}, no graph over {TO_FORMULAS_WORST_MAX:.2f}",
        passed=mean <= TO_FORMULAS_MAX and graphs[worst] <= TO_FORMULAS_WORST_MAX,
    )
    ours = sum(one.ours.bytes_moved for one in results) / 1e9
    formulas = sum(one.formulas.bytes_moved for one in results) / 1e9
    chance = sum(one.random.bytes_moved for one in results) / 1e9
    ratios = [(one.ours.bytes_moved + 1e6) / (one.formulas.bytes_moved + 1e6) for one in results]
    slow = max(results, key=lambda one: one.longest_step_ms)
    longest_ms = slow.longest_step_ms
    if longest_ms > STEP_MS_MAX:
        longest_ms = min(longest_ms, longest_step_ms(slow.entry))
    yield Figure(
        f"{name}, bytes moved",
        f"{ours:,.0f} GB, by the formulas {formulas:,.0f}, at random {chance:,.0f}; "
        f"{geometric_mean(ratios):.2f} of the formulas' in the geometric mean",
        "reported",
        passed=True,
    )
    yield Figure(
        f"{name}, longest step",
        f"{longest_ms:.1f} ms ({slow.entry.graph}, {slow.longest_step})",
        f"<= {STEP_MS_MAX:.0f} ms",
        passed=longest_ms <= STEP_MS_MAX,
    )


def _listed(results: Sequence[Result], figure: str) -> str:
    """The figure of each graph, the largest first."""
    by_graph: dict[str, list[float]] = {}
    for one in results:
        by_graph.setdefault(one.entry.graph, []).append(getattr(one, figure))
    middles = {graph: median(values) for graph, values in by_graph.items()}
    graphs = sorted(middles, key=lambda graph: -middles[graph])
    return ", ".join(f"{graph} {middles[graph]:.2f}" for graph in graphs)
