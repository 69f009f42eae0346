"""One program on one side, in processes of its own, with its workers watched from outside.

The resident memory of each worker process is read twenty times a second, by whoever is neither the
worker nor its nanny nor the scheduler.  Nothing goes on for longer, or takes more memory, than it
may: then all of it is ended, and that is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from benchmarks.environment import ROOT, Side
from benchmarks.memory.inside import FOLDER

SAMPLE_SECONDS = 0.05
TOTAL_BYTES_MAX = 16 << 30
END_SECONDS = 10.0
_TAIL = 2000
_KILOBYTE = 1024


@dataclass
class WorkerSeen:
    """What was seen of one worker process."""

    pid: int
    name: str = ""
    peak_bytes: int = 0
    """The most that a sample found resident."""
    high_water_bytes: int = 0
    """The most that the system noted between samples, where it tells."""
    resident_bytes: int = 0
    """The last sample."""
    last_at: float = 0.0
    statuses: list[tuple[float, str]] = field(default_factory=list)
    late_seconds: float = 0.0
    """How late a timer of its loop was at worst, and the processor time of the loop's thread."""
    busy_seconds: float = 0.0

    def pauses(self) -> Iterator[float]:
        """The seconds of each time that it was paused."""
        last = (self.last_at, "")
        for (at, status), (end, _) in pairwise([*self.statuses, last]):
            if status == "paused":
                yield max(0.0, end - at)


@dataclass
class Run:
    """How one program ended."""

    side: str
    answers: dict[str, Any]
    """What it printed, by name."""
    workers: list[WorkerSeen]
    seconds: float
    stopped: str = ""
    """Why it was ended from here; empty: it came to an end by itself."""
    failure: str = ""
    """The error that it ended with."""
    stderr: str = ""

    @property
    def outcome(self) -> str:
        """In a few words."""
        return self.stopped or (f"failed: {self.failure}" if self.failure else "finished")

    @property
    def finished(self) -> bool:
        """It came to its end, without an error."""
        return not (self.stopped or self.failure)

    def nlost(self, nworkers: int) -> int:
        """Worker processes beyond those that there should be: each took the place of one lost."""
        return max(0, len(self.workers) - nworkers)

    @property
    def peak_bytes(self) -> int:
        """Of the worker that took most."""
        return max((worker.peak_bytes for worker in self.workers), default=0)

    @property
    def pause_seconds(self) -> float:
        """The longest pause."""
        return max((each for worker in self.workers for each in worker.pauses()), default=0.0)

    @property
    def late_ms(self) -> float:
        """The latest timer of any worker's loop."""
        return 1e3 * max((worker.late_seconds for worker in self.workers), default=0.0)

    @property
    def busy_ms(self) -> float:
        """The longest stretch of processor time of any worker's loop."""
        return 1e3 * max((worker.busy_seconds for worker in self.workers), default=0.0)


class Sampler:
    """Reads the memory of worker processes until it is told to stop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[int, WorkerSeen] = {}
        self.over = Event()
        self.too_much = False
        self._thread = Thread(target=self._sample, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()
        self._read_notes()

    def _sample(self) -> None:
        while not self.over.wait(SAMPLE_SECONDS):
            for path in self.folder.glob("*.jsonl"):
                pid = int(path.stem)
                self.seen.setdefault(pid, WorkerSeen(pid))
            for worker in self.seen.values():
                _look(worker)
            total = sum(worker.resident_bytes for worker in self.seen.values())
            if total > TOTAL_BYTES_MAX:
                self.too_much = True

    def _read_notes(self) -> None:
        for path in self.folder.glob("*.jsonl"):
            worker = self.seen.setdefault(int(path.stem), WorkerSeen(int(path.stem)))
            for line in path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # the last may be torn, as its writer died
                    _note(worker, json.loads(line))


def run_program(
    side: Side,
    program: str,
    options: Mapping[str, Any] | None = None,
    *,
    seconds_max: float,
    environ: Mapping[str, str] | None = None,
) -> Run:
    """Run `program` of `benchmarks.memory.programs` on `side`, for so long at most."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        watched = Path(name) / "watched"
        watched.mkdir()
        work = Path(name) / "work"
        work.mkdir()
        printed, complained = Path(name) / "stdout", Path(name) / "stderr"
        command = [side.python, "-m", "benchmarks.memory.programs", "--module", side.module]
        command += ["--folder", str(work), program, json.dumps(dict(options or {}))]
        whole = {**_environ(), **(environ or {}), FOLDER: str(watched)}
        started_at = time.monotonic()
        with (
            printed.open("wb") as out,
            complained.open("wb") as err,
            Sampler(watched) as sampler,
            subprocess.Popen(
                command, cwd=ROOT, env=whole, stdout=out, stderr=err, start_new_session=True
            ) as process,
        ):
            stopped = _wait(process, sampler, seconds_max)
        seconds = time.monotonic() - started_at
        answers: dict[str, Any] = {}
        for line in printed.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                answers.update(json.loads(line))
        stderr = complained.read_text(encoding="utf-8", errors="replace")
    failure = str(answers.pop("failure", ""))
    if not stopped and not failure and process.returncode:
        failure = f"exit status {process.returncode}: {stderr[-_TAIL:]}"
    workers = sorted(sampler.seen.values(), key=lambda worker: worker.pid)
    return Run(side.name, answers, workers, seconds, stopped, failure, stderr)


def _wait(process: subprocess.Popen[bytes], sampler: Sampler, seconds_max: float) -> str:
    """Until it has ended, or must be; why it was ended."""
    ends_at = time.monotonic() + seconds_max
    stopped = ""
    try:
        while process.poll() is None and not stopped:
            if time.monotonic() > ends_at:
                stopped = f"not over after {seconds_max:.0f} s"
            elif sampler.too_much:
                stopped = f"more than {TOTAL_BYTES_MAX >> 30} GiB taken"
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(SAMPLE_SECONDS)
    finally:
        if process.poll() is None:  # interrupted from outside as well
            _end_all(process, sampler)
    return stopped


def _end_all(process: subprocess.Popen[bytes], sampler: Sampler) -> None:
    """End the program with all that it began."""
    found: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        above = psutil.Process(process.pid)
        for one in [above, *above.children(recursive=True)]:
            found[one.pid] = one
    for pid in sampler.seen:
        with contextlib.suppress(psutil.NoSuchProcess):
            found[pid] = psutil.Process(pid)
    for one in found.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(list(found.values()), timeout=END_SECONDS)


def _environ() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DASK_", "SHOAL_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}


def _look(worker: WorkerSeen) -> None:
    try:
        text = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        worker.resident_bytes = 0
        return
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == "VmRSS":
            worker.resident_bytes = int(rest.split()[0]) * _KILOBYTE
            worker.peak_bytes = max(worker.peak_bytes, worker.resident_bytes)
            worker.last_at = time.time()
        elif name == "VmHWM":
            seen = int(rest.split()[0]) * _KILOBYTE
            worker.high_water_bytes = max(worker.high_water_bytes, seen)


def _note(worker: WorkerSeen, words: dict[str, Any]) -> None:
    if "name" in words:
        worker.name = words["name"]
    elif "status" in words:
        worker.statuses.append((words["at"], words["status"]))
    elif "late" in words:
        worker.late_seconds = max(worker.late_seconds, words["late"])
    elif "busy" in words:
        worker.busy_seconds = max(worker.busy_seconds, words["busy"])
