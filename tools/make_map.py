"""The list of all files at the end of `docs/architecture.md`, made from what each says of itself.

    python tools/make_map.py            write it
    python tools/make_map.py --check    fail if it is stale

A file is told of by the first sentence of its docstring, a folder by that of its `__init__.py`.
"""

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
SOURCE: Final = ROOT / "src" / "shoal"

BEGINNING: Final = "## Every file\n"
"""Where the list begins; nothing comes behind it."""

ALIKE: Final = ("client/generated",)
"""Folders whose files need no line each: they are made from others, and say the same."""


def first_sentence(text: str) -> str:
    """Of a docstring, in one line."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.?!]) ", paragraph, maxsplit=1)[0]


def map_of(files: dict[str, str]) -> str:
    """The list.

    Args:
        files: what each says of itself, by path from `src/shoal`.
    """
    folders: dict[str, list[str]] = {}
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        lines = folders.setdefault(folder, [])
        sentence = first_sentence(files[path])
        if name == "__init__.py":
            lines.insert(0, f"\n### `{folder or 'shoal'}/`\n\n{sentence}\n")
        elif folder not in ALIKE:
            lines.append(f"- `{name.removesuffix('.py')}` {sentence}")
    return "\n".join(line for lines in folders.values() for line in lines) + "\n"


def _files() -> dict[str, str]:
    """All that are there."""
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        found[path.relative_to(SOURCE).as_posix()] = said or ""
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the list, or look whether it is what it should be; the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    page = before.partition(BEGINNING)[0]
    made = (
        f"{page}{BEGINNING}\n"
        "Made by `python tools/make_map.py` from the first sentence of each file.\n"
        f"{map_of(_files())}"
    )
    if "--check" not in arguments:
        PAGE.write_text(made, encoding="utf-8")
    elif made != before:
        print("The list of files in docs/architecture.md is not what the files say of themselves.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
