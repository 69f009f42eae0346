"""The measuring stick measures right: its arithmetic, its budgets, and how it takes a failure."""

from __future__ import annotations

import json
import math
import os
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import report, yardstick
from benchmarks.bench import Bench, check
from benchmarks.budgets import (
    Budget,
    Verdict,
    concerning,
    first_loosening,
    parse_budgets,
    read_budgets,
)
from benchmarks.budgets import check as judge
from benchmarks.environment import SIDES, Side
from benchmarks.errors import BudgetsNotValid, SideNotUsable, UnknownWorkload, WrongResult
from benchmarks.figures import (
    Comparison,
    Failure,
    Figure,
    Reading,
    Row,
    geometric_mean,
    percentile,
    ratio,
    rows,
)
from benchmarks.processes import Meter, Span
from benchmarks.record import Record, read_record, take_record
from benchmarks.registry import WORKLOADS, select
from benchmarks.rounds import measure, parse, run_once
from benchmarks.workloads import graphs, throughput
from benchmarks.workloads.graphs import Plan
from benchmarks.workloads.plain_graphs import graph_workload


def row(better: str = "lower", **values: list[float]) -> Row:
    by_side = {side: dict(enumerate(found)) for side, found in values.items()}
    return Row("map_10k", "us_per_task", "us", better, by_side)  # type: ignore[arg-type]


def work_of_distributed(us: float) -> Row:
    """By which a machine is told."""
    return Row("map_10k", "cpu_us_per_task", "us", "lower", {"distributed": {0: us}})


def budget(**changes: Any) -> Budget:
    base = Budget("wall", ("map_10k:us_per_task",), "distributed", 20.0, (), "because")
    return replace(base, **changes)


# Figures


@pytest.mark.parametrize(
    ("mine", "theirs", "better", "expected"),
    [
        (2.0, 10.0, "lower", 5.0),
        (10.0, 2.0, "higher", 5.0),
        (0.0, 3.0, "lower", math.inf),
        (-4.0, 3.0, "lower", math.inf),
        (0.0, 0.0, "lower", 1.0),
        (3.0, 0.0, "higher", math.inf),
    ],
)
def test_a_ratio_above_one_means_better(
    mine: float, theirs: float, better: Any, expected: float
) -> None:
    assert ratio(mine, theirs, better) == expected


def test_against_nothing_there_is_no_ratio() -> None:
    assert math.isnan(ratio(3.0, 0.0, "lower"))


def test_a_comparison_has_the_ratio_of_medians_and_the_span_of_rounds() -> None:
    compared = row(shoal=[1.0, 2.0, 4.0], distributed=[10.0, 40.0, 20.0])
    assert compared.compare("shoal", "distributed") == Comparison(10.0, 5.0, 20.0, 3)


def test_rounds_in_which_one_side_failed_do_not_enter_the_span() -> None:
    compared = Row(
        "map_10k", "us", "us", "lower", {"shoal": {0: 1.0, 2: 2.0}, "pool": {1: 8.0, 2: 6.0}}
    )
    found = compared.compare("shoal", "pool")
    assert found is not None
    assert (found.lowest, found.highest, found.nrounds) == (3.0, 3.0, 1)


def test_a_side_without_readings_is_not_compared() -> None:
    assert row(shoal=[1.0]).compare("shoal", "pool") is None


def test_rows_keep_figures_of_a_workload_together() -> None:
    readings = [
        Reading("shoal", 0, "a", Figure("x", 1.0, "us")),
        Reading("shoal", 0, "b", Figure("x", 2.0, "us")),
        Reading("pool", 0, "a", Figure("y", 3.0, "us")),
        Reading("shoal", 1, "a", Figure("x", 5.0, "us")),
    ]
    found = rows(readings)
    assert [item.reference for item in found] == ["a:x", "a:y", "b:x"]
    assert found[0].median("shoal") == 3.0


