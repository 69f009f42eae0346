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
from shoal.comms.compressing import accepted_compressions, is_on_another_machine
from shoal.comms.endpoints import connect
from shoal.comms.errors import CommClosedError, ConnectError, ProtocolError
from shoal.comms.patience import Patience
from shoal.comms.transport import Connection
from shoal.ids import Epoch, TaskId
from shoal.protocol.actors import ActorReply
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import FromWorkerToPeer
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import WORKER, Keyring
from shoal.protocol.looking import SendBytes
from shoal.protocol.messages import (
    GetReplicas,
    Message,
    PutReplicas,
    ReplicaHeader,
    Replicas,
)
from shoal.protocol.shuffles import ShardsFetched

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from shoal.protocol.compression import Mark

BUSY_SECONDS: Final = 30.0
"""How long a worker may be busy for whoever has nobody else to ask, and for values that are put."""

SLOWEST_BYTES_PER_SECOND: Final = 1e6
"""Values that a peer takes more slowly than this on average are not put there."""

PREPARED_BYTES_PER_SECOND: Final = 100e6
"""So fast are values pickled, and read from disk, or faster: before that, no byte of them comes."""

_REPLIES: Final = (Replicas, Answer, Refusal, ActorReply, ShardsFetched)

RETRY_RATIO: Final = 10.0
"""What can't be reached, and has another way, is tried again after so many times what that took."""


class ReplicaExchange:
    """Fetches values from workers and puts values there.  Belongs to one event loop.

    Connections are made on first use and kept; a request that finds its worker unreachable fails
    with OSError, and the next one dials anew.
    """

    def __init__(
        self,
        keyring: Keyring,
        *,
        connect_seconds: float = 5.0,
        stall_seconds: float = 10.0,
        is_far: Callable[[Connection], bool] = is_on_another_machine,
    ) -> None:
        """`connect_seconds`: of one dial, at most; `stall_seconds`: without a byte of an answer.

        `is_far`: whether what comes over a connection may come compressed, if that is set.

        Raises:
            SettingError: results are to be compressed by what is not installed.
        """
        self._accepts = accepted_compressions()
        self._is_far = is_far
        self._keyring = keyring
        self._connect_seconds = min(connect_seconds, stall_seconds)  # it says nothing meanwhile
        self._stall_seconds = stall_seconds
        self._decoder = Decoder(FromWorkerToPeer)
        self._peers: dict[str, _Peer] = {}
        self._dialling: dict[str, asyncio.Task[_Peer]] = {}
        self._lines: dict[str, _Line] = {}  # by worker
        self._closed = False

    async def get(
        self, address: str, tasks: Sequence[TaskId], epoch: Epoch, nbytes: int = 0
    ) -> tuple[Replicas, list[Any]]:
        """Ask the worker at `address` for these values.

        Args:
            epoch: in which the tasks have these numbers.
            nbytes: about how much that is, which takes a while to make ready.

        Returns:
            The answer, and the buffers of its replicas in order.  Over inproc a replica's header is
            empty, and its one buffer is the value itself.

        Raises:
            OSError: the worker can't be reached, or was lost meanwhile, or nothing comes from it.
        """
        peer = await self._peer(address)
        what = f"{len(tasks)} values"
        request, reply = peer.calls.open(what)
        patience = Patience(
            peer.connection,
            peer.calls,
            request,
            what,
            first_seconds=self._stall_seconds + nbytes / PREPARED_BYTES_PER_SECOND,
            seconds=self._stall_seconds,
        )
        try:
            peer.connection.send([GetReplicas(request, list(tasks), epoch, peer.accepts)])
            replicas = await reply
            buffers = peer.buffers.get(request, [])
            if replicas.marks:
                buffers = await self._restored(address, buffers, replicas.marks)
            return replicas, buffers
        finally:
            patience.end()
            reply.cancel()  # nothing happens to one that has its answer
            peer.buffers.pop(request, None)

    async def _restored(self, address: str, buffers: list[Any], marks: list[Mark]) -> list[Any]:
        """Buffers as they were before they were compressed, by a thread.

        Raises:
            CommClosedError: they make no sense; nothing that comes that way is believed any more.
        """
        from shoal.protocol.compression import restore

        try:
            return await asyncio.to_thread(restore, buffers, marks)
        except ProtocolError as error:
            self.forget(address)
            raise CommClosedError.lost(address, str(error)) from error

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

    async def ask(
        self,
        address: str,
        make: Callable[[int], Message],
        buffers: Sequence[Buffer] = (),
        said: Callable[[], object] | None = None,
        *,
        has_another_way: bool = False,
    ) -> tuple[Any, list[Any]]:
        """Ask the worker at `address` something that may take as long as it likes.

        Requests to one worker leave in the order in which this was called, and fail in it.

        Args:
            make: the message, given its number.
            buffers: go with it, and must stay unchanged until they have left.
            said: called once the message was handed to a connection: it may have been heard.
            has_another_way: a worker that could not be reached lately, which took a while to
                find out, is not tried again so soon.

        Returns:
            What answers it, a Refusal perhaps, and the buffers of that.

        Raises:
            OSError: the worker can't be reached, or was lost meanwhile.
        """
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = _Line()
        nfailures = line.nfailures
        async with line.lock:  # whoever comes while a connection is made must not overtake
            if line.nfailures != nfailures or (has_another_way and line.is_given_up):
                raise ConnectError(line.why)
            peer = await self._peer_in(line, address)
            request, reply = peer.calls.open("an answer", None)
            try:
                message = make(request)
                if buffers:
                    peer.connection.send_with_buffers(message, buffers)
                else:
                    peer.connection.send([message])
            except BaseException:
                reply.cancel()
                raise
        del message, buffers  # an answer may take long, and they are large
        if said is not None:
            said()
        try:
            answer = await reply
        finally:
            reply.cancel()
            brought = peer.buffers.pop(request, [])
        return answer, brought

    async def _peer_in(self, line: _Line, address: str) -> _Peer:
        """As `_peer`, for whoever is first in line: a failure is that of all who wait there."""
        started_at = asyncio.get_running_loop().time()
        try:
            return await self._peer(address)
        except OSError as error:
            line.fail(started_at, str(error))
            raise

    async def is_refused(self, address: str, timeout_seconds: float) -> bool:
        """Whether nobody listens at `address`, so that whoever did has died.

        False if somebody does, and if that can't be found out in so much time.
        """
        try:
            connection = await connect(
                address, self._keyring, WORKER, self._decoder, timeout_seconds=timeout_seconds
            )
        except OSError as error:
            return isinstance(error.__cause__, ConnectionRefusedError)
        connection.abort()
        return False

    def forget(self, address: str, why: str = "") -> None:
        """Drop the connection to a worker that has gone; requests under way fail.

        `why`: what has become of the worker, as a clause, if that is known.
        """
        peer = self._peers.pop(address, None)
        if peer is not None:
            if why:
                peer.calls.close(CommClosedError.lost(address, why))
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
        return max(self._stall_seconds, BUSY_SECONDS) + nbytes / SLOWEST_BYTES_PER_SECOND

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
        if self._accepts and self._is_far(connection):
            peer.accepts = self._accepts
        return peer

    def _gone(self, address: str, peer: _Peer) -> None:
        """A connection has ended: the next request dials anew."""
        if self._peers.get(address) is peer:
            del self._peers[address]
        line = self._lines.get(address)
        if line is not None and not line.lock.locked():
            del self._lines[address]


