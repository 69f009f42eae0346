"""Scheduler, workers and clients as the commands and programs that users start, each a process.

A `Cast` has a home and folders of its own.  What its roles write to stderr goes to files, so that
nobody ever waits for a reader; and in the end it tells what was left behind, and said too much.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any
from unittest import mock

import psutil

from shoal import Client
from shoal.comms.authority import require_token
from shoal.protocol.handshake import WORKER, Keyring
from tests.cluster.commands import variables
from tests.faults.dying import MARK, marked
from tests.leaks import described
from tests.programs import STRICT

SECONDS_MAX = 20.0
"""For whatever a process is to do: to say a line, to end."""

KEPT = (".site", ".config/shoal/token")
"""In a home when all is over: what stands for an installed drop-in, and the user's token."""


WITH_US = ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
"""What to write before a command that shall not outlive this process, however that ends."""


class Role:
    """One process, which leads a session of its own."""

    def __init__(self, name: str, command: list[str], environ: dict[str, str], said: Path) -> None:
        """`said`: the file for what it writes to stderr."""
        self.name = name
        self._said = said
        with said.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environ,
                cwd=environ["HOME"],
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._unread = b""

    def __repr__(self) -> str:
        return f"<{self.name}, process {self.pid}>"

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def said(self) -> str:
        """What it has written to stderr so far."""
        return self._said.read_text(errors="replace")

    def line(self, seconds_max: float = SECONDS_MAX) -> str:
        """The next line that it prints.  Raises AssertionError: there is none, or not in time."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = monotonic() + seconds_max
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - monotonic()))
            assert ready, f"{self} printed no line in {seconds_max:g} s: {self.said}"
            piece = os.read(descriptor, 1 << 16)
            assert piece, f"{self} printed no more lines: {self.said}"
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def signal(self, number: int) -> None:
        """Send it a signal, to it alone."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def freeze(self) -> None:
        """SIGSTOP, to it and to all of its session that is there now."""
        self._to_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT, likewise."""
        self._to_all(signal.SIGCONT)

    def _to_all(self, number: int) -> None:
        for process in [psutil.Process(self.pid), *self.children()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def children(self) -> list[psutil.Process]:
        """The processes below it."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def end(self, seconds_max: float = SECONDS_MAX) -> int:
        """Wait until it has ended; its exit code.

        Raises:
            subprocess.TimeoutExpired: it goes on.
        """
        code = self._process.wait(seconds_max)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


class Cast:
    """All roles of one test; use it in a `with`, at whose end those that are left are ended."""

    def __init__(self, folder: Path) -> None:
        """`folder`: empty, and for nothing else."""
        self.home = folder / "home"
        self._places = {
            "TMPDIR": folder / "tmp",
            "XDG_RUNTIME_DIR": folder / "run",
        }
        self._said = folder / "said"
        for place in (self.home, self._said, *self._places.values()):
            place.mkdir(mode=0o700)
        self._mark = uuid.uuid4().hex
        self.roles: list[Role] = []

    def __enter__(self) -> Cast:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            for role in self.roles:
                said = role.said
                if said:
                    error.add_note(f"{role} said:\n{said}")
        self._kill()

    @property
    def _environ(self) -> dict[str, str]:
        places = {name: str(place) for name, place in self._places.items()}
        return {**variables(self.home), **places, MARK: self._mark}

    def start(self, name: str, *arguments: str, inside: Sequence[str] = (), **added: str) -> Role:
        """An interpreter with these arguments.

        `inside`: what to write before the command; `added`: to its environment.
        """
        said = self._said / f"{len(self.roles)}-{name}"
        command = [*WITH_US, *inside, *STRICT, *arguments]
        role = Role(name, command, {**self._environ, **added}, said)
        self.roles.append(role)
        return role

    def scheduler(
        self, *options: str, host: str = "127.0.0.1", port: int = 0, **added: Any
    ) -> tuple[Role, str]:
        """A `shoal scheduler`, and its address; `added` as for `start`."""
        place = ("--host", host, "--port", str(port), "--no-dashboard")
        role = self.start("scheduler", "-m", "shoal", "scheduler", *place, *options, **added)
        return role, role.line()

    def worker(
        self, address: str, *options: str, host: str = "127.0.0.1", **added: Any
    ) -> tuple[Role, str]:
        """A `shoal worker` of one thread, and its address; it has a nanny unless it is told not
        to.  `added` as for `start`."""
        usual = ("--nthreads", "1", "--host", host)
        role = self.start("worker", "-m", "shoal", "worker", address, *usual, *options, **added)
        return role, role.line()

    def program(self, name: str, text: str, *arguments: str, **added: Any) -> Role:
        """A program of a user's, given as its text; `added` as for `start`."""
        return self.start(name, "-c", text, *arguments, **added)

    @contextlib.contextmanager
    def client(self, address: str, **options: Any) -> Iterator[Client]:
        """A client of this process, of the same user as the roles."""
        with (
            mock.patch.dict(os.environ, {**self._environ, MARK: ""}, clear=True),
            Client(address, timeout=SECONDS_MAX, **options) as client,
        ):
            yield client

    def keyring(self, address: str) -> Keyring:
        """What proves to the scheduler at an address that somebody belongs to it."""
        with mock.patch.dict(os.environ, {**self._environ, MARK: ""}, clear=True):
            return Keyring.from_token(require_token(address, WORKER))

    def close(self, number: int = signal.SIGTERM) -> list[str]:
        """End all roles, the last first; a sentence for each that does not end well."""
        found = []
        for role in reversed(self.roles):
            if not role.is_alive:
                continue
            role.signal(number)
            try:
                code = role.end()
            except subprocess.TimeoutExpired:
                found.append(f"{role} did not end")
                continue
            if code:
                found.append(f"{role} ended with exit code {code}")
        return found

    def complaints(self, *may_be_said: str) -> list[str]:
        """End all roles that still run; a sentence for whatever is not as it should be.

        `may_be_said`: patterns of the lines that may be in what roles wrote to stderr.
        """
        found = self.close()
        _, alive = psutil.wait_procs(list(marked(self._mark)), timeout=SECONDS_MAX)
        found += [f"left behind: process {described(process)}" for process in alive]
        found += [f"left behind: {path}" for path in self.left()]
        allowed = [re.compile(pattern) for pattern in may_be_said]
        for role in self.roles:
            for line in role.said.splitlines():
                if not any(pattern.search(line) for pattern in allowed):
                    found.append(f"{role.name} said: {line}")
        return found

    def left(self) -> list[Path]:
        """Files of the roles that are still there, but for what a user keeps."""
        return [
            path
            for place in (self.home, *self._places.values())
            for path in sorted(place.rglob("*"))
            if not path.is_dir() and not str(path.relative_to(place)).startswith(KEPT)
        ]

    def _kill(self) -> None:
        for role in self.roles:
            if role.is_alive:
                role.kill()
            role.end()
        for process in marked(self._mark):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def free_port() -> int:
    """One that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