def test_percentiles_lie_between_neighbours() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([4.0, 1.0, 3.0, 2.0], 100) == 4.0
    assert percentile([7.0], 99) == 7.0


def test_the_geometric_mean_treats_twice_and_half_alike() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert math.isinf(geometric_mean([2.0, math.inf]))
    assert math.isnan(geometric_mean([2.0, math.nan]))
    assert math.isnan(geometric_mean([]))


# Processes


def test_the_sum_over_roles_counts_no_process_twice() -> None:
    apart = {"client": 1.0, "scheduler": 2.0, "client+scheduler": 3.0, "workers": 4.0}
    assert Span(1.0, apart).cpu_seconds == 7.0
    assert Span(1.0, {"client+scheduler": 3.0, "workers": 4.0}).cpu_seconds == 7.0


def test_a_scheduler_in_the_clients_process_is_named_as_both() -> None:
    here = os.getpid()
    assert Meter(here, {}).role(here) == "client+scheduler"
    assert Meter(None, {"a": 1}).role(here) == "client"
    assert Meter(None, {"a": 1}).role(1) == "workers"
    assert Meter(2, {"a": 1}).role(2) == "scheduler"
    assert Meter(2, {"a": 1}).role(3) == "other"


def test_a_span_sees_the_processor_time_of_its_block() -> None:
    with Meter(None, {}).span() as span:
        sum(range(300_000))
    figures = {figure.name: figure.value for figure in span.per_task(1)}
    assert 0 < figures["cpu_us_per_task.client"] <= figures["cpu_us_per_task"]
    assert figures["us_per_task"] > 0


# Budgets


def test_the_budgets_of_the_repository_only_ever_tightened() -> None:
    for item in read_budgets():
        assert first_loosening(item) is None, item.name


def test_the_budgets_are_about_workloads_and_sides_that_exist() -> None:
    workloads = {workload.name: workload for workload in WORKLOADS}
    for item in read_budgets():
        assert item.why, item.name
        for name in item.workloads:
            if item.is_ratio:
                assert workloads[name].runs_on(item.against), item.name
            assert workloads[name].runs_on("shoal"), item.name


@pytest.mark.parametrize(
    ("against", "limit", "history", "loosened"),
    [
        ("distributed", 25.0, (10.0, 20.0), None),
        ("distributed", 15.0, (10.0, 20.0), (20.0, 15.0)),
        ("distributed", 20.0, (20.0,), (20.0, 20.0)),
        ("distributed", 30.0, (20.0, 10.0), (20.0, 10.0)),
        ("absolute", 50.0, (90.0,), None),
        ("absolute", 95.0, (90.0,), (90.0, 95.0)),
    ],
)
def test_a_budget_may_only_tighten(
    against: str, limit: float, history: tuple[float, ...], loosened: tuple[float, float] | None
) -> None:
    assert first_loosening(budget(against=against, limit=limit, history=history)) == loosened


def test_a_file_that_loosens_a_budget_is_refused() -> None:
    table = {"figures": ["a:x"], "against": "pool", "at_least": 2.0, "history": [3.0]}
    with pytest.raises(BudgetsNotValid, match="from 3 to 2, which is looser"):
        parse_budgets({"wall": table})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"against": "ray"}, "against is 'ray'"),
        ({"at_least": None, "at_most": 2.0}, "needs 'at_least'"),
        ({"against": "absolute"}, "needs 'at_most'"),
        ({"figures": []}, "list of 'workload:figure'"),
        ({"figures": ["map"]}, "list of 'workload:figure'"),
        ({"limit": 3.0}, "unknown field 'limit'"),
        (
            {"against": "absolute", "at_least": None, "at_most": 1, "figures": ["a:x", "b:x"]},
            "about one figure",
        ),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(changes: dict[str, Any], reason: str) -> None:
    table = {"figures": ["a:x"], "against": "pool", "at_least": 2.0} | changes
    with pytest.raises(BudgetsNotValid, match=reason):
        parse_budgets({"wall": {k: value for k, value in table.items() if value is not None}})


