"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean, median

from benchmarks.policies.contest import Result

HEADING = (
    f"{'':12}{'':>9}|{'makespan, ours over':^37}|{'GB moved':^32}|{'machine':^22}\n"
    f"{'graph':12}{'tasks':>9}|{'bound':>8}{'plan':>8}{'formulas':>10}{'random':>8}{'':>3}"
    f"|{'ours':>8}{'formulas':>9}{'random':>8}{'plan':>7}|{'us/task':>8}{'longest':>14}"
)


def line_of(results: Sequence[Result]) -> str:
    """One graph on one size of cluster: medians over seeds, the longest step of all."""
    first = results[0]
    longest = max(results, key=lambda one: one.longest_step_ms)

    def middle(values: Iterable[float]) -> float:
        return median(list(values))

    return (
        f"{first.entry.graph:12}{first.ntasks:9,}|"
        f"{middle(one.to_bound for one in results):8.2f}"
        f"{middle(one.ours.seconds / one.plan_seconds for one in results):8.2f}"
        f"{middle(one.to_formulas for one in results):10.2f}"
        f"{_or_dash(one.to_random for one in results):>8}"
        f"{'  >' if any(one.ours.was_given_up for one in results) else '   '}|"
        f"{middle(one.ours.bytes_moved for one in results) / 1e9:8.1f}"
        f"{middle(one.formulas.bytes_moved for one in results) / 1e9:9.1f}"
        f"{_or_dash(one.random and one.random.bytes_moved / 1e9 for one in results):>8}"
        f"{middle(one.plan_bytes for one in results) / 1e9:7.1f}|"
        f"{middle(one.us_per_task for one in results):8.1f}"
        f"{longest.longest_step_ms:7.1f} ms {longest.longest_step}"
    )


def _or_dash(values: Iterable[float | None]) -> str:
    """The median, or a dash where nobody played."""
    known = [value for value in values if value is not None]
    return f"{median(known):.2f}" if known else "-"


def summary_of(results: Sequence[Result]) -> Iterator[str]:
    """What is promised, for one size of cluster."""
    worst = max(results, key=lambda one: one.to_formulas)
    moved = geometric_mean([(one.ours.bytes_moved + 1) / (one.formulas.bytes_moved + 1)
                            for one in results])  # fmt: skip
    random = [one.to_random for one in results if one.to_random is not None]
    yield (
        f"{'':12}median {median([one.to_bound for one in results]):.3f} x bound; "
        f"geometric mean {geometric_mean([one.to_formulas for one in results]):.3f} x formulas, "
        f"worst {worst.to_formulas:.2f} ({worst.entry.graph}); "
        + (f"{geometric_mean(random):.3f} x random" if random else "random was not played")
    )
    yield (
        f"{'':12}bytes moved {moved:.2f} x formulas; "
        f"{median([one.us_per_task for one in results]):.1f} us per task; "
        f"longest step {max(one.longest_step_ms for one in results):.1f} ms"
    )


def table(results: Sequence[Result]) -> Iterator[str]:
    """All of it, a block for each number of workers."""
    by_size: dict[int, dict[str, list[Result]]] = {}
    for one in results:
        size = by_size.setdefault(one.entry.nworkers, {})
        size.setdefault(one.entry.graph, []).append(one)
    for nworkers, by_graph in by_size.items():
        yield f"\n{nworkers:,} workers of {results[0].entry.nthreads} threads"
        yield HEADING
        for group in by_graph.values():
            yield line_of(group)
        yield from summary_of([one for group in by_graph.values() for one in group])
