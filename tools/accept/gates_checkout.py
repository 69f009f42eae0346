"""A stranger's first five minutes: clone, and the two commands of the README."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from tools.accept.figure import GATES, Figure

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("make demo", "make test")
SECONDS_MAX = {"make demo": 180, "make test": 600}
TAIL_LINES = 15


@GATES.register("clean checkout")
def clean_checkout() -> Iterator[Figure]:
    """Both commands succeed in a clone of what is committed, which makes its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "shoal"
        command = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)]
        subprocess.run(command, check=True, capture_output=True)
        for line in COMMANDS:
            yield _run(line, clone)
        left = _git(clone, "status", "--porcelain")
        yield Figure(
            "clean checkout: files left behind by the commands",
            left.replace("\n", ", ") or "none",
            "none",
            passed=not left,
        )


@GATES.register("imports cheaply", cheap=True)
def imports_cheaply() -> Figure:
    """`import shoal` loads none of its own heavy parts, nor Dask."""
    code = (
        "import sys; import shoal; "
        "print(*sorted({m.partition('.')[0] for m in sys.modules}"
        " & {'dask', 'msgspec', 'asyncio', 'numpy', 'psutil', 'aiohttp', 'pyarrow'}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    heavy = answer.stdout.strip()
    return Figure("import shoal loads", heavy or "nothing heavy", "nothing heavy", not heavy)


def _run(line: str, folder: Path) -> Figure:
    """One command as a person would give it: no environment active, no interpreter named."""
    hidden = ("VIRTUAL_ENV", "PYTHON", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    started_at = monotonic()
    limit = SECONDS_MAX[line]
    try:
        done = subprocess.run(
            line.split(),
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
        status, output = f"exit {done.returncode}", done.stdout
        passed = done.returncode == 0
    except subprocess.TimeoutExpired as expired:
        status, passed = "no end", False
        output = (expired.stdout or b"").decode(errors="replace")
    if not passed:
        print("\n".join(output.splitlines()[-TAIL_LINES:]), file=sys.stderr)
    seconds = monotonic() - started_at
    return Figure(
        f"clean checkout: {line}", f"{status} in {seconds:.0f} s", f"exit 0 in {limit} s", passed
    )


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
