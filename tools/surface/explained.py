"""Differences that are known: those that stay, with reasons, and names that arrive later."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tools.surface.compare import Difference

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
LATER = Path(__file__).with_name("later.toml")
LATER_MAX = 16
"""How many names may be missing until their capabilities come; only ever smaller."""


@dataclass
class Explained:
    """What a comparison comes to."""

    stays: list[Difference] = field(default_factory=list)
    later: list[Difference] = field(default_factory=list)
    neither: list[Difference] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Rows, and names of the list, that explain nothing any more."""


def explain(
    differences: Iterable[Difference], patterns: Iterable[str], later: Iterable[str]
) -> Explained:
    """Sort differences; one that arrives later is not said to stay as well."""
    found = Explained()
    unused_patterns, unused_names = dict.fromkeys(patterns), dict.fromkeys(later)
    all_patterns, all_names = list(unused_patterns), list(unused_names)
    for difference in differences:
        covering = [name for name in all_names if covers(name, difference.name)]
        matching = [one for one in all_patterns if fnmatchcase(difference.name, one)]
        for name in covering:
            unused_names.pop(name, None)
        for pattern in matching:
            unused_patterns.pop(pattern, None)
        kept = found.later if covering else found.stays if matching else found.neither
        kept.append(difference)
    found.stale = [*unused_patterns, *unused_names]
    return found


def covers(name: str, difference: str) -> bool:
    """Whether a name stands for a difference: itself, a parameter of it or something in it."""
    return difference == name or difference.startswith((f"{name}.", f"{name}("))


def read_patterns(path: Path = PAGE) -> list[str]:
    """The names in the first cells of the page's tables; `*` stands for anything."""
    rows = re.findall(r"^\| (`[^|]*`) \|", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def read_later(path: Path = LATER) -> list[str]:
    """The names that arrive with later capabilities."""
    sections = tomllib.loads(path.read_text(encoding="utf-8"))
    return [name for section in sections.values() for name in section["names"]]
