"""The table of faults: what each is, what is promised, which tests prove it, what came of them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import pytest

TABLE: Final = Path(__file__).parent / "table.toml"

HELD: Final = "held"
LATER: Final = "later"
NOT_HERE: Final = "not here"
BROKEN: Final = "NOT HELD"

LATER_BEGINS: Final = "later: "
"""Reasons of tests that are skipped as long as their fault is not held."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row."""

    id: str
    what: str
    upstream: str
    """Of the fact sheet: `ok`, `part`, `BAD` or `?`, not measured."""
    there: str
    """What the released `distributed` makes of it."""
    here: str
    """What is promised."""
    tests: tuple[str, ...]
    """`file::function`, below the folder of tests."""
    later: str = ""
    """Why it is not held yet; empty: it is."""
    not_here: str = ""
    """Why it can't be tested here; empty: it can."""
    storms: int = 0
    """How many storms of a minute belong to the proof."""


def read_table(table: Path = TABLE) -> list[Fault]:
    """All rows, by number.

    Raises:
        TypeError: a row lacks something, or has what no row has.
    """
    rows = tomllib.loads(table.read_text(encoding="utf-8"))
    faults = [Fault(id=name, **{**row, "tests": tuple(row["tests"])}) for name, row in rows.items()]
    return sorted(faults, key=lambda fault: fault.id)


def of_fault(name: str) -> pytest.MarkDecorator:
    """Of a test that is skipped as long as the table says that this fault is for later."""
    why = next(fault.later for fault in read_table() if fault.id == name)
    return pytest.mark.skipif(bool(why), reason=f"{LATER_BEGINS}{name}, {why}")


class Ending(NamedTuple):
    """How all forms of one test ended."""

    npassed: int = 0
    nfailed: int = 0
    skipped: tuple[str, ...] = ()
    """A reason each."""


def read_endings(report: str) -> dict[str, Ending]:
    """`file::function` of each test of pytest's report → how it ended."""
    endings: dict[str, Ending] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        file = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        test = f"{file}.py::{case.attrib['name'].partition('[')[0]}"
        children = {child.tag: child for child in case}
        npassed, nfailed, skipped = endings.get(test, Ending())
        if "failure" in children or "error" in children:
            nfailed += 1
        elif "skipped" in children:
            skipped += (children["skipped"].get("message", "no reason"),)
        else:
            npassed += 1
        endings[test] = Ending(npassed, nfailed, skipped)
    return endings


class Outcome(NamedTuple):
    """What came of one fault."""

    word: str
    """`HELD`, `LATER`, `NOT_HERE` or `BROKEN`."""
    why: str = ""


def outcome_of(fault: Fault, endings: Mapping[str, Ending], storms: Iterable[str] = ()) -> Outcome:
    """By its tests.  `storms`: what each of the storms complained of; empty texts are good ones."""
    failed = [test for test in fault.tests if not endings.get(test) or endings[test].nfailed]
    ends_of_storms = list(storms)
    bad = [end for end in ends_of_storms if end]
    if failed:
        return Outcome(BROKEN, f"did not pass: {', '.join(failed)}")
    if bad or len(ends_of_storms) < fault.storms:
        ngood = len(ends_of_storms) - len(bad)
        return Outcome(BROKEN, f"{ngood} of {fault.storms} storms: {'; '.join(bad)}")
    if fault.later:
        return Outcome(LATER, fault.later)
    skipped = [why for test in fault.tests for why in endings[test].skipped]
    if fault.not_here or skipped:
        return Outcome(NOT_HERE, fault.not_here or "; ".join(dict.fromkeys(skipped)))
    return Outcome(HELD)


def lines_of(faults: Iterable[Fault], outcomes: Mapping[str, Outcome]) -> list[str]:
    """The table for people: fault, what `distributed` makes of it, what shoal does."""
    rows = list(faults)
    width = max(len(fault.what) for fault in rows)
    lines = [f"{'':4} {'fault':{width}}  distributed  shoal"]
    for fault in rows:
        word, why = outcomes[fault.id]
        said = f"{word}: {why}" if why else word
        lines.append(f"{fault.id:4} {fault.what:{width}}  {fault.upstream:11}  {said}")
    return lines


def summary(faults: Iterable[Fault], outcomes: Mapping[str, Outcome]) -> str:
    """One line: how many are held, here and there."""
    rows = list(faults)
    here = Counter(outcomes[fault.id].word for fault in rows)
    there = Counter(fault.upstream for fault in rows)
    words = ", ".join(f"{here[word]} {word}" for word in (HELD, LATER, NOT_HERE, BROKEN))
    return (
        f"{len(rows)} faults: {words}; distributed: {there['ok']} ok, {there['part']} partly, "
        f"{there['BAD']} not, {there['?']} not measured"
    )
