"""The table of cases names tests that are there, and its gate tells what holds."""

import pytest

from tools.accept.gates_cases import Case, failing, missing, read_cases, read_endings

REPORT = """<testsuites><testsuite>
<testcase classname="tests.cluster.test_x" name="test_a[blocking]" time="1" />
<testcase classname="tests.cluster.test_x" name="test_a[other]" time="1"><failure /></testcase>
<testcase classname="tests.cluster.test_x" name="test_b" time="1" />
<testcase classname="tests.unit.test_y" name="test_c" time="1"><skipped type="x" /></testcase>
<testcase classname="tests.unit.test_y" name="test_d" time="1" />
<testcase classname="tests.unit.test_y" name="test_d" time="1"><error>at its end</error></testcase>
</testsuite></testsuites>"""


def test_every_test_that_the_table_names_is_there() -> None:
    assert missing(read_cases()) == []


def test_a_test_that_is_not_there_is_noticed() -> None:
    this = "unit/test_cases.py"
    named = [this, f"{this}::test_nowhere", "unit/test_no_file.py", f"{this}::read_cases"]
    assert missing([Case("all", "this", named)]) == named[1:]


def test_every_claim_has_tests_and_none_is_made_twice() -> None:
    cases = read_cases()
    assert all(case.tests for case in cases)
    assert len({case.claim for case in cases}) == len(cases)
    assert len({case.area for case in cases}) >= 8


def test_a_claim_holds_if_all_its_tests_passed_in_all_their_forms() -> None:
    endings = read_endings(REPORT)
    assert endings["cluster/test_x.py::test_b"]

    tests = [
        "cluster/test_x.py::test_b",
        "cluster/test_x.py::test_a",
        "unit/test_y.py::test_c",
        "unit/test_y.py::test_d",
        "unit/test_y.py",
        "cluster/test_x.py::test_never_ran",
    ]
    assert failing(Case("all", "this", tests), endings) == tests[1:]


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case.claim)
def test_a_claim_is_a_sentence_of_ours(case: Case) -> None:
    assert case.claim[0].isupper()
    assert not any(mark in case.claim for mark in "#/")
    assert not case.claim.endswith(".")
