"""The gate of dask's tests of exchanges: what it makes of two runs."""

from tools.accept.gates_dask import Outcomes
from tools.accept.gates_exchange_suites import verdict


def test_all_that_pass_there_must_pass_here() -> None:
    theirs = Outcomes(dict.fromkeys(["test_a", "test_p2p[1]"], 3.0), by_luck=["test_a"])
    assert verdict("suite", Outcomes({"test_p2p[1]": 1.0}), theirs).passed
    figure = verdict("suite", Outcomes({"test_a": 1.0}), theirs)
    assert not figure.passed
    assert "not: test_p2p" in figure.value


def test_those_about_shuffles_from_peer_to_peer_are_counted() -> None:
    theirs = Outcomes(dict.fromkeys(["test_a", "test_merge_p2p_shuffle[1]"], 3.0))
    figure = verdict("suite", theirs, theirs)
    assert "2 that pass with distributed, 1 with p2p" in figure.name
    assert figure.value == "2 pass, in 6.0 s to 6.0 s"


def test_a_suite_of_which_nothing_passes_proves_nothing() -> None:
    assert not verdict("suite", Outcomes(), Outcomes()).passed
