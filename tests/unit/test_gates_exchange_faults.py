"""The gate of exchanges with faults: what it makes of a run."""

from typing import Any

from benchmarks.memory.outside import Run
from tools.accept.gates_exchange_faults import figure_of


def ended(fault: str, stopped: str = "", **counts: int) -> Run:
    answers: dict[str, Any] = {"counts": {fault: counts}, "seconds": {fault: [1.0, 7.5]}}
    answers["errors"] = ["ValueError: no"]
    return Run("shoal", answers, [], 10.0, stopped)


def test_every_round_must_be_right() -> None:
    assert figure_of("kill", "kills", 3, ended("kill", right=3)).passed
    for other in ("wrong", "named", "failed", "hung"):
        figure = figure_of("kill", "kills", 3, ended("kill", right=2, **{other: 1}))
        assert not figure.passed
        assert f"2 of 3 right, 1 {other}, 7.5 s at most" in figure.value
        assert "ValueError: no" in figure.value


def test_where_nothing_can_be_done_an_error_that_says_so_is_right() -> None:
    fault = "full everywhere"
    assert figure_of(fault, "all full", 3, ended(fault, right=1, named=2)).passed
    assert not figure_of(fault, "all full", 3, ended(fault, right=1, failed=2)).passed


def test_rounds_that_were_not_played_prove_nothing() -> None:
    assert not figure_of("kill", "kills", 3, ended("kill", right=2)).passed
    assert not figure_of("kill", "kills", 3, ended("kill", "not over", right=3)).passed
    assert not figure_of("kill", "kills", 3, Run("shoal", {}, [], 1.0, failure="died")).passed
