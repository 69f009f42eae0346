"""An SSH server on loopback, for tests: whoever has its key may run commands, as `sshd` has them.

Commands are run by a shell in sessions of their own.  They are listed, with the processes that are
theirs, so that a test may look at these.  `cut` breaks all connections, as a network does.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import psutil

KEPT_BYTES = 1 << 16


class SSHServer:
    """One that runs, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        """`folder`: where the user's key and the known hosts are written to."""
        self.folder = folder
        self.port = 0
        self.commands: list[str] = []
        self.processes: list[psutil.Process] = []
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ssh-server")

    @property
    def connect_options(self) -> dict[str, Any]:
        """What lets a client in."""
        return {
            "port": self.port,
            "username": "tester",
            "client_keys": [str(self.folder / "key")],
            "known_hosts": str(self.folder / "known_hosts"),
            "config": None,
            "agent_path": None,
        }

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()
        self._run(self._start())

    def stop(self) -> None:
        """Break what is connected, and end."""
        self._run(self._stop())
        self._run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break all connections, without a word."""
        self._run(self._cut())

    def family(self, first: int = 0) -> list[psutil.Process]:
        """The processes of all commands from the first on, and theirs, that are there."""
        found = []
        for process in self.processes[first:]:
            with contextlib.suppress(psutil.Error):
                found += [process, *process.children(recursive=True)]
        return found

    # --- in its thread -----------------------------------------------------------------------

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> None:
        host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user_key.write_private_key(str(self.folder / "key"))
        user_key.write_public_key(str(self.folder / "authorized"))
        self._server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: _Gate(self._connections),
            server_host_keys=[host_key],
            authorized_client_keys=str(self.folder / "authorized"),
            process_factory=self._serve,
            encoding=None,
        )
        self.port = self._server.get_port()
        public = host_key.export_public_key().decode()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")

    async def _stop(self) -> None:
        self._server.close()
        await self._cut()
        await self._server.wait_closed()

    async def _cut(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    async def _serve(self, asked: Any) -> None:
        """Run one command, as `sshd` does: its input ends with the connection."""
        self.commands.append(asked.command)
        process = await asyncio.create_subprocess_shell(
            asked.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        with contextlib.suppress(psutil.Error):
            self.processes.append(psutil.Process(process.pid))
        feeding = asyncio.ensure_future(_feed(asked, process))
        await asyncio.gather(
            _pass_on(process.stdout, asked.stdout), _pass_on(process.stderr, asked.stderr)
        )
        code = await process.wait()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        with contextlib.suppress(OSError, asyncssh.Error):
            asked.exit(code)


class _Gate(asyncssh.SSHServer):
    """Remembers the connection."""

    def __init__(self, connections: set[Any]) -> None:
        self._connections = connections

    def connection_made(self, conn: Any) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self._connection)


async def _feed(asked: Any, process: Any) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while piece := await _read(asked, process):
            process.stdin.write(piece)
    process.stdin.close()


async def _read(asked: Any, process: Any) -> bytes:
    """Some of the client's words; none once there are no more.  Passes its signals on."""
    while True:
        try:
            return await asked.stdin.read(KEPT_BYTES)
        except asyncssh.SignalReceived as received:
            os.killpg(process.pid, signal.Signals[f"SIG{received.signal}"])


async def _pass_on(source: Any, target: Any) -> None:
    while piece := await source.read(KEPT_BYTES):
        with contextlib.suppress(OSError, asyncssh.Error):  # the client has gone; it goes on
            target.write(piece)


@contextlib.contextmanager
def ssh_server(folder: Path) -> Iterator[SSHServer]:
    """A server for the length of a block, and the library's log without its chatter."""
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    server = SSHServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
