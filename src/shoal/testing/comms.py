"""Comms that a test can look into, hold up, or break."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from shoal.compat.comm.core import Comm
from shoal.compat.servers.pool import ConnectionPool
from shoal.errors import UnsupportedOption
from shoal.worker.shell.service import Worker


class BrokenComm(Comm):
    """Fails at whatever is read or written."""

    local_address = peer_address = ""

    async def read(self, deserializers: Any = None) -> NoReturn:
        """Raises OSError."""
        raise OSError("this comm is broken")

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = None) -> NoReturn:
        """Raises OSError."""
        raise OSError("this comm is broken")

    async def close(self) -> None:
        """Nothing happens."""

    def abort(self) -> None:
        """Nothing happens."""

    def closed(self) -> bool:
        """Never told."""
        return False


class LockedComm(Comm):
    """Another comm, whose messages a test sees, and holds up."""

    def __init__(
        self,
        comm: Any,
        read_event: asyncio.Event | None,
        read_queue: asyncio.Queue[Any] | None,
        write_event: asyncio.Event | None,
        write_queue: asyncio.Queue[Any] | None,
    ) -> None:
        """Events are waited for before a message is handed on; queues get (address, message)."""
        super().__init__(comm.deserialize)
        self.comm = comm
        self.read_event, self.read_queue = read_event, read_queue
        self.write_event, self.write_queue = write_event, write_queue

    async def read(self, deserializers: Any = None) -> Any:
        """See `Comm.read`."""
        message = await self.comm.read(deserializers=deserializers)
        if self.read_queue is not None:
            await self.read_queue.put((self.peer_address, message))
        if self.read_event is not None:
            await self.read_event.wait()
        return message

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = None) -> Any:
        """See `Comm.write`."""
        if self.write_queue is not None:
            await self.write_queue.put((self.peer_address, msg))
        if self.write_event is not None:
            await self.write_event.wait()
        return await self.comm.write(msg, serializers=serializers, on_error=on_error)

    async def close(self) -> None:
        """See `Comm.close`."""
        await self.comm.close()

    def abort(self) -> None:
        """See `Comm.abort`."""
        self.comm.abort()

    def closed(self) -> bool:
        """See `Comm.closed`."""
        return bool(self.comm.closed())

    @property
    def local_address(self) -> str:
        """See `Comm.local_address`."""
        return str(self.comm.local_address)

    @property
    def peer_address(self) -> str:
        """See `Comm.peer_address`."""
        return str(self.comm.peer_address)


class LockedCommPool(ConnectionPool):
    """Another pool, whose comms are locked ones."""

    def __init__(
        self,
        pool: ConnectionPool,
        read_event: asyncio.Event | None = None,
        read_queue: asyncio.Queue[Any] | None = None,
        write_event: asyncio.Event | None = None,
        write_queue: asyncio.Queue[Any] | None = None,
    ) -> None:
        super().__init__(limit=pool.limit, deserialize=pool.deserialize, server=pool.server)
        self.pool = pool
        self._holds = (read_event, read_queue, write_event, write_queue)

    async def connect(self, addr: str, timeout: Any = None) -> Any:
        """See `ConnectionPool.connect`."""
        return LockedComm(await self.pool.connect(addr, timeout), *self._holds)

    def reuse(self, addr: str, comm: Any) -> None:
        """See `ConnectionPool.reuse`."""
        self.pool.reuse(addr, comm.comm)

    def remove(self, addr: str, *, reason: str = "Address removed.") -> None:
        """See `ConnectionPool.remove`."""
        self.pool.remove(addr, reason=reason)

    async def close(self) -> None:
        """See `ConnectionPool.close`."""
        await self.pool.close()


@contextmanager
def freeze_batched_send(bsend: Any) -> Iterator[LockedComm]:
    """Hold up what a `BatchedSend` sends, until its comm's `write_event` is set, or to the end."""
    held = bsend.comm
    locked = LockedComm(held, None, None, asyncio.Event(), asyncio.Queue())
    bsend.comm = locked
    try:
        yield locked
    finally:
        assert locked.write_event is not None
        locked.write_event.set()
        bsend.comm = held


class BarrierGetData(Worker):
    """Gives results by name once so many have asked for them: `barrier_count`."""

    def __init__(self, *args: Any, barrier_count: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.barrier_count = barrier_count
        self._all_have_asked = asyncio.Event()

    async def get_data(
        self, comm: Any, keys: Any, who: str | None = None, serializers: Any = None
    ) -> dict[str, Any]:
        """See `Worker.get_data`."""
        self.barrier_count -= 1
        if self.barrier_count > 0:
            await self._all_have_asked.wait()
        self._all_have_asked.set()
        return await super().get_data(comm, keys, who, serializers)


async def wait_for_stimulus(
    type_: Any, dask_worker: Any, *, interval: float = 0.01, **matches: Any
) -> NoReturn:
    """Raises UnsupportedOption: a worker here has other events than upstream's."""
    raise UnsupportedOption(
        "wait_for_stimulus()",
        "Wait for what it brings about: wait_for_state(key, state, worker).",
    )
