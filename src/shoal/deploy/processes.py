"""Services in processes of their own: how they are started, watched and ended.

Nothing is guarded by the user's `__main__`, because it is never imported.  What a process shall be
goes to it on its standard input, a socket whose end it takes for the end of the cluster; nothing
secret stands in a command line or an environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shoal.deploy.errors import ProcessDied, ProcessLate, ending_of
from shoal.observe.status import Status

TERMINATE_SECONDS: Final = 1.0
"""After SIGTERM, and again after SIGKILL."""

LAST_LINES: Final = 20
_POLL_SECONDS_MAX: Final = 0.05

_logger = logging.getLogger("shoal.deploy")

_CHILD: Final = "shoal.deploy.child"
_BOOTSTRAP: Final = f"""\
import json, os, sys
def exactly(nbytes):
    pieces = b""
    while len(pieces) < nbytes:
        piece = os.read(0, nbytes - len(pieces))
        if not piece:
            raise SystemExit(0)
        pieces += piece
    return pieces
document = json.loads(exactly(int.from_bytes(exactly(4), "little")))
sys.path[:] = document["path"]
from {_CHILD} import main
main(document)
"""
"""The path is set before anything of ours or the user's is imported."""


class ServiceProcess:
    """One process of the cluster, a scheduler or a worker; belongs to the loop that starts it."""

    def __init__(
        self,
        what: str,
        document: dict[str, Any],
        *,
        environ: Mapping[str, str] | None = None,
        on_end: Callable[[ServiceProcess], None] | None = None,
    ) -> None:
        """`what`: for people, such as "worker 0"; `on_end`: called if it ends by itself."""
        self.what = what
        self.status = Status.created
        self.address = ""
        self.started_at = time.time()  # for display only
        self.words: dict[str, Any] = {}  # what it said of itself as it was ready
        self._document = document
        self._environ = environ
        self._on_end = on_end
        self._popen: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._errors: socket.socket | None = None
        self._lines: deque[bytes] = deque(maxlen=LAST_LINES)
        self._ready: asyncio.Future[dict[str, Any]] | None = None
        self._life: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<process of {self.what} at {self.address or 'no address'}, {self.status}>"

    @property
    def pid(self) -> int | None:
        """Of the process; None if it was never started."""
        return None if self._popen is None else self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None as long as it runs; negative: minus the signal that ended it."""
        return None if self._popen is None else self._popen.poll()

    async def start(self, inherited: Sequence[int] = ()) -> None:
        """Start the process, and tell it what it shall be.  Does not wait until it is that.

        Args:
            inherited: descriptors, under numbers that stand in the document.

        Raises:
            OSError: the system has no process for us.
        """
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self.status = Status.starting
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._errors, their_errors = socket.socketpair()
        standard_error = _duplicate_of_stderr()
        self._document["stderr"] = standard_error
        try:
            self._popen = subprocess.Popen(
                [sys.executable, *_interpreter_flags(), "-c", _BOOTSTRAP],
                stdin=theirs.fileno(),
                stderr=their_errors.fileno(),
                pass_fds=(standard_error, *inherited),
                env=self._environ,
                process_group=0,  # Ctrl-C is for the parent, which closes us in good order
            )
        except BaseException:
            self._release()
            raise
        finally:
            theirs.close()
            their_errors.close()
            os.close(standard_error)
        ours.setblocking(False)
        self._errors.setblocking(False)
        self._life = asyncio.create_task(self._live(), name=f"process of {self.what}")
        document = json.dumps(self._document).encode()
        self._document = {}  # the token need not stay
        with contextlib.suppress(OSError):  # it died; `ready` tells how
            await loop.sock_sendall(ours, len(document).to_bytes(4, "little") + document)

    async def ready(self, timeout_seconds: float) -> dict[str, Any]:
        """Wait until it serves; what it says of itself.

        Raises:
            ProcessDied: it ended first.
            ProcessLate: it was not ready in time.
        """
        assert self._ready is not None
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            raise ProcessLate(self.what, timeout_seconds, self._last_lines()) from error

    async def go(self, words: Mapping[str, Any]) -> None:
        """Tell it that what it waits for is there."""
        line = json.dumps(words).encode() + b"\n"
        if self._channel is not None:
            with contextlib.suppress(OSError):  # it died; `ready` tells how
                await asyncio.get_running_loop().sock_sendall(self._channel, line)

    async def finished(self) -> None:
        """Wait until it has ended, however it does."""
        if self._life is not None:
            await asyncio.wait((self._life,))

    async def close(self, timeout_seconds: float) -> None:
        """Have it close and end; SIGTERM, then SIGKILL, if it does not in time."""
        self.let_go()
        if self._life is None:
            return
        wait_seconds = timeout_seconds
        for end in (self.terminate, self.kill, None):
            done, _ = await asyncio.wait((self._life,), timeout=wait_seconds)
            if done or end is None:
                return
            end()
            wait_seconds = TERMINATE_SECONDS

    def let_go(self) -> None:
        """Say that it shall close.  From any thread; does not wait."""
        if self.status in (Status.starting, Status.running):
            self.status = Status.closing
        if self._channel is not None:
            with contextlib.suppress(OSError):  # it is gone already
                self._channel.shutdown(socket.SHUT_WR)

    def close_now(self, deadline: float) -> None:
        """As `close`, without a loop; until `deadline`, on the monotonic clock."""
        self.let_go()
        if self._popen is None:
            return
        for end in (self.terminate, self.kill, None):
            try:
                self._popen.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                if end is not None:
                    end()
                deadline = time.monotonic() + TERMINATE_SECONDS
                continue
            break
        if self._life is None or self._life.done():  # its loop has gone, and left this to us
            self._release()

    def terminate(self) -> None:
        """SIGTERM."""
        if self._popen is not None:
            self._popen.terminate()

    def kill(self) -> None:
        """SIGKILL: it ends at once, without a word to anybody."""
        if self._popen is not None:
            self._popen.kill()

    # --- its life ----------------------------------------------------------------------------

    async def _live(self) -> None:
        """From its first word to its end."""
        try:
            errors = asyncio.create_task(self._read_errors())
            await self._listen()
            exit_code = await self._reap()
            await asyncio.wait((errors,), timeout=TERMINATE_SECONDS)
            errors.cancel()
        finally:
            if self.exit_code is not None:  # else the loop ends before it does: see `close_now`
                self._release()
        self._ended(exit_code)

    def _ended(self, exit_code: int | None) -> None:
        """Tell whoever wants to know."""
        was, self.status = self.status, Status.closed
        assert self._ready is not None
        if not self._ready.done():
            if was is Status.starting:
                self._ready.set_exception(ProcessDied(self.what, exit_code, self._last_lines()))
                self._ready.exception()  # whoever waits is told; nobody need wait
            else:
                self._ready.cancel()
        elif was is Status.running:
            if exit_code:
                self.status = Status.failed
                _logger.warning("The process of %s died: %s", self.what, ending_of(exit_code))
            if self._on_end is not None:
                self._on_end(self)

    async def _listen(self) -> None:
        """What it says, until it falls silent for ever."""
        loop = asyncio.get_running_loop()
        assert self._channel is not None
        assert self._ready is not None
        said = b""
        while piece := await _receive(loop, self._channel):
            said += piece
            while b"\n" in said:
                line, _, said = said.partition(b"\n")
                if not self._ready.done():
                    words = json.loads(line)
                    self.words, self.address = words, words["address"]
                    if self.status is Status.starting:
                        self.status = Status.running
                    self._ready.set_result(words)

    async def _reap(self) -> int | None:
        """Its exit code.  The channel ends just before a process does: so it won't take long."""
        assert self._popen is not None
        pause_seconds = 0.001
        deadline = time.monotonic() + TERMINATE_SECONDS
        while (exit_code := self._popen.poll()) is None:
            if self.status is not Status.closing and time.monotonic() > deadline:
                self._popen.kill()  # it lives, but can't be spoken to
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _POLL_SECONDS_MAX)
        return exit_code

    async def _read_errors(self) -> None:
        """Keep what it writes to stderr until it is ready; from then on it writes to ours."""
        loop = asyncio.get_running_loop()
        assert self._errors is not None
        rest = b""
        while piece := await _receive(loop, self._errors):
            *lines, rest = (rest + piece).split(b"\n")
            self._lines.extend(lines)
        if rest:
            self._lines.append(rest)
        if self.status is Status.running and self._lines:
            _write_to_stderr(b"\n".join(self._lines) + b"\n")  # a warning on the way, perhaps
            self._lines.clear()

    def _last_lines(self) -> str:
        return b"\n".join(self._lines).decode(errors="replace").strip()

    def _release(self) -> None:
        for sock in (self._channel, self._errors):
            if sock is not None:
                sock.close()
        self._channel = self._errors = None


async def _receive(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    """Some bytes; none if the other end is gone, however it went."""
    try:
        return await loop.sock_recv(sock, 1 << 16)
    except OSError:
        return b""


def _duplicate_of_stderr() -> int:
    """A descriptor of our own stderr, or of nothing where there is none."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _write_to_stderr(text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)


def _interpreter_flags() -> list[str]:
    """What this interpreter was started with, such as `-W error` or `-X dev`."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags
