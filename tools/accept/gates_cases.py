"""What people ran into elsewhere, and that it is right here: a table of claims and their tests."""

import ast
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from tools.accept.figure import GATES, Figure
from tools.accept.gates_cluster import ROOT, run_pytest

TABLE: Final = ROOT / "tests" / "cases.toml"


class Case(NamedTuple):
    """One claim."""

    area: str
    claim: str
    tests: list[str]
    """`file::function` or `file`, below the folder of tests."""


def read_cases(table: Path = TABLE) -> list[Case]:
    """The claims of all areas."""
    areas = tomllib.loads(table.read_text(encoding="utf-8"))
    return [
        Case(area, claim, tests)
        for area, claims in areas.items()
        for claim, tests in claims.items()
    ]


def missing(cases: list[Case], folder: Path = TABLE.parent) -> list[str]:
    """Tests that the table names and that are not there."""
    named = dict.fromkeys(test for case in cases for test in case.tests)
    return [test for test in named if not _is_there(folder, test)]


def _is_there(folder: Path, test: str) -> bool:
    file, _, function = test.partition("::")
    path = folder / file
    if not path.is_file():
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [
        node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return function in names if function else any(name.startswith("test_") for name in names)


def read_endings(report: str) -> dict[str, bool]:
    """`file::function` of each test of pytest's report → whether all its forms passed."""
    endings: dict[str, bool] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        file = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        test = f"{file}.py::{case.attrib['name'].partition('[')[0]}"
        kinds = {child.tag for child in case}
        passed = not kinds & {"failure", "error", "skipped"}
        endings[test] = passed and endings.get(test, True)
    return endings


def failing(case: Case, endings: dict[str, bool]) -> list[str]:
    """The tests of a claim that did not pass, or did not run."""

    def passes(test: str) -> bool:
        of_it = [ok for name, ok in endings.items() if name == test or name.startswith(f"{test}::")]
        return bool(of_it) and all(of_it)

    return [test for test in case.tests if not passes(test)]


@GATES.register("cases")
def cases_hold() -> Iterator[Figure]:
    """Every claim of tests/cases.toml; about a minute."""
    cases = read_cases()
    tests = sorted({f"tests/{test}" for case in cases for test in case.tests})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run_pytest(*tests, "--junitxml", str(report))
        endings = read_endings(report.read_text(encoding="utf-8"))
    for area in dict.fromkeys(case.area for case in cases):
        claims = [case for case in cases if case.area == area]
        broken = [(case.claim, names) for case in claims if (names := failing(case, endings))]
        said = "; ".join(f"{claim} ({', '.join(names)})" for claim, names in broken)
        yield Figure(
            f"cases of {area}, by {sum(len(case.tests) for case in claims)} tests",
            f"{len(claims) - len(broken)} of {len(claims)} hold{f'; not: {said}' if said else ''}",
            "all hold",
            passed=not broken,
        )