def test_a_budget_is_kept_at_its_limit_and_not_below() -> None:
    (kept,) = judge([budget()], [row(shoal=[1.0], distributed=[20.0])])
    (missed,) = judge([budget()], [row(shoal=[1.0], distributed=[19.9])])
    assert kept.passed
    assert not missed.passed


def test_an_absolute_budget_is_a_ceiling_on_shoal() -> None:
    ceiling = budget(against="absolute", limit=90.0)
    assert Verdict(ceiling, 90.0).passed
    assert not Verdict(ceiling, 90.1).passed
    (found,) = judge([ceiling], [row(shoal=[80.0, 82.0, 500.0])])
    assert found.measured == 82.0


def test_a_ceiling_that_is_of_one_machine_is_judged_as_if_there() -> None:
    ceiling = budget(against="absolute", limit=40.0, is_of_one_machine=True)
    (slow,) = judge([ceiling], [row(shoal=[70.0]), work_of_distributed(3200.0)])
    (fast,) = judge([ceiling], [row(shoal=[30.0]), work_of_distributed(800.0)])
    (alone,) = judge([ceiling], [row(shoal=[30.0])])
    assert [slow.measured, fast.measured, alone.measured] == [35.0, 60.0, None]
    assert concerning([ceiling], ["map_10k"], ["shoal"]) == []
    assert concerning([ceiling], ["map_10k"], ["shoal", "distributed"]) == [ceiling]


def test_a_ratio_to_timers_is_judged_as_on_the_machine_that_it_is_of() -> None:
    latency = budget(figures=("latency:p50_us",), limit=20.0, is_of_one_machine=True)
    told = Row("latency", "p50_us", "us", "lower", {"shoal": {0: 1.0}, "distributed": {0: 12.0}})
    (found,) = judge([latency], [told, work_of_distributed(3200.0)])
    assert found.measured == pytest.approx(24.0)
    (as_it_is,) = judge([latency], [told])  # the machine was not looked at
    assert as_it_is.measured == pytest.approx(12.0)


def test_the_yardstick_takes_time_and_says_how_slow_this_is() -> None:
    assert yardstick.measure_us() > 0.0
    assert yardstick.slowness([1.0, 2 * yardstick.REFERENCE_US, 99.0]) == 2.0


def test_a_budget_on_several_figures_is_on_their_geometric_mean() -> None:
    both = budget(figures=("map_10k:us_per_task", "b:x"), limit=10.0)
    other = Row("b", "x", "us", "lower", {"shoal": {0: 1.0}, "distributed": {0: 5.0}})
    (found,) = judge([both], [row(shoal=[1.0], distributed=[20.0]), other])
    assert found.measured == pytest.approx(10.0)


def test_what_was_not_measured_is_not_kept() -> None:
    (no_row,) = judge([budget()], [])
    (one_side,) = judge([budget()], [row(distributed=[3.0])])
    (undefined,) = judge([budget()], [row(shoal=[3.0], distributed=[0.0])])
    assert [no_row.passed, one_side.passed, undefined.passed] == [False, False, False]


def test_only_budgets_that_the_run_can_tell_about_are_judged() -> None:
    pool = budget(name="pool", against="pool")
    assert concerning([budget(), pool], ["map_10k"], ["shoal", "pool"]) == [pool]
    assert concerning([budget(), pool], ["latency"], SIDES) == []
    assert concerning([budget(), pool], ["map_10k"], ["distributed", "pool"]) == []


# Report


