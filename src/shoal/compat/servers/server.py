"""`distributed.core.Server`: a server of a program's own, which answers to operations by name."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import dask.config

from shoal.compat.addresses import (
    get_address_host_port,
    unparse_address,
    unparse_host_port,
)
from shoal.compat.comm import core as comms
from shoal.compat.servers.conversing import STREAM, converse, converse_in_stream
from shoal.compat.servers.errors import NotAStatus, NotListening, ServerFailed
from shoal.compat.servers.pool import ConnectionPool
from shoal.observe.handling import NO_REASONS, Counted
from shoal.observe.named import stop_periodic
from shoal.observe.status import Status
from shoal.storage.scratch import make_scratch, remove_scratch
from shoal.storage.uploads import forget_path, keep_file

logger = logging.getLogger("shoal.core")

GRACE_SECONDS: Final = 1.0
"""What operations may take to end as a server closes, and to end once they are cancelled."""


class Server:
    """Answers to operations by name: `await rpc(server.address).ping(delay=1)`.

    `await server` starts it, `async with` closes it as well; `await server.listen(port)` has it
    listen.  A handler whose first parameter is named `comm` is given the comm; its other arguments
    come by name.  It may be a coroutine function, and what it returns, or raises, is the answer.
    Whoever connects has to hold the token that it asks for: see `distributed.comm.listen`.
    """

    default_ip: ClassVar[str] = ""
    default_port: ClassVar[int] = 0
    reasons: Mapping[str, str] = NO_REASONS

    def __init__(
        self,
        handlers: Mapping[str, Callable[..., Any]],
        blocked_handlers: Collection[str] | None = None,
        stream_handlers: Mapping[str, Callable[..., Any]] | None = None,
        connection_limit: int = 512,
        deserialize: bool = True,
        serializers: Any = None,
        deserializers: Any = None,
        connection_args: Any = None,
        timeout: Any = None,
        local_directory: Any = None,
        needs_workdir: bool = True,
    ) -> None:
        """Nothing happens until it is started.

        Args:
            handlers: operations, beside `identity`, `echo` and `connection_stream`.
            blocked_handlers: names that it refuses; None: the setting
                `distributed.<class>.blocked-handlers`.
            stream_handlers: what is done with messages after `connection_stream`.
            connection_limit, serializers, deserializers, connection_args, timeout: of `rpc`.
            deserialize: whether values that were marked to be serialised are read.
            local_directory: where it may leave files; on `sys.path` while it runs.
            needs_workdir: have a folder of its own there, which goes with it.
        """
        self._status = Status.created
        self.id = f"{type(self).__name__}-{uuid.uuid4()}"
        self.name: Any = None
        self.handlers: dict[str, Callable[..., Any]] = {
            "identity": self.identity,
            "echo": self.echo,
            STREAM: self.handle_stream,
            **handlers,
        }
        setting = f"distributed.{type(self).__name__.lower()}.blocked-handlers"
        if blocked_handlers is None:
            blocked_handlers = dask.config.get(setting, [])
        self.blocked_handlers = blocked_handlers
        self.stream_handlers: dict[str, Callable[..., Any]] = dict(stream_handlers or {})
        self.deserialize = deserialize
        self.rpc: Any = ConnectionPool(
            limit=connection_limit,
            deserialize=deserialize,
            serializers=serializers,
            deserializers=deserializers,
            connection_args=connection_args,
            timeout=timeout,
            server=self,
        )
        self.listeners: list[Any] = []
        self.counters: dict[str, Counted] = defaultdict(Counted)
        self.periodic_callbacks: dict[str, Any] = {}
        self.extensions: dict[str, Any] = {}
        self.death_timeout: float | None = None
        self.thread_id = 0
        self._asked_folder = None if local_directory is None else str(local_directory)
        self._needs_workdir = needs_workdir
        self.local_directory = self._asked_folder
        self._on_path = ""  # what we have put on sys.path
        self._made = ""  # the folder that is ours, and goes with us
        self._comms: dict[Any, str | None] = {}
        self._ongoing_background_tasks: set[asyncio.Task[Any]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended: asyncio.Event | None = None

    def __repr__(self) -> str:
        where = self._address() or "nowhere"
        return f"<{type(self).__name__} {where!r}, status: {self.status.name}>"

    # --- life --------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """What it is doing."""
        return self._status

    @status.setter
    def status(self, value: Status) -> None:
        """Raises NotAStatus (a TypeError): it is no `Status`."""
        if not isinstance(value, Status):
            raise NotAStatus(value)
        self._status = value

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *args: Any) -> None:
        await self.close()

    async def start(self) -> Self:
        """Start it, once; what a subclass has to do is in its `start_unsafe`.

        Raises:
            ServerFailed: it could not (a RuntimeError).
            TimeoutError: it took longer than `death_timeout`.
        """
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)
        return self

    async def _start(self) -> None:
        self.thread_id = threading.get_ident()
        self._status = Status.starting
        try:
            async with asyncio.timeout(self.death_timeout):
                await self.start_unsafe()
        except Exception as error:
            self._status = Status.failed
            await self._close("it could not start")
            if isinstance(error, TimeoutError):
                raise TimeoutError(
                    f"{type(self).__name__} start timed out after {self.death_timeout}s."
                ) from error
            raise ServerFailed(type(self).__name__) from error
        if self._status is Status.starting:
            self._status = Status.running
            self.start_periodic_callbacks()

    async def start_unsafe(self) -> Self:
        """What starting it is; for subclasses, which call this one as well."""
        self._enter_folder()
        await self.rpc.start()
        return self

    def start_periodic_callbacks(self) -> None:
        """Start those of `periodic_callbacks` (of tornado) that do not run."""
        for periodic in self.periodic_callbacks.values():
            if not periodic.is_running():
                periodic.start()

    def _enter_folder(self) -> None:
        """Have a folder, if one was asked for, and modules in it importable."""
        if self._asked_folder is None:
            return
        if self._needs_workdir:
            name = f"{type(self).__name__.lower()}-{uuid.uuid4().hex[:12]}"
            parent = Path(self._asked_folder)
            if parent.name != "dask-scratch-space":
                parent = parent / "dask-scratch-space"
            self.local_directory = self._made = make_scratch(str(parent / name))
        folder = str(self.local_directory)
        if folder not in sys.path:
            sys.path.insert(0, folder)
            self._on_path = folder

    def _leave_folder(self) -> None:
        if self._on_path in sys.path:
            sys.path.remove(self._on_path)
        if self._made:
            forget_path(self._made)
            remove_scratch(self._made)
        self._on_path = self._made = ""

    async def close(self, timeout: float | None = None, reason: str = "") -> None:
        """Listen no more, end all comms, and cancel operations that take longer than a second."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(reason))
        if asyncio.current_task() in self._ongoing_background_tasks:
            return  # the operation that closes it ends before it is closed
        await asyncio.shield(self._closing)

    async def _close(self, reason: str) -> None:
        if self._status is not Status.failed:
            self._status = Status.closing
        self.stop()
        stop_periodic(self.periodic_callbacks, self.id)
        await self.rpc.close()
        busy = [comm for comm, operation in self._comms.items() if operation is not None]
        for comm in [comm for comm, operation in self._comms.items() if operation is None]:
            comm.abort()
        ongoing = self._ongoing_background_tasks - {asyncio.current_task()}
        if busy and ongoing:
            await asyncio.wait(ongoing, timeout=GRACE_SECONDS)
        for task in ongoing:
            if not task.done():
                task.cancel()
        if ongoing:
            _, left = await asyncio.wait(ongoing, timeout=GRACE_SECONDS)
            if left:
                logger.warning("%s closes, and %d of its operations go on, though they were "
                               "cancelled", self.id, len(left))  # fmt: skip
        for comm in list(self._comms):
            comm.abort()
        self._leave_folder()
        if self._status is not Status.failed:
            self._status = Status.closed
        if self._ended is not None:
            self._ended.set()
        logger.debug("%s is closed: %s", self.id, reason)

    async def finished(self) -> None:
        """Wait until it has closed."""
        if self._ended is None:
            self._ended = asyncio.Event()
        if self._status in (Status.closed, Status.failed):
            return
        await self._ended.wait()

    def stop(self) -> None:
        """Listen no more; comms that are there stay."""
        for listener in self.listeners:
            listener.stop()
        if self._status is Status.running:
            self._status = Status.stopping

    # --- where it is -------------------------------------------------------------------------

    async def listen(
        self, port_or_addr: Any = None, allow_offload: bool = True, **kwargs: Any
    ) -> None:
        """Listen at one more address.

        Args:
            port_or_addr: a port, (host, port), or an address; None: the class's default.
            allow_offload: False: messages are read on the loop, however large.
            kwargs: for the listener.

        Raises:
            OSError: it is taken, or not ours.
        """
        where = (self.default_ip, self.default_port) if port_or_addr is None else port_or_addr
        if isinstance(where, int):
            where = (self.default_ip, where)
        if isinstance(where, tuple):
            host, port = where
            where = unparse_address("tcp", f"{unparse_host_port(host)}:{port}")
        listener = comms.listen(
            where,
            self.handle_comm,
            deserialize=self.deserialize,
            allow_offload=allow_offload,
            **kwargs,
        )
        await listener.start()
        self.listeners.append(listener)

    @property
    def listener(self) -> Any:
        """The first of its listeners; None: it has none."""
        return self.listeners[0] if self.listeners else None

    def _address(self) -> str:
        return str(self.listeners[0].contact_address) if self.listeners else ""

    @property
    def address(self) -> str:
        """Where it is reached.  Raises NotListening (a ValueError)."""
        if not self.listeners:
            raise NotListening(type(self).__name__)
        return self._address()

    address_safe = property(_address)
    """As `address`; empty if it listens nowhere."""

    @property
    def listen_address(self) -> str:
        """What it is bound to.  Raises NotListening (a ValueError)."""
        if not self.listeners:
            raise NotListening(type(self).__name__)
        return str(self.listeners[0].listen_address)

    @property
    def host(self) -> str:
        """The host of its address."""
        return get_address_host_port(self.address)[0]

    @property
    def port(self) -> int:
        """The port of its address."""
        return get_address_host_port(self.address)[1]

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it lives on."""
        return asyncio.get_running_loop()

    # --- counts ------------------------------------------------------------------------------

    @property
    def incoming_comms_open(self) -> int:
        """Comms that others have made."""
        return len(self._comms)

    @property
    def incoming_comms_active(self) -> int:
        """Those of them that an operation is under way on."""
        return sum(operation is not None for operation in self._comms.values())

    @property
    def outgoing_comms_open(self) -> int:
        """Comms of `rpc`."""
        return int(self.rpc.open)

    @property
    def outgoing_comms_active(self) -> int:
        """Those of them that are in use."""
        return int(self.rpc.active)

    def get_connection_counters(self) -> dict[str, int]:
        """All these by name."""
        names = (
            "incoming_comms_open",
            "incoming_comms_active",
            "outgoing_comms_open",
            "outgoing_comms_active",
        )
        return {name: getattr(self, name) for name in names}

    # --- what it answers to ------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        """What it is."""
        return {"type": type(self).__name__, "id": self.id}

    def echo(self, data: Any = None) -> Any:
        """What it is given."""
        return data

    async def upload_file(
        self, filename: str, data: bytes | str, load: bool = True
    ) -> dict[str, Any]:
        """Keep a file in its folder, and import it if it is a module or has some.

        Raises:
            NotAFileName: it has a path.
            BaseException: what its modules raise when they are imported; the file stays.
        """
        if self.local_directory is None:
            self.local_directory = self._made = make_scratch()
        content = data.encode() if isinstance(data, str) else data
        keep_file(self.local_directory, filename, content, load=load)
        return {"status": "OK", "nbytes": len(content)}

    async def handle_comm(self, comm: Any) -> None:
        """Answer what comes on a comm, until that ends."""
        task = asyncio.current_task()
        assert task is not None
        if self._closing is not None:
            comm.abort()
            return
        self._ongoing_background_tasks.add(task)
        try:
            await converse(
                self,
                type(self).__name__,
                comm,
                self._comms,
                lambda: self._closing is not None,
                self.counters["op"].add,
            )
        finally:
            self._ongoing_background_tasks.discard(task)

    async def handle_stream(self, comm: Any, extra: Mapping[str, Any] | None = None) -> None:
        """Hear what nobody waits for an answer of, until the comm ends."""
        await converse_in_stream(self, comm, extra)
