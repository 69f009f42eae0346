"""Graphs of the usual forms, as dicts of tuples, through `client.get`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench, Session, check
from benchmarks.figures import Figure
from benchmarks.processes import Span
from benchmarks.workloads import graphs
from benchmarks.workloads.graphs import Plan

Run = Callable[[Bench], Iterator[Figure]]


def warm_up(session: Session) -> None:
    """Run a small graph, so that imports and first messages are not measured."""
    plan = graphs.merge(200, "warm")
    check("warm-up", session.client.get(plan.graph, plan.key), plan.plain_value())


def timed(session: Session, plan: Plan, what: str) -> Span:
    """Run `plan` and check its value."""
    expected = plan.plain_value()
    with session.meter.span() as span:
        value = session.client.get(plan.graph, plan.key)
    check(what, value, expected)
    return span


def graph_workload(build: Callable[[int], Plan]) -> Run:
    """A workload that runs `build(size)` with the client's usual layout."""

    def run(bench: Bench) -> Iterator[Figure]:
        plan = build(bench.size)
        with bench.cluster() as session:
            warm_up(session)
            span = timed(session, plan, build.__name__)
        yield from span.per_task(plan.ntasks)
        yield Figure("ntasks", plan.ntasks, "tasks", "higher")

    return run


def stencil(steps_and_width: int) -> Plan:
    """A stencil as wide as it has steps."""
    return graphs.stencil(steps_and_width, steps_and_width)


def scheduler_cost(build: Callable[[int], Plan]) -> Run:
    """A workload for the scheduler's processor time alone, in a process of its own.

    A worker that answers at once can not be had through the public interface of `distributed`;
    so two real workers run no-ops, and only the scheduler's process is looked at.
    """

    def run(bench: Bench) -> Iterator[Figure]:
        plan = build(bench.size)
        with bench.separate_cluster() as session:
            warm_up(session)
            span = timed(session, plan, build.__name__)
        yield from span.per_task(plan.ntasks)

    return run


def growth(bench: Bench) -> Iterator[Figure]:
    """Independent tasks, more and more of them: cost per task, and when the first one starts."""
    plan = graphs.growth(bench.size)
    with bench.separate_cluster() as session:
        warm_up(session)
        with session.meter.span() as span:
            submitted_at = time.time()
            ntasks, numbers, first_at = session.client.get(plan.graph, plan.key)
        check("growth", (ntasks, numbers), (bench.size, bench.size * (bench.size - 1) // 2))
    yield from span.per_task(plan.ntasks)
    yield Figure("first_task_start_seconds", first_at - submitted_at, "s")