class _Line:
    """Those that ask one worker, in their order; and when it could not be reached."""

    __slots__ = ("lock", "nfailures", "retry_at", "why")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.nfailures = 0  # of attempts to reach it
        self.retry_at = 0.0  # seconds of the loop's clock
        self.why = ""

    def fail(self, started_at: float, why: str) -> None:
        """An attempt that was begun then has failed."""
        now = asyncio.get_running_loop().time()
        self.nfailures += 1
        self.retry_at = now + RETRY_RATIO * (now - started_at)
        self.why = why

    @property
    def is_given_up(self) -> bool:
        """Whether it could not be reached, and it is too early to try again."""
        return asyncio.get_running_loop().time() < self.retry_at


class _Peer:
    """One worker, the requests under way there, and buffers that came before their reader woke."""

    __slots__ = ("_on_gone", "accepts", "buffers", "calls", "connection")

    def __init__(self, connection: Connection, on_gone: Callable[[], None]) -> None:
        self._on_gone = on_gone
        self.connection = connection
        self.calls = PendingCalls(connection.peer_address)
        self.buffers: dict[int, list[Any]] = {}
        self.accepts: list[str] = []  # ways in which it may compress
        connection.start(self._on_messages, self._on_closed)

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        for message in messages:
            if isinstance(message, _REPLIES):
                if buffers:  # then the frame has this message only
                    self.buffers[message.request] = buffers
                if not self.calls.resolve(message):
                    self.buffers.pop(message.request, None)

    def _on_closed(self, reason: Exception | None) -> None:
        self.calls.close(reason)
        self._on_gone()