def test_the_table_names_a_workload_once_and_aligns_its_numbers() -> None:
    both = [
        row(shoal=[50.0, 50.0], distributed=[2000.0, 2500.0]),
        Row("map_10k", "wakeups", "n", "lower", {"shoal": {0: 0.25}}),
    ]
    assert report.table(both, ["distributed", "shoal"]) == [
        "workload  figure       unit  distributed  shoal  shoal vs distributed",
        "--------  -----------  ----  -----------  -----  --------------------",
        "map_10k   us_per_task  us          2,250     50          45x (40..50)",
        "          wakeups      n               -   0.25                     -",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "inf"),
        (1234.5, "1,234"),
        (12.345, "12.3"),
        (0.01234, "0.0123"),
        (-250.0, "-250"),
    ],
)
def test_quantities_have_three_significant_digits(value: float | None, text: str) -> None:
    assert report.quantity(value) == text


def test_verdicts_say_what_was_measured_and_what_was_asked() -> None:
    ceiling = budget(name="cpu", against="absolute", limit=90.0, unit="us")
    lines = report.verdicts([Verdict(budget(), 25.0), Verdict(ceiling, 95.0)])
    assert lines[2].split()[:5] == ["PASS", "wall", "25x", ">=", "20x"]
    assert lines[3].split()[:7] == ["FAIL", "cpu", "95", "us", "<=", "90", "us"]
    assert lines[-1] == "1 of 2 budgets kept"


def test_a_check_that_judges_nothing_says_so() -> None:
    assert report.verdicts([]) == ["No budget is about the workloads and sides that were run."]


def test_a_failure_is_a_line_of_the_report() -> None:
    (line,) = report.failures([Failure("shoal", 1, "tree", "TimeoutError")])
    assert line == "FAILED  tree on shoal, round 2: TimeoutError"


# Records


def test_a_record_read_back_is_the_record_that_was_taken() -> None:
    reading = Reading("shoal", 0, "tree", Figure("us_per_task", 1.5, "us"))
    failure = Failure("distributed", 0, "bag", "no end within 3 s")
    lines = [
        {"kind": "options", "quick": True, "rounds": 1},
        {"kind": "side", "side": "shoal"},
        {"kind": "side", "side": "distributed"},
        reading.to_json(),
        failure.to_json(),
    ]
    record = read_record(json.dumps(line) for line in lines)
    assert record.readings == [reading]
    assert record.failures == [failure]
    assert record.sides == ["distributed", "shoal"]
    assert record.workloads == ["tree", "bag"]
    assert record.quick


def test_a_budget_whose_workload_failed_is_judged_and_not_kept() -> None:
    record = Record([{"kind": "side", "side": side} for side in SIDES])
    record.add(Failure("shoal", 0, "chain", "it hung").to_json())
    assert [(item.budget.name, item.passed) for item in record.verdicts()] == [
        ("chain_wall", False)
    ]


# Workloads


@pytest.mark.parametrize(
    ("plan", "ntasks", "value"),
    [
        (graphs.chain(5), 5, 5),
        (graphs.merge(10), 11, 45),
        (graphs.tree(4), 31, 120),
        (graphs.shuffle(3), 16, sum(31 * n + part for n in range(3) for part in range(3))),
        (graphs.stencil(2, 0), 5, 0 + 1 + 7 + 8),
        (
            graphs.bag(2),
            9,
            sum(n * n for n in (0, 2, 4, 6, 8)) + sum(n * n for n in range(2, 11, 2)),
        ),
    ],
    ids=["chain", "merge", "tree", "shuffle", "stencil", "bag"],
)
def test_a_graph_has_the_tasks_and_the_value_that_arithmetic_gives(
    plan: Plan, ntasks: int, value: int
) -> None:
    assert plan.ntasks == ntasks
    assert plan.plain_value() == value


