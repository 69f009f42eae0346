"""A process on another host, at the other end of an SSH connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import shlex
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from shoal.deploy.errors import HostFailed, SSHNotInstalled
from shoal.deploy.remote import FAILED, SERVICES
from shoal.nanny.bootstrap import to_bytes
from shoal.nanny.channel import LAST_LINES
from shoal.version import VERSION

ENTRY: Final = "shoal.deploy.remote"
"""The module that runs there."""

KEEPALIVE_SECONDS: Final = 15
"""Between two questions whether the host still answers; after three without one it is lost."""

SIGNAL_SECONDS: Final = 1.0
"""What a process may take to end after a signal, and a connection to close."""

_SHELL_FINDS_NOTHING: Final = (126, 127)
_NO_SHOAL: Final = re.compile(r"No module named '?shoal\b")

_logger = logging.getLogger("shoal.deploy")


def asyncssh_library() -> Any:
    """The library.

    Raises:
        SSHNotInstalled: it isn't here (an ImportError).
    """
    try:
        return import_module("asyncssh")
    except ImportError as error:
        raise SSHNotInstalled(str(error)) from error


class RemoteProcess:
    """One process on another host; belongs to the loop that starts it.

    It is told what it shall be on its standard input, whose end it takes for the end of the
    cluster: it ends with us, and with the connection.  What it writes comes to our log.
    """

    def __init__(
        self,
        what: str,
        host: str,
        document: Mapping[str, Any],
        *,
        connect_options: Mapping[str, Any],
        python: str | None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Describe it; `start` starts it.

        Args:
            what: for people, such as "worker 0".
            host: as `asyncssh.connect` takes it.
            document: what it shall be; see `remote.py`.
            connect_options: of `asyncssh.connect`.
            python: the interpreter, a command of the host's shell; None: where ours is here.
            on_end: called if it ends by itself, once it was ready.
        """
        self.what, self.host = what, host
        self._document: Mapping[str, Any] = document
        self._connect_options = {"keepalive_interval": KEEPALIVE_SECONDS, **connect_options}
        self.python = shlex.quote(sys.executable) if python is None else python
        self._on_end = on_end
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._is_closing = False
        self._connection: Any = None
        self._process: Any = None
        self._ready: asyncio.Future[list[dict[str, Any]]] | None = None
        self._life: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<process of {self.what} on {self.host}>"

    @property
    def command(self) -> str:
        """What the host's shell is told: nothing secret."""
        return f"{self.python} -m {ENTRY}"

    @property
    def has_ended_well(self) -> bool:
        """Whether it has ended in good order, by itself or because it was asked to."""
        return self._process is not None and self._process.exit_status == 0

    async def start(self, timeout_seconds: float) -> list[dict[str, Any]]:
        """Connect, and start it; returns when it serves.

        Returns:
            For each of its services, its `"address"` and its `"services"`, name → port.

        Raises:
            HostFailed: with what kept it from that, and what to do (a RuntimeError).
            SSHNotInstalled: an ImportError.
        """
        library = asyncssh_library()
        try:
            async with asyncio.timeout(timeout_seconds):
                with self._explained(library):
                    self._connection = await library.connect(self.host, **self._connect_options)
                    self._process = await self._connection.create_process(
                        self.command, encoding=None
                    )
                self._ready = asyncio.get_running_loop().create_future()
                self._life = asyncio.create_task(
                    self._live(library), name=f"process of {self.what} on {self.host}"
                )
                self._say_document(library)
                return await self._ready
        except TimeoutError as error:
            why = f"it did not start within {timeout_seconds:g} s{self._said()}"
            remedy = "Look whether the host is overloaded, or reachable at all."
            raise HostFailed(self.host, self.what, why, remedy) from error

    def _say_document(self, library: Any) -> None:
        document, self._document = self._document, {}  # the token need not stay
        with contextlib.suppress(OSError, library.Error):  # it has ended, and its end says more
            self._process.stdin.write(to_bytes(document))

    async def finished(self) -> None:
        """Wait until it has ended, however it does."""
        if self._life is not None:
            await asyncio.wait((self._life,))

    async def close(self, timeout_seconds: float) -> None:
        """Have it close and end; SIGTERM, then SIGKILL, if it does not in time.

        The connection is closed in any case.  Takes two seconds longer at most, and one more for
        the connection.
        """
        self._is_closing = True
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if self._life is not None:
                await self._end(self._life, timeout_seconds)
        finally:
            connection.close()
            try:
                async with asyncio.timeout(SIGNAL_SECONDS):
                    await connection.wait_closed()
            except TimeoutError:
                connection.abort()

    async def _end(self, life: asyncio.Task[None], timeout_seconds: float) -> None:
        process, wait_seconds = self._process, timeout_seconds
        for end in (process.stdin.write_eof, process.terminate, process.kill):
            with contextlib.suppress(OSError):  # it has ended already
                end()
            done, _ = await asyncio.wait((life,), timeout=wait_seconds)
            if done:
                return
            wait_seconds = SIGNAL_SECONDS
        life.cancel()
        await asyncio.wait((life,))

    # --- its life ----------------------------------------------------------------------------

    async def _live(self, library: Any) -> None:
        """Read what it says until it has ended; then tell whoever wants to know."""
        await asyncio.gather(
            self._read(library, self._process.stdout, self._hear),
            self._read(library, self._process.stderr, self._hear_error),
        )
        await self._process.wait_closed()
        assert self._ready is not None
        if not self._ready.done():
            self._ready.set_exception(self._failure())
            self._ready.exception()  # whoever waits is told; nobody need wait
        elif not self._is_closing:
            level = logging.INFO if self.has_ended_well else logging.WARNING
            _logger.log(level, "%s on %s has ended: %s", self.what, self.host, self._ending())
            self._on_end()

    async def _read(self, library: Any, stream: Any, hear: Callable[[str], None]) -> None:
        """Have `hear` told each line, until there are no more, however that comes."""
        with contextlib.suppress(OSError, library.Error):
            while line := await stream.readline():
                hear(line.decode(errors="replace").rstrip("\r\n"))

    def _hear(self, line: str) -> None:
        """A line of its own, or one of the host's shell, which may greet."""
        words = _words(line)
        assert self._ready is not None
        if self._ready.done() or words is None:
            _logger.info("%s on %s: %s", self.what, self.host, line)
        elif FAILED in words:
            self._ready.set_exception(self._refusal(words[FAILED]))
            self._ready.exception()
        else:
            self._ready.set_result(words[SERVICES])

    def _hear_error(self, line: str) -> None:
        """Kept until it is ready, as it may say why it is not."""
        assert self._ready is not None
        if self._ready.done():
            _logger.warning("%s on %s: %s", self.what, self.host, line)
        else:
            self._last.append(line)

    # --- what went wrong ---------------------------------------------------------------------

    @contextlib.contextmanager
    def _explained(self, library: Any) -> Iterator[None]:
        """What keeps us from the host is told with what to do."""
        try:
            yield
        except library.PermissionDenied as error:
            remedy = (
                "Give connect_options={'username': ..., 'client_keys': [...]}, a user and a key "
                "that the host lets in; or have ssh-agent hold the key."
            )
            raise self._failed(f"the login was refused ({error})", remedy) from error
        except library.HostKeyNotVerifiable as error:
            remedy = (
                f"Run `ssh {self.host}` once, which asks and remembers the key; "
                "connect_options={'known_hosts': None} trusts whoever answers."
            )
            raise self._failed(f"its host key is not to be trusted ({error})", remedy) from error
        except TimeoutError:
            raise
        except (OSError, library.Error) as error:
            remedy = "Look whether `ssh` reaches it, by that name and with that port and user."
            raise self._failed(f"it can't be reached ({error})", remedy) from error

    def _failure(self) -> HostFailed:
        """Why it ended before it was ready."""
        said = self._said()
        if self._process.exit_status in _SHELL_FINDS_NOTHING:
            remedy = "Give remote_python=, the path of a Python on that host."
            return self._failed(f"there is no {self.python} there{said}", remedy)
        if any(map(_NO_SHOAL.search, self._last)):
            remedy = (
                f"Install it there ({self.python} -m pip install shoal=={VERSION}), or give "
                "remote_python= of an environment that has it."
            )
            return self._failed(f"shoal is not installed for {self.python} there{said}", remedy)
        return self._failed(f"{self._ending()}{said}", "Look at the host for the reason.")

    def _refusal(self, why: str) -> HostFailed:
        remedy = "What it is made with is said in scheduler_options= and worker_options=."
        return self._failed(why, remedy)

    def _failed(self, why: str, remedy: str) -> HostFailed:
        return HostFailed(self.host, self.what, why, remedy)

    def _ending(self) -> str:
        process = self._process
        if process.exit_signal:
            return f"it was ended by SIG{process.exit_signal[0]}"
        if process.exit_status is None or process.exit_status < 0:
            return "the connection to it was lost"
        return f"it ended with exit code {process.exit_status}"

    def _said(self) -> str:
        """The end of what it has written to its stderr."""
        text = "\n".join(self._last).strip()
        return f"; it said:\n{text}\n" if text else ""


def _words(line: str) -> dict[str, Any] | None:
    """What the process says, unless something else does."""
    try:
        words = json.loads(line)
    except ValueError:
        return None
    is_ours = isinstance(words, dict) and (FAILED in words or SERVICES in words)
    return words if is_ours else None
