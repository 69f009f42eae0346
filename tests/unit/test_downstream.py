"""Suites of other projects: what keeps one from being run, and how they are read."""

import sys

import pytest

from tools.downstream.suites import Suite, read_suites


def test_every_suite_of_the_table_is_whole() -> None:
    suites = list(read_suites())
    assert [suite.name for suite in suites][:2] == ["dask", "xarray"]
    for suite in suites:
        assert suite.package
        assert all(file.endswith(".py") for file in suite.files), suite.name


def test_what_does_not_pass_here_has_a_line_of_reason() -> None:
    suite = Suite("some", "dask", ("test_x.py",), otherwise={"test_a": "it is so"})
    assert suite.reason_of("some::test_x.py::test_a[x]") == "it is so"
    assert suite.reason_of("some::test_x.py::test_b") == ""


def test_what_is_lacking_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Suite("some", "no_such_package", ("test_x.py",))
    assert "no_such_package" in lacking.why_not(sys.executable)
    monkeypatch.delenv("SOME_TESTS", raising=False)
    elsewhere = Suite("other", "dask", ("test_x.py",), folder="SOME_TESTS")
    assert (
        elsewhere.why_not(sys.executable)
        == "the variable SOME_TESTS names no folder with test_x.py"
    )
    monkeypatch.setenv("SOME_TESTS", "/there")
    assert elsewhere.paths(sys.executable) == ["/there/test_x.py"]
