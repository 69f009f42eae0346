"""What two runs of upstream's tests say about each other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.upstream.public import public_tests
from tools.upstream.running import Ended

HERE = Path(__file__).parent
FILES = HERE / "files.toml"
REASONS = HERE / "reasons.toml"

GOOD = ("passed", "lucky")
Run = Mapping[str, Iterable[Ended]]
"""File → how its tests ended."""


@dataclass
class Verdict:
    """Of the tests that pass with `distributed`: those that pass here, and those that do not."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Test → what went wrong."""
    more: list[str] = field(default_factory=list)
    """Those that pass here alone."""
    our_seconds: float = 0.0
    their_seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """The part that passes."""
        return len(self.passed) / max(1, len(self.passed) + len(self.failed))

    def functions(self) -> tuple[int, int]:
        """Test functions of which every case passes, of so many; some have a hundred cases."""
        broken = {_function(name) for name in self.failed}
        return len({_function(name) for name in self.passed} - broken), len(
            {_function(name) for name in (*self.passed, *self.failed)}
        )

    def without(self, reasons: Mapping[str, str]) -> Verdict:
        """All but the tests that one of these reasons, of a test or a whole file, explains."""
        left = {name: why for name, why in self.failed.items() if not reason_of(name, reasons)}
        return Verdict(self.passed, left, self.more, self.our_seconds, self.their_seconds)


def compare(ours: Run, theirs: Run, public: Mapping[str, set[str]] | None = None) -> Verdict:
    """Test by test.

    Args:
        public: file → the tests to look at; None: all.
    """
    verdict = Verdict()
    for file, ended in theirs.items():
        mine = {each.name: each for each in ours.get(file, ())}
        lost = next((one.reason for one in mine.values() if not one.name or one.name == file), "")
        good = {each.name: each for each in ended if each.outcome in GOOD}
        for name, each in good.items():
            if public is not None and plain(name) not in public.get(file, ()):
                continue
            here = mine.get(name)
            if here is not None and here.outcome in GOOD:
                verdict.passed.append(f"{file}::{name}")
                verdict.our_seconds += here.seconds
                verdict.their_seconds += each.seconds
            else:
                why = here.reason if here is not None else lost or "it was not run"
                verdict.failed[f"{file}::{name}"] = why
        verdict.more += [
            f"{file}::{name}"
            for name, here in mine.items()
            if here.outcome == "passed" and name not in good
        ]
    return verdict


def _function(name: str) -> str:
    """File and name of the test function of a case."""
    return name.partition("[")[0]


def plain(name: str) -> str:
    """The name of a test without its parameters, and without its class."""
    return name.partition("[")[0].rpartition("::")[2]


def unexplained(failed: Iterable[str], reasons: Mapping[str, str]) -> list[str]:
    """Tests that fail and have no line of reason."""
    return [name for name in failed if not reason_of(name, reasons)]


def reason_of(name: str, reasons: Mapping[str, str]) -> str:
    """The line for a test, or for the whole of its file."""
    file, _, test = name.partition("::")
    return reasons.get(f"{file}::{plain(test)}") or reasons.get(file, "")


def stale(passed: Iterable[str], failed: Iterable[str], reasons: Mapping[str, str]) -> list[str]:
    """Reasons that nothing that failed needs any more."""
    needed = set()
    for name in failed:
        file, _, test = name.partition("::")
        needed |= {f"{file}::{plain(test)}", file}
    seen = {name.partition("::")[0] for name in (*passed, *failed)}
    return [name for name in reasons if name.partition("::")[0] in seen and name not in needed]


def read_reasons(path: Path = REASONS) -> dict[str, str]:
    """Test, or file → one line."""
    return {
        name: reason
        for section in tomllib.loads(path.read_text(encoding="utf-8")).values()
        for name, reason in section.items()
    }


def read_later(path: Path = REASONS) -> dict[str, str]:
    """Test, or file → one line, of those that wait for a later capability."""
    return dict(tomllib.loads(path.read_text(encoding="utf-8")).get("later", {}))


def read_endless(path: Path = REASONS) -> list[str]:
    """Tests that are not run here."""
    return list(tomllib.loads(path.read_text(encoding="utf-8")).get("endless", ()))


def read_files(group: str, path: Path = FILES) -> list[str]:
    """The files of one group."""
    return list(tomllib.loads(path.read_text(encoding="utf-8"))[group])


def public_by_file(
    tests: Path, files: Iterable[str], public_names: dict[str, list[str]]
) -> dict[str, set[str]]:
    """File → its tests that use public names only."""
    return {
        file: public_tests((tests / "distributed" / file).read_text("utf-8"), public_names)
        for file in files
    }
