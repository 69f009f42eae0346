"""Run test files of upstream's, unmodified, each in a process of its own, on either side.

A side is an interpreter and the package `distributed` that it has.  The package is copied into a
folder with the tests inside it, as in a checkout, so that tests which name each other, or files
that lie beside them, find them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

TEST_SECONDS_MAX: Final = 60
FILE_SECONDS_MAX: Final = 900
_ENDS: Final = (0, 1, 5)
"""How pytest ends: all passed, some failed, none was collected."""
_HERE: Final = Path(__file__).parent
PACKAGE: Final = "distributed"
_WHERE: Final = "import importlib.util as u; print(u.find_spec('distributed').origin)"


@dataclass(frozen=True)
class Ended:
    """How one test of a file ended."""

    name: str
    outcome: str
    """passed, failed, skipped, expected (to fail, and did) or lucky (expected to, and didn't)."""
    seconds: float
    reason: str


class NoSuchTests(Exception):
    """The folder does not hold upstream's tests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"{self.folder} holds no tests of distributed: it needs pyproject.toml, conftest.py "
            "and distributed/**/tests/ of a checkout of the release that is compared."
        )


def lay_out(tests: Path, python: str, folder: Path, *, path: tuple[Path, ...] = ()) -> None:
    """Make `folder` look like a checkout: the package that `python` has, and the tests.

    Args:
        path: where `python` looks for packages first.

    Raises:
        NoSuchTests: the folder of tests is none.
    """
    if not (tests / "conftest.py").exists() or not (tests / PACKAGE / "tests").exists():
        raise NoSuchTests(tests)
    answer = subprocess.run(
        [python, "-P", "-c", _WHERE],
        env=environment(path),
        capture_output=True,
        text=True,
        check=True,
    )
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(answer.stdout.strip()).parent, folder / PACKAGE, ignore=ignored)
    shutil.copytree(tests / PACKAGE, folder / PACKAGE, dirs_exist_ok=True, ignore=ignored)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(tests / name, folder / name)


def environment(path: tuple[Path, ...] = ()) -> dict[str, str]:
    """This process's, without what configures dask, with `path` first."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, path))
    return environ


def run_file(
    python: str, folder: Path, file: str, *options: str, path: tuple[Path, ...] = ()
) -> list[Ended]:
    """Run one file in a folder made by `lay_out`; what it had recorded when it ended or was ended.

    Some seconds to some minutes.  Bounded by FILE_SECONDS_MAX, each test by TEST_SECONDS_MAX.
    """
    settings = "addopts=-p no:asyncio -p no:legacypath --strict-markers"
    arguments = ["-o", settings, *options, str(folder / PACKAGE / file)]
    found, death = run_pytest(python, folder, arguments, path=(folder, *path))
    ended = [replace(each, name=each.name.partition("::")[2]) for each in found]
    if death and not any(each.outcome == "failed" and not each.seconds for each in ended):
        ended.append(Ended(file, "failed", 0.0, death))
    return ended


def run_pytest(
    python: str,
    folder: Path,
    arguments: list[str],
    *,
    path: tuple[Path, ...] = (),
    seconds_max: float = FILE_SECONDS_MAX,
) -> tuple[list[Ended], str]:
    """Run pytest in a folder, where its output is left.

    Returns:
        How each test ended, and, unless pytest came to its end, how that did.
    """
    record = folder / "record.jsonl"
    record.unlink(missing_ok=True)
    environ = environment((*path, _HERE)) | {"RECORD_INTO": str(record)}
    command = [python, "-P", "-m", "pytest", "-q", "-p", "recording", "-p", "no:cacheprovider"]
    command += ["--timeout", str(TEST_SECONDS_MAX), "--timeout-method", "signal", *arguments]
    death = ""
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if process.wait(seconds_max) not in _ENDS:
                death = f"pytest ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            death = f"pytest did not end in {seconds_max} s"
        finally:
            _end_session(process)
    return list(read_record(record)), death


def read_record(record: Path) -> Iterator[Ended]:
    """What the plugin wrote; names with their file's, but without its folders."""
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    for line in lines:
        each = json.loads(line)
        file, _, test = each["name"].partition("::")
        name = f"{file.rpartition('/')[2]}::{test}"
        yield Ended(name, each["outcome"], each["seconds"], each["reason"])


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the run and all that it has started and left."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass  # nothing of it is left
    process.wait()
