"""Shards for other workers: read by threads that may wait for a disk, so much at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shoal.comms import Connection, FrameTooLarge
from shoal.comms.exchange import SLOWEST_BYTES_PER_SECOND
from shoal.protocol.answers import Refusal
from shoal.protocol.exceptions import to_failure
from shoal.protocol.shuffles import FetchShards, ShardsFetched
from shoal.storage.waiting_threads import WaitingThreads

if TYPE_CHECKING:
    from shoal.shuffle.counters import ShuffleCounters
    from shoal.shuffle.kept import KeptShard
    from shoal.worker.shell.held_shards import HeldShards

NREADERS: Final = 2
"""At once, for peers; tasks read what is here in their own threads."""

STALL_SECONDS: Final = 30.0
"""A disk that gives nothing for so long, beside the time for the bytes, hangs; and whoever takes
nothing for so long has given up."""


class ShardServer:
    """Answers FetchShards, whatever else the worker does.  On the loop."""

    def __init__(
        self, worker: Any, held: HeldShards, counters: ShuffleCounters, nbytes_max: int
    ) -> None:
        """`nbytes_max`: read, and not sent."""
        self._worker = worker
        self._held = held
        self._counters = counters
        self._sending = _Room(nbytes_max)
        self._readers: WaitingThreads | None = None

    async def on_fetch_shards(self, connection: Connection, call: FetchShards) -> None:
        """Answer a peer; waits while much is read and not sent."""
        address = self._worker.address
        shards: Sequence[KeptShard | None] = [None] * len(call.transfers)
        if not self._worker.feed.is_in(call.epoch):
            _reply(connection, call, shards, address)
            return
        found = [self._held.find(task) for task in call.transfers]
        nbytes = sum([0 if kept is None else kept.nbytes_of(call.output) for kept in found])
        seconds = STALL_SECONDS + nbytes / SLOWEST_BYTES_PER_SECOND
        async with self._sending.of(nbytes):
            if not any(kept is not None and kept.is_on_disk for kept in found):
                shards = self._read_all(call)
            else:
                try:
                    shards = await self._reading().do(partial(self._read_all, call), seconds)
                except TimeoutError:
                    pass  # the disk hangs: nothing is to be had from it
            if connection.closed:
                return
            self._counters.add(served_bytes=_reply(connection, call, shards, address))
            del shards
            try:
                async with asyncio.timeout(seconds):
                    await connection.drain()
            except TimeoutError:
                connection.abort()  # it has given up on us by now; others wait for the room

    def _read_all(self, call: FetchShards) -> list[KeptShard | None]:
        asked = zip(call.transfers, call.digests, strict=True)
        return [self._held.read(task, call.output, digest) for task, digest in asked]

    def _reading(self) -> WaitingThreads:
        if self._readers is None:
            self._readers = WaitingThreads(f"shoal-worker-{self._worker.name}-shards", NREADERS)
        return self._readers

    def close(self) -> None:
        """Read nothing more."""
        if self._readers is not None:
            self._readers.close()


class _Room:
    """How much is read and not sent.  Belongs to one loop."""

    def __init__(self, nbytes_max: int) -> None:
        self.nbytes_max = nbytes_max
        self._nbytes = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def of(self, nbytes: int) -> AsyncIterator[None]:
        """So many bytes, once there is room for them, which for something there always is."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: not self._nbytes or self._nbytes + nbytes <= self.nbytes_max
            )
            self._nbytes += nbytes
        try:
            yield
        finally:
            self._nbytes -= nbytes
            async with self._changed:
                self._changed.notify_all()


def _reply(
    connection: Connection, call: FetchShards, shards: Sequence[KeptShard | None], address: str
) -> int:
    """Say what was found; returns how many bytes."""
    lengths = [0 if shard is None else memoryview(shard.content).nbytes for shard in shards]
    message = ShardsFetched(
        call.request,
        [0 if shard is None else shard.nrows for shard in shards],
        lengths,
        [task for task, shard in zip(call.transfers, shards, strict=True) if shard is None],
    )
    buffers = [shard.content for shard in shards if shard is not None and len(shard.content)]
    try:
        if buffers:
            connection.send_with_buffers(message, buffers)
        else:
            connection.send([message])
    except FrameTooLarge as error:
        connection.send([Refusal(call.request, to_failure(error, worker=address))])
    return sum(lengths)
