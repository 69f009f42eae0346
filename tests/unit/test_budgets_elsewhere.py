"""Budgets where the machine is another than that of their limits."""

import pytest

from benchmarks import yardstick
from benchmarks.budgets import concerning
from benchmarks.figures import Row
from tests.unit.test_benchmarks import budget, judge, row, work_of_distributed


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


def test_on_a_slow_machine_the_promise_is_kept_and_on_any_other_the_latest_limit() -> None:
    wall = budget(limit=80.0, history=(40.0,), promise=40.0)
    told = row(shoal=[1.0], distributed=[60.0])
    verdicts = [judge([wall], [told, work_of_distributed(us)])[0] for us in (1600.0, 3200.0)]
    assert [(found.limit, found.passed) for found in verdicts] == [(80.0, False), (40.0, True)]
    (worse,) = judge([wall], [row(shoal=[1.0], distributed=[39.0]), work_of_distributed(3200.0)])
    assert not worse.passed
    (unknown,) = judge([wall], [told])
    assert unknown.limit == 80.0
    (without,) = judge([budget(limit=80.0, history=(40.0,))], [told, work_of_distributed(3200.0)])
    assert not without.passed


def test_the_yardstick_takes_time_and_says_how_slow_this_is() -> None:
    assert yardstick.measure_us() > 0.0
    assert yardstick.slowness([1.0, 2 * yardstick.REFERENCE_US, 99.0]) == 2.0
