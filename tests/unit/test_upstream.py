"""Which tests of others are public, and what two runs of them say about each other."""

import json
from pathlib import Path

import pytest

from tools.upstream import verdict
from tools.upstream.public import public_tests
from tools.upstream.running import Ended, NoSuchTests, lay_out, read_record

NAMES = {"distributed": ["Client"], "distributed.utils_test": ["gen_cluster", "inc"]}
SOURCE = """
from distributed import Client
from distributed.client import _secret
from distributed.utils_test import gen_cluster, inc

def helper(s):
    return s.tasks

@pytest.fixture
def looked_at(s):
    return helper(s)

@gen_cluster(client=True)
async def test_public(c, s, a, b):
    assert await c.submit(inc, 1, workers=[a.address]) == 2

def test_secret():
    _secret()

async def test_state(c, s, a, b):
    assert s.tasks

def test_by_a_fixture(looked_at):
    pass

def test_underscored():
    Client()._close()

def test_imports_inside():
    from distributed.scheduler import Scheduler
    Scheduler()

class TestAll:
    def test_in_a_class(self):
        assert inc(1) == 2
"""


def test_a_test_is_public_unless_it_or_what_it_uses_looks_inside() -> None:
    assert public_tests(SOURCE, NAMES) == {"test_public", "test_in_a_class"}


def test_runs_are_compared_test_by_test() -> None:
    theirs = {
        "f.py": [
            Ended("a", "passed", 2.0, ""),
            Ended("b[1]", "passed", 1.0, ""),
            Ended("c", "skipped", 0.0, ""),
            Ended("d", "passed", 1.0, ""),
        ],
        "g.py": [Ended("x", "passed", 1.0, "")],
    }
    ours = {
        "f.py": [
            Ended("a", "passed", 0.5, ""),
            Ended("b[1]", "failed", 1.0, "it broke"),
            Ended("c", "passed", 1.0, ""),
        ],
        "g.py": [Ended("g.py", "failed", 0.0, "it died")],
    }
    found = verdict.compare(ours, theirs)
    assert found.passed == ["f.py::a"]
    assert found.failed == {
        "f.py::b[1]": "it broke", "f.py::d": "it was not run", "g.py::x": "it died",
    }  # fmt: skip
    assert found.more == ["f.py::c"]
    assert (found.our_seconds, found.their_seconds, found.ratio) == (0.5, 2.0, 0.25)
    assert verdict.compare(ours, theirs, {"f.py": {"a"}}).failed == {}


def test_functions_count_if_all_their_cases_pass_and_what_comes_later_can_be_left_out() -> None:
    found = verdict.Verdict(
        passed=["f.py::a[1]", "f.py::a[2]", "f.py::b[1]"],
        failed={"f.py::b[2]": "it broke", "g.py::c[1]": "not there", "g.py::c[2]": "not there"},
    )
    assert found.functions() == (1, 3)
    left = found.without({"g.py": "comes later"})
    assert (left.passed, list(left.failed)) == (found.passed, ["f.py::b[2]"])
    assert set(verdict.read_later()) < set(verdict.read_reasons())


def test_each_failure_needs_a_line_and_no_line_may_be_idle() -> None:
    reasons = {"f.py::b": "later", "g.py": "never", "f.py::a": "later"}
    assert verdict.unexplained(["f.py::b[1]", "g.py::x", "f.py::d"], reasons) == ["f.py::d"]
    assert verdict.stale(["f.py::a"], ["f.py::b[1]", "g.py::x"], reasons) == ["f.py::a"]
    assert verdict.stale([], ["h.py::y"], reasons) == []


def test_reasons_are_lines() -> None:
    for name, reason in verdict.read_reasons().items():
        assert reason, name
        assert "\n" not in reason, name


def test_what_a_run_wrote_is_read(tmp_path: Path) -> None:
    record = tmp_path / "record"
    assert list(read_record(record)) == []
    line = {"name": "a/b/test_x.py::T::t[1]", "outcome": "passed", "seconds": 1.0, "reason": ""}
    record.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert list(read_record(record)) == [Ended("test_x.py::T::t[1]", "passed", 1.0, "")]


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTests, match="holds no tests of distributed"):
        lay_out(tmp_path, "python", tmp_path / "there")
