"""Both sides run over the same files; what the released `distributed` did is kept, as it stays."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from tools.upstream.running import PACKAGE, Ended, lay_out, run_file
from tools.upstream.verdict import read_endless

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".benchmarks" / "upstream"

Told = Callable[[str, list[Ended]], None]


def run_ours(tests: Path, files: Iterable[str], told: Told | None = None) -> dict[str, list[Ended]]:
    """Run files against the drop-in of this checkout, in the interpreter that runs this."""
    path = (ROOT / "src", ROOT / "drop-in" / "src")
    return _run(sys.executable, tests, files, path=path, told=told, left_out=read_endless())


def run_theirs(
    python: str, tests: Path, files: Iterable[str], told: Told | None = None
) -> dict[str, list[Ended]]:
    """Run files against the `distributed` that `python` has, unless that was done before."""
    wanted = list(files)
    kept = KEPT / f"{_fingerprint(tests)}.json"
    found = _read(kept)
    missing = [file for file in wanted if file not in found]
    found |= _run(python, tests, missing, told=told)
    KEPT.mkdir(parents=True, exist_ok=True)
    ran = {
        file: ended
        for file, ended in found.items()
        if any(one.outcome == "passed" for one in ended)
    }
    kept.write_text(  # where nothing passed pytest itself is at fault, and may be mended
        json.dumps({file: [asdict(one) for one in ended] for file, ended in ran.items()}),
        encoding="utf-8",
    )
    return {file: found[file] for file in wanted}


def _run(
    python: str,
    tests: Path,
    files: Iterable[str],
    *,
    path: tuple[Path, ...] = (),
    told: Told | None = None,
    left_out: Iterable[str] = (),
) -> dict[str, list[Ended]]:
    found = {}
    options = [f"--deselect={PACKAGE}/{name}" for name in left_out]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "checkout"
        place.mkdir()
        lay_out(tests, python, place, path=path)
        for file in files:
            found[file] = run_file(python, place, file, *options, path=path)
            if told is not None:
                told(file, found[file])
    return found


def _read(kept: Path) -> dict[str, list[Ended]]:
    if not kept.exists():
        return {}
    read = json.loads(kept.read_text(encoding="utf-8"))
    return {file: [Ended(**one) for one in ended] for file, ended in read.items()}


def _fingerprint(tests: Path) -> str:
    """Of the tests' texts: others have other outcomes."""
    digest = hashlib.sha256()
    for path in sorted((tests / "distributed").rglob("test_*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
