"""Programs that run in an interpreter of their own: what they print, and how they end."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DROP_IN = ROOT / "drop-in" / "src"

STRICT = (sys.executable, "-W", "error")
"""This interpreter, in which a warning is an error."""


def path_with(*places: Path) -> str:
    """A `PYTHONPATH` on which `places` come first."""
    return os.pathsep.join([*map(str, places), *filter(None, [os.environ.get("PYTHONPATH")])])


def run_python(
    *arguments: str,
    path: tuple[Path, ...] = (),
    environ: Mapping[str, str] = os.environ,
    cwd: Path | str | None = None,
    seconds_max: float = 60.0,
) -> "subprocess.CompletedProcess[str]":
    """Run Python with warnings as errors and with modules in `path` first.

    Raises:
        subprocess.TimeoutExpired: it did not come to an end.
    """
    return subprocess.run(
        [*STRICT, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds_max,
        cwd=cwd,
        env={**environ, "PYTHONPATH": path_with(*path)} if path else environ,
        check=False,
    )


def printed_by(
    *arguments: str,
    path: tuple[Path, ...] = (),
    environ: Mapping[str, str] = os.environ,
    cwd: Path | str | None = None,
) -> str:
    """What `run_python` prints; it must end well, and say nothing on stderr."""
    done = run_python(*arguments, path=path, environ=environ, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), f"exit {done.returncode}: {done.stderr}"
    return done.stdout


def printed_by_script(
    text: str,
    folder: Path,
    *,
    path: tuple[Path, ...] = (),
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The same of a script with this text, which is a file in `folder`, as users have them."""
    script = folder / "script.py"
    script.write_text(text)
    return printed_by(str(script), path=path, environ=environ)
