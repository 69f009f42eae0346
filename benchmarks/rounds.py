"""Run all sides in turn, round after round, each workload in a fresh process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.bench import Workload
from benchmarks.environment import Side, child_environment
from benchmarks.figures import Failure, Figure, Reading

GRACE_SECONDS = 3.0  # for processes that end by themselves once their parent has gone


@dataclass(frozen=True)
class Run:
    """One workload on one side in one round, and how it ended."""

    side: str
    round: int
    workload: str
    seconds: float
    readings: tuple[Reading, ...]
    failure: Failure | None


def measure(
    sides: Sequence[Side],
    workloads: Sequence[Workload],
    *,
    nrounds: int = 5,
    quick: bool = False,
    report: Callable[[Run], None] = lambda run: None,
) -> list[Run]:
    """Measure, interleaved: what disturbs the machine for a minute disturbs every side.

    The side that goes first changes from round to round.  A failure or a time-out is a run like
    any other.  `report` is called after each; takes minutes per round at full size.
    """
    runs: list[Run] = []
    for number in range(nrounds):
        shift = number % len(sides)
        order = [*sides[shift:], *sides[:shift]]
        for workload in workloads:
            if number >= workload.rounds_max:
                continue
            for side in order:
                if workload.runs_on(side.name):
                    runs.append(run_once(side, workload, number, quick))
                    report(runs[-1])
    return runs


def run_once(side: Side, workload: Workload, number: int, quick: bool) -> Run:
    """One run in a fresh process, killed with all its descendants when its time is up."""
    command = [side.python, "-m", "benchmarks.child", "--module", side.module]
    command += ["--workload", workload.name, "--size", str(workload.size(quick))]
    started_at = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        output, errors = folder / "output", folder / "errors"
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            reason = _wait(command, folder, stdout, stderr, workload.timeout_seconds)
        lines = output.read_text().splitlines()
        last_error = (errors.read_text(errors="replace").strip().splitlines() or [""])[-1]
    figures, said = parse(lines)
    if reason is not None:
        reason = said or f"{reason}; {last_error}".rstrip("; ")
    failure = Failure(side.name, number, workload.name, reason) if reason else None
    return Run(
        side=side.name,
        round=number,
        workload=workload.name,
        seconds=time.perf_counter() - started_at,
        readings=tuple(Reading(side.name, number, workload.name, item) for item in figures)
        if failure is None
        else (),
        failure=failure,
    )


def parse(lines: Sequence[str]) -> tuple[list[Figure], str | None]:
    """The figures of a child's output, and the failure that it tells of.

    Lines that are not JSON objects, such as what a library prints, are left out.
    """
    figures: list[Figure] = []
    failure: str | None = None
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "failure" in found:
            failure = str(found["failure"])
        elif isinstance(found, dict) and {"name", "value", "unit", "better"} <= found.keys():
            figures.append(Figure(**found))
    return figures, failure


def _wait(
    command: list[str], folder: Path, stdout: Any, stderr: Any, timeout_seconds: float
) -> str | None:
    """Run `command` to its end; return what went wrong, if anything did."""
    child = subprocess.Popen(
        command,
        stdout=stdout,
        stderr=stderr,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=child_environment(),
        start_new_session=True,
    )
    try:
        code = child.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        _kill(child.pid, _descendants(child.pid))
        child.wait()
        return f"no end within {timeout_seconds:g} s; killed"
    except BaseException:
        _kill(child.pid, _descendants(child.pid))
        child.wait()
        raise
    alive = _wait_for_session(child.pid)
    _kill(None, alive)
    if code:
        return f"exit code {code}"
    return f"left {len(alive)} processes behind" if alive else None


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _wait_for_session(session: int) -> list[psutil.Process]:
    """Give the processes of a session `GRACE_SECONDS` to end; return those that did not."""
    give_up_at = time.monotonic() + GRACE_SECONDS
    while (alive := _session_members(session)) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    return alive


def _session_members(session: int) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            # One that has ended may wait long for an init process to take notice: no harm in it.
            ended = process.status() == psutil.STATUS_ZOMBIE
            if not ended and os.getsid(process.pid) == session:
                found.append(process)
        except (OSError, psutil.Error):
            continue  # it ended since we listed it, or is not ours to ask about
    return found


def _kill(group: int | None, processes: Sequence[psutil.Process]) -> None:
    if group is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
