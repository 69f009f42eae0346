"""Comms that are kept for the next call, so many at most: `ConnectionPool`."""

from __future__ import annotations

import asyncio
import collections
import logging
from collections.abc import Generator
from typing import Any, Final, Self

from shoal.comms.errors import CommClosedError
from shoal.compat.addresses import unparse_host_port
from shoal.compat.comm import core as comms
from shoal.compat.comm.keys import keys_of_caller
from shoal.compat.raising import coerce_to_address
from shoal.compat.servers.calling import PooledRPCCall
from shoal.compat.servers.errors import PoolClosed
from shoal.observe.status import Status
from shoal.protocol.handshake import Keyring

logger = logging.getLogger("shoal.core")

CANCEL_SECONDS: Final = 5.0
"""How long a pool that is closed waits for attempts to connect to end."""


class ConnectionPool:
    """Comms by address, at most `limit` at once: `await pool(address).ping()`.

    Await it to start it, and close it to end all comms.
    """

    def __init__(
        self,
        limit: int = 512,
        deserialize: bool = True,
        serializers: Any = None,
        allow_offload: bool = True,
        deserializers: Any = None,
        connection_args: Any = None,
        timeout: Any = None,
        server: Any = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            limit: comms that may be open at once, in use or not; whoever wants another one waits.
            deserialize, timeout: see `comm.connect`.
            serializers, deserializers: see `send_recv`.
            allow_offload: False: messages are written and read on the loop, however large.
            connection_args: for the connector.
            server: whose pool it is.
        """
        self.limit = limit
        self.available: dict[str, set[Any]] = collections.defaultdict(set)
        self.occupied: dict[str, set[Any]] = collections.defaultdict(set)
        self.deserialize, self.allow_offload = deserialize, allow_offload
        self.serializers = serializers
        self.deserializers = serializers if deserializers is None else deserializers
        self.connection_args = connection_args or {}
        self.timeout = timeout
        self.server = server
        self.keyring: Keyring | None = None
        """What proves us where nobody has said for an address what does."""
        self.status = Status.init
        self._connecting: dict[str, set[asyncio.Task[Any]]] = collections.defaultdict(set)
        self._reasons: dict[asyncio.Task[Any], str] = {}  # why an attempt was given up by us
        self._connecting_close_timeout = CANCEL_SECONDS
        self._room = asyncio.Semaphore(limit)

    def __repr__(self) -> str:
        return (
            f"<ConnectionPool: open={self.open}, active={self.active}, "
            f"connecting={self._connecting_count}>"
        )

    def __await__(self) -> Generator[Any, None, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *args: Any) -> None:
        await self.close()

    async def start(self) -> Self:
        """Give comms from now on."""
        if self.status is Status.init:
            self.status = Status.running
        return self

    # --- counts ------------------------------------------------------------------------------

    @property
    def active(self) -> int:
        """Comms in use."""
        return sum(map(len, self.occupied.values()))

    @property
    def open(self) -> int:
        """Comms in use or not."""
        return self.active + sum(map(len, self.available.values()))

    @property
    def _connecting_count(self) -> int:
        return sum(map(len, self._connecting.values()))

    _n_connecting = _connecting_count

    @property
    def num_connecting(self) -> int:
        """Attempts to connect."""
        return self._connecting_count

    def _validate(self) -> None:
        """Raise AssertionError if the counts contradict each other."""
        waiting = self.limit - self.open - self._connecting_count
        assert self._room._value == waiting, (self._room._value, waiting)

    # --- calls -------------------------------------------------------------------------------

    def __call__(
        self, addr: Any = None, ip: str | None = None, port: int | None = None
    ) -> PooledRPCCall:
        """Operations of the server at `addr`, or at `ip` and `port`."""
        if addr is None:
            assert ip is not None
            addr = unparse_host_port(ip, port)
        where = coerce_to_address(addr)
        return PooledRPCCall(
            where, self, serializers=self.serializers, deserializers=self.deserializers
        )

    async def connect(self, addr: str, timeout: Any = None) -> Any:
        """A comm to `addr`, to be given back by `reuse`.

        Raises:
            PoolClosed: it was closed, or not started.
            CommClosedError: it was closed, or `addr` removed, meanwhile.
            OSError: nobody answers there.
        """
        if self.status is not Status.running:
            raise PoolClosed(self.status.value)
        comm = self._take_free(addr)
        if comm is not None:
            self.occupied[addr].add(comm)
            return comm
        if self._room.locked():
            self.collect()
        attempt = asyncio.create_task(self._connect(addr, timeout))
        self._connecting[addr].add(attempt)
        try:
            await asyncio.wait([attempt])
        except asyncio.CancelledError:  # of whoever has asked
            too_late = not attempt.cancel()
            if too_late and not attempt.cancelled() and attempt.exception() is None:
                self.reuse(addr, attempt.result())
            raise
        finally:
            self._forget(addr, attempt)
        reason = self._reasons.pop(attempt, None)
        if reason is not None:
            if not attempt.cancelled() and attempt.exception() is None:  # it was too late
                self._end(addr, attempt.result())
            raise CommClosedError(reason)
        return attempt.result()

    def _take_free(self, addr: str) -> Any:
        """A comm to `addr` that is not in use; None if there is none."""
        free = self.available.pop(addr, None)
        while free:
            comm = free.pop()
            if not comm.closed():
                if free:
                    self.available[addr] = free
                return comm
            self._room.release()
        return None

    async def _connect(self, addr: str, timeout: Any) -> Any:
        await self._room.acquire()
        token = keys_of_caller.set(self.keyring)
        try:
            comm = await comms.connect(
                addr,
                timeout=timeout or self.timeout,
                deserialize=self.deserialize,
                **self.connection_args,
            )
        except BaseException:
            self._room.release()
            raise
        finally:
            keys_of_caller.reset(token)
        comm.name = "ConnectionPool"
        comm.allow_offload = self.allow_offload
        self.occupied[addr].add(comm)
        return comm

    def _forget(self, addr: str, attempt: asyncio.Task[Any]) -> None:
        attempts = self._connecting.get(addr)
        if attempts is not None:
            attempts.discard(attempt)
            if not attempts:
                del self._connecting[addr]

    def _end(self, addr: str, comm: Any) -> None:
        """A comm that nobody wants."""
        if comm in self.occupied.get(addr, ()):
            self.occupied[addr].discard(comm)
            self._room.release()
        comm.abort()

    def reuse(self, addr: str, comm: Any) -> None:
        """A comm is free again; nothing happens if it was removed meanwhile."""
        if comm not in self.occupied.get(addr, ()):
            return
        self.occupied[addr].discard(comm)
        if not self.occupied[addr]:
            del self.occupied[addr]
        if comm.closed() or self.status is not Status.running:
            comm.abort()
            self._room.release()
            return
        self.available[addr].add(comm)
        if self._room.locked() and self._connecting_count:
            self.collect()  # somebody waits, perhaps for another address

    def collect(self) -> None:
        """End the comms that are not in use."""
        ending = [comm for free in self.available.values() for comm in free]
        self.available.clear()
        for comm in ending:
            comm.abort()
            self._room.release()

    def remove(self, addr: str, *, reason: str = "Address removed.") -> None:
        """End all comms to an address, and attempts to connect to it."""
        for comms_there in (self.available, self.occupied):
            for comm in comms_there.pop(addr, ()):
                comm.abort()
                self._room.release()
        self._give_up(addr, reason)

    def _give_up(self, addr: str, reason: str) -> None:
        for attempt in list(self._connecting.get(addr, ())):
            self._reasons[attempt] = reason
            attempt.cancel()

    async def close(self) -> None:
        """End all comms, and attempts to connect; safe to call again."""
        self.status = Status.closed
        attempts = [attempt for each in self._connecting.values() for attempt in each]
        for addr in list(self._connecting):
            self._give_up(addr, "ConnectionPool closing.")
        ending = [
            comm
            for comms_there in (self.available, self.occupied)
            for each in comms_there.values()
            for comm in each
        ]
        self.available.clear()
        self.occupied.clear()
        for _ in ending:
            self._room.release()
        await asyncio.gather(*(comm.close() for comm in ending), return_exceptions=True)
        if attempts:
            _, left = await asyncio.wait(attempts, timeout=self._connecting_close_timeout)
            if left:
                logger.warning("Pending connections refuse to cancel. %d connections", len(left))


def pool_with(keyring: Keyring, server: Any = None) -> ConnectionPool:
    """A pool of a client or a service of ours, started, that proves itself by these keys."""
    pool = ConnectionPool(server=server)
    pool.keyring = keyring
    pool.status = Status.running
    return pool
