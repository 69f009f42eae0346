"""What names are compared, and which of them count as public."""

from __future__ import annotations

import tomllib
from pathlib import Path

from shoal.compat.homes import HOMES

ASKED = Path(__file__).with_name("asked.toml")
STAR = "*"


def names_by_module() -> dict[str, list[str]]:
    """Module → the names to look at there; `"*"` for its own list."""
    sections = tomllib.loads(ASKED.read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for section in sections.values():
        for module, names in section.items():
            found.setdefault(module, []).extend(names)
    return found


def public_names() -> dict[str, list[str]]:
    """The same with the star of `distributed` replaced by its public names."""
    return {
        module: [*names, *(HOMES if STAR in names else ())]
        for module, names in names_by_module().items()
    }
