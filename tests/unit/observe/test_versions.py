"""What is installed where, and a table of what differs."""

import copy
from typing import Any

import pytest

from shoal.observe.versions import error_message, get_versions


@pytest.fixture
def everywhere() -> dict[str, Any]:
    return {
        "scheduler": get_versions(),
        "workers": {"one": get_versions(), "two": get_versions()},
        "source": get_versions(),
    }


def test_a_process_says_what_it_runs_on_and_with() -> None:
    found = get_versions(packages=["pytest", "no-such-package"])
    assert {"python", "OS", "byteorder"} <= set(found["host"])
    packages = found["packages"]
    assert packages["pytest"] == pytest.__version__
    assert packages["no-such-package"] is None
    assert packages["distributed"] == packages["dask"]


def test_the_same_everywhere_is_no_message(everywhere: dict[str, Any]) -> None:
    assert error_message(**everywhere) == {"warning": "", "error": ""}
    assert error_message(get_versions(), {}, get_versions())["warning"] == ""


def test_a_difference_is_a_row_with_a_column_for_each_part(everywhere: dict[str, Any]) -> None:
    everywhere["workers"]["two"] = other = copy.deepcopy(get_versions())
    other["packages"]["numpy"] = "0"
    warning = error_message(**everywhere, source_name="Nanny")["warning"]
    lines = warning.splitlines()
    assert lines[0] == "Mismatched versions found"
    assert [cell.strip() for cell in lines[3].split("|")] == [
        "", "Package", "Nanny", "Scheduler", "Workers", "",
    ]  # fmt: skip
    (row,) = [line for line in lines if "numpy" in line]
    assert "'0'" in row.split("|")[4]


@pytest.mark.parametrize(
    ("said", "word"), [(None, "UNKNOWN"), ({}, "UNKNOWN"), ({"packages": {}}, "MISSING")]
)
def test_who_says_nothing_differs(everywhere: dict[str, Any], said: Any, word: str) -> None:
    everywhere["scheduler"] = said
    (row,) = [
        line for line in error_message(**everywhere)["warning"].splitlines() if "dask" in line
    ]
    assert row.split("|")[3].strip() == word


def test_a_scheduler_may_have_any_version_of_what_it_does_not_use(
    everywhere: dict[str, Any],
) -> None:
    everywhere["scheduler"]["packages"] |= {"numpy": "0", "more": "1"}
    assert error_message(**everywhere)["warning"] == ""
