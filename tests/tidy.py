"""The rules of the house that formatter, linter, type checker and import contracts can't see.

Run by `make check` as `python -m tests.tidy`; each rule is a function in `tests/house/`, and each
finding is one line.  Exit status 1 if there is any.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house import imports, messages, sets, words
from tests.house.source import Finding, Source

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src", "tests", "tools", "benchmarks", "examples", "drop-in")
GENERATORS = ("tools/make_blocking.py", "tools/make_map.py")


def read_sources(root: Path) -> dict[str, Source]:
    """Every Python file of the project, by its path from `root`."""
    paths = [path for place in PLACES for path in sorted((root / place).rglob("*.py"))]
    wanted = [path for path in paths if not _is_foreign(path.relative_to(root))]
    sources = [Source.read(root, path) for path in wanted]
    return {source.path: source for source in sources}


def _is_foreign(path: Path) -> bool:
    """Built, cached or installed: not ours to tidy."""
    return any(part == "build" or part.startswith((".", "__pycache__")) for part in path.parts)


def tidy(sources: dict[str, Source], mentions: str = "") -> Iterator[Finding]:
    """Every rule that needs nothing but the files' texts; `mentions` as for `imports.unused`."""
    ours = {path: source for path, source in sources.items() if path.startswith("src/")}
    for source in sources.values():
        yield from words.check(source)
    yield from words.loose_ratchets(sources)
    yield from words.state_writers(ours)
    yield from sets.check(ours.values())
    yield from messages.check(ours)
    yield from imports.cycles(ours)
    yield from imports.folders_without_init(ours)
    yield from imports.unused(ours, mentions)


def stale_generated(root: Path) -> Iterator[Finding]:
    """What is generated and checked in must be what the generator makes today."""
    for generator in GENERATORS:
        if not (root / generator).exists():
            continue
        command = [sys.executable, generator, "--check"]
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if answer.returncode:
            words_said = (answer.stdout + answer.stderr).strip()
            yield Finding(generator, 1, f"what it generated is stale; run it. {words_said}")


def main() -> int:
    """Print what is untidy; the exit status."""
    sources = read_sources(ROOT)
    mentions = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    findings = [*tidy(sources, mentions), *stale_generated(ROOT)]
    for finding in sorted(set(findings)):
        print(finding)
    print(f"tidy: {len(sources)} files, {len(set(findings))} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
