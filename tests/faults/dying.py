"""Kills one process of a working cluster at a chosen step, and says what became of the rest."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import psutil

from tests.faults.work import NSTEPS, RESULT
from tests.leaks import described
from tests.programs import STRICT

MARK = "SHOAL_TEST_MARK"
"""A variable that every process of a run inherits, whoever its parent is by now."""

END_SECONDS_MAX = 20.0
"""After this long, what is left of a run is left for good."""

WORK = Path(__file__).parent / "work.py"
SHARED_MEMORY = Path("/dev/shm")


@dataclass
class Ending:
    """What became of one run after one of its processes was killed."""

    victim: str
    step: int
    exit_code: int
    seconds: float  # from the kill until nothing was left
    words: dict[str, Any]
    stderr: str
    left: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether the program came to the right result."""
        return self.words == {"result": RESULT}


class Folders:
    """Folders of one run's own, and what is left in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        for name in ("tmp", "home", "run"):
            (folder / name).mkdir(mode=0o700)
        self._shared = _names(SHARED_MEMORY)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """An interpreter in a session of its own, as if it had a terminal to itself."""
        return subprocess.Popen(
            [*STRICT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                MARK: self.mark,
                "TMPDIR": str(self.folder / "tmp"),
                "HOME": str(self.folder / "home"),
                "XDG_RUNTIME_DIR": str(self.folder / "run"),
            },
        )

    def left(self) -> list[str]:
        """Processes that won't end, which are ended then after all, and files."""
        _, alive = psutil.wait_procs(list(marked(self.mark)), timeout=END_SECONDS_MAX)
        found = [f"process {described(process)}" for process in alive]
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for path in sorted(self.folder.rglob("*")):
            if not path.is_dir() or path.parent == self.folder / "tmp":
                found.append(str(path))
        return found + sorted(_names(SHARED_MEMORY) - self._shared)


class Run:
    """The program of `work`, while it works."""

    def __init__(self, folder: Path) -> None:
        self._folders = Folders(folder)
        self._path = folder / "steps"
        self._steps = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._steps.bind(str(self._path))
        self.program = self._folders.start(str(WORK), str(self._path))
        assert self.program.stdout is not None
        self.pids: dict[str, Any] = json.loads(self.program.stdout.readline())

    def wait_for_step(self, step: int) -> None:
        """Return as soon as so many tasks have told that they run."""
        self._steps.settimeout(END_SECONDS_MAX)
        for _ in range(step):
            self._steps.recv(1)

    def ending(self, victim: str, step: int, kill: Callable[[], None]) -> Ending:
        """Kill, and wait until nothing is left."""
        killed_at = monotonic()
        kill()
        stdout, stderr = to_its_end(self.program)
        self._steps.close()
        self._path.unlink()
        left = self._folders.left()
        seconds = monotonic() - killed_at
        lines = stdout.splitlines()
        words = json.loads(lines[-1]) if lines else {}
        return Ending(victim, step, self.program.returncode, seconds, words, stderr, left)


def to_its_end(program: subprocess.Popen[str]) -> tuple[str, str]:
    """What it has written, once it has ended; it is ended if it doesn't do so by itself."""
    try:
        return program.communicate(timeout=END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        stdout, stderr = program.communicate()
        return stdout, stderr + "it did not end by itself\n"


def marked(mark: str) -> Iterator[psutil.Process]:
    """Every process that has inherited `mark`."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                yield psutil.Process(int(name))
        except (OSError, psutil.NoSuchProcess):
            continue  # somebody else's, or it has just ended


def _names(folder: Path) -> set[str]:
    """Of ours: others work on this machine as well."""
    found = os.listdir(folder) if folder.is_dir() else []
    return {name for name in found if "shoal" in name}


def zygote_of(run: Run) -> int | None:
    """Who has started the workers, if that was not the program itself."""
    parent = psutil.Process(run.pids["workers"][0]).ppid()
    return None if parent == run.program.pid else parent


def _kill(pid: int) -> Callable[[], None]:
    return lambda: os.kill(pid, signal.SIGKILL)


def killers(run: Run, chance: Random) -> dict[str, Callable[[], None]]:
    """Who can be killed, and how."""
    found = {
        "worker": _kill(chance.choice(run.pids["workers"])),
        "scheduler": _kill(run.pids["scheduler"]),
        "client": _kill(run.program.pid),
        "ctrl-c": lambda: os.killpg(run.program.pid, signal.SIGINT),
    }
    zygote = zygote_of(run)
    if zygote is not None:
        found["zygote"] = _kill(zygote)
    return found


VICTIMS = ("worker", "zygote", "scheduler", "client", "ctrl-c")
SURVIVABLE = ("worker", "zygote")
LAST_WORDS = {"scheduler": {"error"}, "client": set(), "ctrl-c": {"error"}}
"""Who is killed → what the program may say at the end, beside its result."""

SECONDS_MAX = 8.0
"""A few seconds, on a machine that does other things as well."""


def complaints(ending: Ending) -> list[str]:
    """What is not as it was promised, one sentence each."""
    where = f"{ending.victim} killed at step {ending.step}"
    return [f"{where}: {complaint}" for complaint in _complaints(ending)]


def _complaints(ending: Ending) -> Iterator[str]:
    if ending.victim in SURVIVABLE:
        if not ending.is_right or ending.exit_code:
            yield f"the result is not right, but {ending.words}"
    elif not ending.is_right and set(ending.words) != LAST_WORDS[ending.victim]:
        yield f"its last words are {ending.words}"
    lines = ending.stderr.splitlines()
    if len(lines) > 1:
        yield f"stderr has {len(lines)} lines: {ending.stderr!r}"
    if ending.seconds > SECONDS_MAX:
        yield f"it took {ending.seconds:.1f} s"
    if ending.left:
        yield f"left behind: {', '.join(ending.left)}"


def die(victim: str, seed: int, folder: Path) -> Ending:
    """Kill `victim` at a step that `seed` chooses.

    Raises:
        KeyError: there is no such process.
    """
    chance = Random(f"{victim} {seed}")
    run = Run(folder)
    step = chance.randint(1, NSTEPS - 5)
    run.wait_for_step(step)
    return run.ending(victim, step, killers(run, chance)[victim])


def run_to_end(text: str, folder: Path) -> Ending:
    """A program that nobody interferes with, from its start to its end."""
    folders = Folders(folder)
    started_at = monotonic()
    program = folders.start("-c", text)
    stdout, stderr = to_its_end(program)
    left = folders.left()
    seconds = monotonic() - started_at
    return Ending("nobody", 0, program.returncode, seconds, {"said": stdout}, stderr, left)
