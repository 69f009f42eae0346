"""What peers and clients may ask of a worker: its results, to keep values of theirs, and more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

from shoal.comms import CommClosedError, Connection, FrameTooLarge
from shoal.comms.exchange import SLOWEST_BYTES_PER_SECOND
from shoal.ids import Epoch, TaskId
from shoal.protocol.actors import CallActor, ReadActor
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.looking import SendBytes
from shoal.protocol.messages import GetReplicas, Message, PutReplicas, Replicas
from shoal.protocol.shuffles import FetchShards
from shoal.shuffle.kept import KeptShards
from shoal.storage.spilled import Spilled
from shoal.worker.shell.errors import WrongEpoch
from shoal.worker.shell.operations import Say
from shoal.worker.shell.replicas import (
    LARGE_NBYTES,
    Held,
    Packed,
    compressed,
    nbytes_received,
    pack,
    unpack,
)

MEASURING_BYTES_MAX: Final = 50 * 1024 * 1024
"""Of one answer to somebody who measures."""

STALL_SECONDS: Final = 30.0
"""As long as the one who asked waits for the first byte of an answer."""


class ReplicaServer:
    """Answers GetReplicas and PutReplicas on every connection that the listener accepts.

    What else is said there is one of the worker's operations.
    """

    def __init__(
        self,
        address: str,
        executor: Executor,
        *,
        is_in: Callable[[Epoch], bool],
        look_up: Callable[[TaskId], Held | None],
        bring: Callable[..., Awaitable[list[Held]]],
        put: Callable[[Sequence[Held]], None],
        begin: Callable[[Say, Any], None],
        on_actor_call: Callable[[Connection, Any, list[Any]], None],
        send_shards: Callable[[Connection, FetchShards], Coroutine[Any, Any, None]],
        transfers_max: int,
        stall_seconds: float = STALL_SECONDS,
        families: Sequence[str] | None = None,
    ) -> None:
        """`is_in`: whether numbers of that epoch are valid here, now; `look_up`: the value that a
        peer may have, or what was written of it, which `bring` reads, see `Spilling`; `put`: keep
        these, and tell; `begin`: answer any other call, but for those to actors, and to shuffles.

        `transfers_max`: large answers prepared and sent at once; others wait, in their order.
        `stall_seconds`: how long a peer may take no byte of one, beside the time for its bytes.
        `families`: of serialisation by which values are sent; None: the usual ones.
        """
        self._address = address
        self._families = families
        self._stall_seconds = stall_seconds
        self._executor = executor
        self._is_in = is_in
        self._look_up = look_up
        self._bring = bring
        self._put = put
        self._begin = begin
        self._on_actor_call = on_actor_call
        self._send_shards = send_shards
        self.transfers_max = transfers_max
        self._room = asyncio.Semaphore(transfers_max)
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def on_connection(self, connection: Connection) -> None:
        """A peer, or a client, was let in."""
        self._connections.add(connection)
        connection.start(
            partial(self._on_messages, connection), partial(self._on_closed, connection)
        )

    def _on_closed(self, connection: Connection, reason: Exception | None) -> None:
        self._connections.discard(connection)

    def _on_messages(self, connection: Connection, messages: list[Any], buffers: list[Any]) -> None:
        for message in messages:
            if isinstance(message, GetReplicas):
                self.on_get_replicas(connection, message)
            elif isinstance(message, PutReplicas):
                self.on_put_replicas(connection, message, buffers)
            elif isinstance(message, FetchShards):
                self._spawn(connection, self._send_shards(connection, message))
            elif isinstance(message, SendBytes):
                self.on_send_bytes(connection, message)
            elif isinstance(message, CallActor | ReadActor):
                self._on_actor_call(connection, message, buffers)
            else:
                self._begin(partial(_say, connection), message)

    def on_get_replicas(self, connection: Connection, message: GetReplicas) -> None:
        """Send what is asked for, at once if it is small."""
        values: list[Held] = []
        missing: list[TaskId] = []
        are_on_disk = False
        must_wait = False
        is_ours = self._is_in(message.epoch)
        for task in message.tasks:
            held = self._look_up(task) if is_ours else None
            if held is None:
                missing.append(task)
            else:
                if type(held.value) is KeptShards:  # in their file they take no memory; here, more
                    must_wait = must_wait or held.value.is_on_disk
                    held = held._replace(nbytes=held.value.index.nbytes)
                values.append(held)
                are_on_disk = are_on_disk or type(held.value) is Spilled
        if are_on_disk:
            self._spawn(connection, self._send_from_disk(connection, message, values, missing))
        elif connection.scheme == "inproc":
            packed = pack(values, by_reference=True, address=self._address)
            _reply(connection, message, packed, missing, self._address)
        elif not must_wait and sum([held.nbytes for held in values]) < LARGE_NBYTES:
            packed = self._pack(values, connection.peer_address)
            _reply(connection, message, packed, missing, self._address)
        else:
            self._spawn(connection, self._send_large(connection, message, values, missing))

    def _pack(self, values: list[Held], peer: str) -> Packed:
        return pack(
            values, by_reference=False, address=self._address, peer=peer, families=self._families
        )

    @property
    def is_sending(self) -> bool:
        """Whether large values are being sent, which stay in memory meanwhile, kept or not."""
        return bool(self._tasks)

    async def _send_from_disk(
        self,
        connection: Connection,
        message: GetReplicas,
        values: list[Held],
        missing: list[TaskId],
    ) -> None:
        """Some are on disk: read them, as they are sent if that is possible."""
        is_handed = connection.scheme == "inproc"
        async with self._room:
            as_values = is_handed or self._families is not None
            brought = await self._bring(values, as_values=as_values)
            found = {held.task for held in brought}
            missing += [held.task for held in values if held.task not in found]
            if not is_handed:
                await self._pack_and_send(connection, message, brought, missing)
            elif not connection.closed:
                packed = pack(brought, by_reference=True, address=self._address)
                _reply(connection, message, packed, missing, self._address)

    async def _send_large(
        self,
        connection: Connection,
        message: GetReplicas,
        values: list[Held],
        missing: list[TaskId],
    ) -> None:
        async with self._room:
            await self._pack_and_send(connection, message, values, missing)

    async def _pack_and_send(
        self,
        connection: Connection,
        message: GetReplicas,
        values: list[Held],
        missing: list[TaskId],
    ) -> None:
        loop = asyncio.get_running_loop()
        packed = await loop.run_in_executor(
            self._executor, self._pack, values, connection.peer_address
        )
        if message.accepts and packed.buffers:
            packed = await loop.run_in_executor(self._executor, compressed, packed, message.accepts)
        if connection.closed:
            return
        _reply(connection, message, packed, missing, self._address)
        nbytes = sum([held.nbytes for held in values])
        try:
            async with asyncio.timeout(self._stall_seconds + nbytes / SLOWEST_BYTES_PER_SECOND):
                await connection.drain()
        except TimeoutError:
            connection.abort()  # it has given up on us by now; others wait for the room

    def on_send_bytes(self, connection: Connection, message: SendBytes) -> None:
        """Send what nobody has a use for, to somebody who measures the way."""
        content = memoryview(bytes(min(message.nbytes, MEASURING_BYTES_MAX)))
        connection.send_with_buffers(Replicas(message.request, []), [content])

    def on_put_replicas(
        self, connection: Connection, message: PutReplicas, buffers: Sequence[Any]
    ) -> None:
        """Keep the values, then say that they are here."""
        if nbytes_received(message.replicas, buffers) < LARGE_NBYTES:
            self._keep(connection, message, *unpack(message.replicas, buffers, self._address))
        else:
            self._spawn(connection, self._keep_large(connection, message, buffers))

    async def _keep_large(
        self, connection: Connection, message: PutReplicas, buffers: Sequence[Any]
    ) -> None:
        loop = asyncio.get_running_loop()
        unpacked = await loop.run_in_executor(
            self._executor, unpack, message.replicas, buffers, self._address
        )
        self._keep(connection, message, *unpacked)

    def _keep(
        self,
        connection: Connection,
        message: PutReplicas,
        held: list[Held],
        failed: list[tuple[TaskId, Any]],
    ) -> None:
        reply: Message
        if not self._is_in(message.epoch):
            refused = WrongEpoch(self._address)
            reply = Refusal(message.request, to_failure(refused, worker=self._address))
        elif failed:
            reply = Refusal(message.request, failed[0][1])  # all or none
        else:
            self._put(held)
            reply = answer(message.request, None)
        _say(connection, [reply])

    def _spawn(self, connection: Connection, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, connection))

    def _done(self, connection: Connection, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        connection.abort()  # whoever waits for the answer is told at once that it won't come
        error = task.exception()
        if not isinstance(error, CommClosedError):  # the peer went; nobody waits for it
            task.get_loop().call_exception_handler(
                {"message": "Serving a peer failed", "exception": error, "task": task}
            )

    async def close(self) -> None:
        """End all connections, and what is being prepared for them."""
        for task in list(self._tasks):
            task.cancel()
        connections = list(self._connections)
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()


def _say(connection: Connection, messages: Sequence[Any]) -> None:
    """Send them, unless whoever has asked has gone."""
    if not connection.closed:
        connection.send(messages)


def _reply(
    connection: Connection,
    message: GetReplicas,
    packed: Packed,
    missing: list[TaskId],
    address: str,
) -> None:
    number, marks = message.request, list(packed.marks)
    reply = Replicas(number, packed.headers, missing, packed.failed, marks)
    try:
        if packed.buffers:
            connection.send_with_buffers(reply, packed.buffers)
        else:
            connection.send([reply])
    except FrameTooLarge as error:
        failed = [
            (header.task, to_failure(error, header.key, address)) for header in packed.headers
        ]
        connection.send([Replicas(number, [], missing, packed.failed + failed)])
