"""The table of faults is whole, names tests that are there, and tells what came of them."""

from collections import Counter

import pytest

from tests.faults.table import (
    BROKEN,
    HELD,
    LATER,
    NOT_HERE,
    Ending,
    Fault,
    lines_of,
    outcome_of,
    read_endings,
    read_table,
    summary,
)
from tools.accept.gates_cases import Case, missing

REPORT = """<testsuites><testsuite>
<testcase classname="tests.faults.test_x" name="test_a[one]" time="1" />
<testcase classname="tests.faults.test_x" name="test_a[two]" time="1"><failure /></testcase>
<testcase classname="tests.faults.test_x" name="test_b" time="1" />
<testcase classname="tests.faults.test_x" name="test_c" time="1">
<skipped type="x" message="lacks the moon" /></testcase>
</testsuite></testsuites>"""

A, B, C = (f"faults/test_x.py::test_{letter}" for letter in "abc")


def fault(*tests: str, later: str = "", not_here: str = "", storms: int = 0) -> Fault:
    return Fault(
        id="F01",
        what="It rains",
        upstream="part",
        there="wet",
        here="dry",
        tests=tests,
        later=later,
        not_here=not_here,
        storms=storms,
    )


def test_there_are_61_faults_as_many_of_each_outcome_as_the_fact_sheet_counts() -> None:
    faults = read_table()
    assert [each.id for each in faults] == [f"F{number:02}" for number in range(1, 62)]
    counts = Counter(each.upstream for each in faults)
    assert counts == {"ok": 19, "part": 12, "BAD": 27, "?": 3}


def test_every_test_that_the_table_names_is_there() -> None:
    cases = [Case(each.id, each.what, list(each.tests)) for each in read_table()]
    assert missing(cases) == []


@pytest.mark.parametrize("each", read_table(), ids=lambda each: each.id)
def test_every_fault_has_tests_or_a_reason_and_words_of_ours(each: Fault) -> None:
    assert each.tests or each.later or each.not_here
    assert not (each.later and each.not_here)
    for words in (each.what, each.there, each.here):
        assert words
        assert "#" not in words
        assert not words.endswith(".")


def test_the_forms_of_a_test_are_counted_together() -> None:
    endings = read_endings(REPORT)
    assert endings == {A: Ending(1, 1), B: Ending(1), C: Ending(skipped=("lacks the moon",))}


def test_a_fault_is_held_if_all_its_tests_passed_in_all_their_forms() -> None:
    endings = read_endings(REPORT)
    assert outcome_of(fault(B), endings).word == HELD
    assert outcome_of(fault(A, B), endings) == (BROKEN, f"did not pass: {A}")
    assert outcome_of(fault(B, "faults/test_x.py::test_never_ran"), endings).word == BROKEN


def test_what_was_skipped_is_not_held_and_says_what_is_lacking() -> None:
    assert outcome_of(fault(B, C), read_endings(REPORT)) == (NOT_HERE, "lacks the moon")
    assert outcome_of(fault(B, not_here="one machine"), read_endings(REPORT)).word == NOT_HERE


def test_what_is_for_later_is_not_held_and_must_not_break_what_is() -> None:
    endings = read_endings(REPORT)
    assert outcome_of(fault(B, C, later="not built"), endings) == (LATER, "not built")
    assert outcome_of(fault(A, later="not built"), endings).word == BROKEN


def test_storms_belong_to_the_proof() -> None:
    endings = read_endings(REPORT)
    stormy = fault(B, storms=2)
    assert outcome_of(stormy, endings, ["", ""]).word == HELD
    assert outcome_of(stormy, endings, ["", "hung"]) == (BROKEN, "1 of 2 storms: hung")
    assert outcome_of(stormy, endings, [""]).word == BROKEN


def test_the_table_has_a_line_for_each_and_the_summary_counts() -> None:
    rainy = fault(B)
    outcomes = {"F01": outcome_of(rainy, read_endings(REPORT))}
    assert lines_of([rainy], outcomes)[1].split() == ["F01", "It", "rains", "part", "held"]
    assert summary([rainy], outcomes).startswith("1 faults: 1 held, 0 later, 0 not here")