def test_a_growing_graph_counts_its_tasks() -> None:
    plan = graphs.growth(4_001)
    count, numbers, _first = plan.plain_value()
    assert (count, numbers) == (4_001, 4_001 * 4_000 // 2)
    assert plan.ntasks == 4_001 + 3 + 1


def test_workloads_are_chosen_by_pattern() -> None:
    assert [item.name for item in select(("transfer_*", "idle"))] == [
        "transfer_1kB",
        "transfer_1MB",
        "transfer_100MB",
        "idle",
    ]
    assert select(()) == WORKLOADS
    with pytest.raises(UnknownWorkload, match="no workload is called 'mapp'"):
        select(("mapp",))


class PlainClient:
    """Runs everything at once, in this process; adds `error` to each result."""

    error = 0

    def __init__(self, **_options: Any) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def run(self, function: Callable[[], Any]) -> dict[str, Any]:
        return {"a": function(), "b": function()}

    def run_on_scheduler(self, function: Callable[[], Any]) -> Any:
        return function()

    def map(self, function: Callable[[int], int], numbers: Iterable[int]) -> list[int]:
        # The warm-up has negative numbers: it is right, so that the measured part is what is told.
        return [function(n) + (self.error if n >= 0 else 0) for n in numbers]

    def gather(self, futures: list[int]) -> list[int]:
        return futures

    def get(self, graph: graphs.Graph, key: str) -> Any:
        return Plan(graph, key).plain_value() + (0 if key.startswith("warm") else self.error)


class LyingClient(PlainClient):
    """Off by one."""

    error = 1


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], Bench]:
    def make(client: type) -> Bench:
        module = types.ModuleType("a_scheduler")
        module.Client = client  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "a_scheduler", module)
        return Bench("a_scheduler", 6)

    return make


@pytest.mark.parametrize("run", [throughput.map_gather, graph_workload(graphs.tree)])
def test_right_results_give_figures(bench: Any, run: Callable[[Bench], Any]) -> None:
    names = [figure.name for figure in run(bench(PlainClient))]
    assert {"us_per_task", "cpu_us_per_task", "wakeups_per_task"} <= set(names)


@pytest.mark.parametrize("run", [throughput.map_gather, graph_workload(graphs.tree)])
def test_a_wrong_result_is_a_failure(bench: Any, run: Callable[[Bench], Any]) -> None:
    with pytest.raises(WrongResult, match="plain Python gives"):
        list(run(bench(LyingClient)))


def test_equal_values_pass_the_check() -> None:
    check("sum", 3, 3)
    with pytest.raises(WrongResult, match="wrong result of sum: got 4, plain Python gives 3"):
        check("sum", 4, 3)


# Rounds


def test_what_a_library_prints_is_not_taken_for_a_figure() -> None:
    figure = Figure("x", 1.0, "us")
    line = json.dumps({"name": "x", "value": 1.0, "unit": "us", "better": "lower"})
    assert parse(["hello", "3", line, "{}"]) == ([figure], None)
    assert parse([line, '{"failure": "KeyError: 3"}']) == ([figure], "KeyError: 3")


def test_a_failure_is_a_run_like_any_other_and_the_rest_goes_on() -> None:
    (workload,) = select(("map_10k",))
    sides = [Side("shoal", sys.executable, "json"), Side("pool", sys.executable, "pool")]
    small = replace(workload, full=20)
    runs = measure(sides, [small], nrounds=1)
    assert [run.side for run in runs] == ["shoal", "pool"]
    assert runs[0].failure is not None
    assert "has no attribute 'Client'" in runs[0].failure.reason
    assert runs[0].readings == ()
    assert runs[1].failure is None
    assert {reading.reference for reading in runs[1].readings} >= {"map_10k:us_per_task"}


def test_a_hang_is_ended_and_reported() -> None:
    (workload,) = select(("latency",))
    run = run_once(
        Side("pool", sys.executable, "pool"), replace(workload, timeout_seconds=0.01), 0, True
    )
    assert run.failure is not None
    assert run.failure.reason == "no end within 0.01 s; killed"


def test_a_side_that_is_not_installed_stops_the_comparison_before_it_starts() -> None:
    with pytest.raises(SideNotUsable, match="No module named 'no_such_scheduler'"):
        take_record([Side("shoal", sys.executable, "no_such_scheduler")], WORKLOADS)
