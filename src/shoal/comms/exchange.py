"""Values to and from workers: one connection to each, many requests on it at once.

Used by whoever needs results themselves: workers (inputs from their peers), clients (gather and
scatter), and the scheduler on behalf of clients that can't reach the workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shoal.comms.calls import PendingCalls
from shoal.comms.endpoints import connect
from shoal.comms.errors import CommClosedError
from shoal.comms.transport import Connection
from shoal.ids import Epoch, TaskId
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import FromWorkerToPeer
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import WORKER, Keyring
from shoal.protocol.looking import SendBytes
from shoal.protocol.messages import GetReplicas, PutReplicas, ReplicaHeader, Replicas

if TYPE_CHECKING:
    from typing_extensions import Buffer

SLOWEST_BYTES_PER_SECOND: Final = 1e6
"""A transfer that is slower than this on average is given up."""


class ReplicaExchange:
    """Fetches values from workers and puts values there.  Belongs to one event loop.

    Connections are made on first use and kept; a request that finds its worker unreachable fails
    with OSError, and the next one dials anew.
    """

    def __init__(
        self, keyring: Keyring, *, connect_seconds: float = 5.0, stall_seconds: float = 30.0
    ) -> None:
        """`connect_seconds`: deadline of one dial; `stall_seconds`: of an answer's first byte."""
        self._keyring = keyring
        self._connect_seconds = connect_seconds
        self._stall_seconds = stall_seconds
        self._decoder = Decoder(FromWorkerToPeer)
        self._peers: dict[str, _Peer] = {}
        self._dialling: dict[str, asyncio.Task[_Peer]] = {}
        self._closed = False

    async def get(
        self, address: str, tasks: Sequence[TaskId], epoch: Epoch, nbytes: int = 0
    ) -> tuple[Replicas, list[Any]]:
        """Ask the worker at `address` for these values.

        Args:
            epoch: in which the tasks have these numbers.
            nbytes: about how much that is, for the deadline.

        Returns:
            The answer, and the buffers of its replicas in order.  Over inproc a replica's header is
            empty, and its one buffer is the value itself.

        Raises:
            OSError: the worker can't be reached, or was lost meanwhile, or is far too slow.
        """
        peer = await self._peer(address)
        request, reply = peer.calls.open(f"{len(tasks)} values", self._deadline(nbytes))
        try:
            peer.connection.send([GetReplicas(request, list(tasks), epoch)])
            replicas = await reply
            return replicas, peer.buffers.get(request, [])
        finally:
            reply.cancel()  # nothing happens to one that has its answer
            peer.buffers.pop(request, None)

    async def put(
        self,
        address: str,
        replicas: Sequence[ReplicaHeader],
        buffers: Sequence[Buffer],
        epoch: Epoch,
    ) -> None:
        """Have the worker at `address` keep these values, whose large buffers are `buffers`.

        Raises:
            OSError: as for `get`.
            Exception: what the worker failed with, e.g. a value that does not unpickle there.
        """
        peer = await self._peer(address)
        nbytes = sum(replica.nbytes for replica in replicas)
        request, reply = peer.calls.open(f"keeping {len(replicas)} values", self._deadline(nbytes))
        try:
            peer.connection.send_with_buffers(PutReplicas(request, list(replicas), epoch), buffers)
            answer = await reply
        finally:
            reply.cancel()
        if isinstance(answer, Refusal):
            raise from_failure(answer.failure)

    async def get_bytes(self, address: str, nbytes: int) -> int:
        """Have the worker at `address` send so many bytes, as it sends results; how many came.

        Raises:
            OSError: as for `get`.
        """
        peer = await self._peer(address)
        request, reply = peer.calls.open("bytes", self._deadline(nbytes))
        try:
            peer.connection.send([SendBytes(request, nbytes)])
            await reply
            return sum(memoryview(buffer).nbytes for buffer in peer.buffers.get(request, []))
        finally:
            reply.cancel()
            peer.buffers.pop(request, None)

    def forget(self, address: str) -> None:
        """Drop the connection to a worker that has gone; requests under way fail."""
        peer = self._peers.pop(address, None)
        if peer is not None:
            peer.connection.abort()

    async def close(self) -> None:
        """Drop every connection; requests under way fail, later ones too."""
        self._closed = True
        for dialling in list(self._dialling.values()):
            dialling.cancel()
        peers = list(self._peers.values())
        self._peers.clear()
        for peer in peers:
            peer.connection.close()
        for peer in peers:
            await peer.connection.wait_closed()

    def _deadline(self, nbytes: int) -> float:
        return self._stall_seconds + nbytes / SLOWEST_BYTES_PER_SECOND

    async def _peer(self, address: str) -> _Peer:
        """The connection to `address`, dialled if there is none; dialled once for all who ask."""
        peer = self._peers.get(address)
        if peer is not None and not peer.connection.closed:
            return peer
        if self._closed:
            raise CommClosedError.lost(address, "this end is closed")
        dialling = self._dialling.get(address)
        if dialling is None:
            dialling = asyncio.create_task(self._dial(address), name=f"dial {address}")
            self._dialling[address] = dialling
            dialling.add_done_callback(lambda task: self._dialled(address, task))
        return await asyncio.shield(dialling)

    def _dialled(self, address: str, dialling: asyncio.Task[_Peer]) -> None:
        """The attempt is over; a failure is for those who wait, and for nobody if none is left."""
        self._dialling.pop(address, None)
        if not dialling.cancelled():
            dialling.exception()

    async def _dial(self, address: str) -> _Peer:
        connection = await connect(
            address, self._keyring, WORKER, self._decoder, timeout_seconds=self._connect_seconds
        )
        peer = self._peers[address] = _Peer(connection, lambda: self._gone(address, peer))
        return peer

    def _gone(self, address: str, peer: _Peer) -> None:
        """A connection has ended: the next request dials anew."""
        if self._peers.get(address) is peer:
            del self._peers[address]


class _Peer:
    """One worker, the requests under way there, and buffers that came before their reader woke."""

    __slots__ = ("_on_gone", "buffers", "calls", "connection")

    def __init__(self, connection: Connection, on_gone: Callable[[], None]) -> None:
        self._on_gone = on_gone
        self.connection = connection
        self.calls = PendingCalls(connection.peer_address)
        self.buffers: dict[int, list[Any]] = {}
        connection.start(self._on_messages, self._on_closed)

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        for message in messages:
            if isinstance(message, Replicas | Answer | Refusal):
                if buffers:  # then the frame has this message only
                    self.buffers[message.request] = buffers
                if not self.calls.resolve(message):
                    self.buffers.pop(message.request, None)

    def _on_closed(self, reason: Exception | None) -> None:
        self.calls.close(reason)
        self._on_gone()
