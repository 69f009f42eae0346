"""Large graphs taken in: cost per task in all processes, growth, and a scheduler kept free."""

from collections.abc import Iterator

from tools.accept.figure import GATES, Figure
from tools.accept.gates_collections import BLOCKED_MS_MAX

FEW, MANY = 10_000, 150_000
PROCESSOR_US_MAX = 60.0
GROWTH_MAX = 2.0
"""Of the cost per task, from few to many; quadratic growth would be 15."""


@GATES.register("ingestion")
def ingestion() -> Iterator[Figure]:
    """Each kind of graph, small and large, on a cluster without workers; three minutes."""
    from benchmarks.ingestion import KINDS, measure

    for kind in KINDS:
        few, many = measure(kind, FEW), measure(kind, MANY)
        growth = many.processor_us / few.processor_us
        yield Figure(
            f"ingestion, {kind}",
            f"{many.processor_us:.1f} us/task in all processes, {many.ntasks} tasks, "
            f"{growth:.2f} x that of {few.ntasks}",
            f"<= {PROCESSOR_US_MAX:g} us, <= {GROWTH_MAX:g} x",
            many.processor_us <= PROCESSOR_US_MAX and growth <= GROWTH_MAX,
        )
        yield Figure(
            f"scheduler's loop while it takes in {kind}",
            f"kept for {many.blocked_ms:.1f} ms at most",
            f"<= {BLOCKED_MS_MAX:g} ms",
            many.blocked_ms <= BLOCKED_MS_MAX,
        )
