"""The gate of dask's own tests: what it reads out of a report, and what it makes of two."""

from tools.accept.gates_dask import Outcomes, read_report, verdicts

WAITING = {"test_fusion_barrier_task": "a peer-to-peer rechunk"}

REPORT = """<testsuites><testsuite>
<testcase name="test_a" time="1.5" />
<testcase name="test_b[1]" time="0.5"><failure message="no">no</failure></testcase>
<testcase name="test_c" time="0.1"><skipped type="pytest.xfail" /></testcase>
<testcase name="test_d" time="0.2" />
<testcase name="test_d" time="0.2"><error message="failed on teardown">no</error></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read_by_how_tests_ended() -> None:
    outcomes = read_report(REPORT)
    assert outcomes.passed == {"test_a": 1.5}
    assert outcomes.failed == {"test_b[1]": 0.5, "test_d": 0.2}
    assert outcomes.skipped == {"test_c": 0.1}


def test_whatever_passes_there_must_pass_here_or_wait_for_a_named_capability() -> None:
    theirs = Outcomes(dict.fromkeys(["test_a", "test_b", "test_fusion_barrier_task"], 9.0))
    ours = Outcomes({"test_a": 1.0})
    passes, waits, time = verdicts(ours, theirs, WAITING)
    assert (passes.passed, waits.passed, time.passed) == (False, True, True)
    assert passes.value == "1 pass, 1 wait, 1 neither (test_b)"
    assert "a peer-to-peer rechunk" in waits.value
    assert time.value == "1.0 to 9.0 of distributed"


def test_a_test_that_need_not_wait_any_more_must_leave_the_list() -> None:
    names = ["test_a", "test_fusion_barrier_task"]
    both = Outcomes(dict.fromkeys(names, 9.0)), Outcomes(dict.fromkeys(names, 1.0))
    _, waits, _ = verdicts(both[1], both[0], WAITING)
    assert not waits.passed
    assert "not any more: test_fusion_barrier_task" in waits.target


def test_what_dask_expects_to_fail_counts_on_neither_side() -> None:
    theirs = Outcomes({"test_a": 3.0, "test_lucky": 3.0}, by_luck=["test_lucky"])
    passes, _, time = verdicts(Outcomes({"test_a": 2.0}), theirs)
    assert passes.passed
    assert not time.passed
    assert time.value == "2.0 to 3.0 of distributed"


def test_nothing_that_passes_is_no_success() -> None:
    passes, _, time = verdicts(Outcomes(), Outcomes())
    assert not passes.passed
    assert not time.passed
