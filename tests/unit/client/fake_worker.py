"""A worker that only holds values, and does as badly as a test wants."""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.comms import Connection, listen
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import GetReplicas, PutReplicas, ReplicaHeader, Replicas
from shoal.protocol.payload import dump, load
from tests.unit.client.fake_scheduler import TOKEN


class FakeWorker:
    """Answers for what is in `values`, by task id; `refuses`: keep nothing that is put here."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.asked: list[Any] = []
        self.refuses: BaseException | None = None
        self.on_put: Any = None  # called with the tasks that were put here
        self._connections: list[Connection] = []

    async def __aenter__(self) -> FakeWorker:
        self._listener = await listen(
            "tcp://127.0.0.1:0",
            Keyring.from_token(TOKEN),
            lambda role: Decoder(ToWorkerFromPeer),
            self._accept,
        )
        self.address = self._listener.address
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._listener.close()
        await self._listener.wait_closed()
        for connection in self._connections:
            connection.abort()
            await connection.wait_closed()

    def _accept(self, connection: Connection) -> None:
        self._connections.append(connection)
        connection.start(
            lambda messages, buffers: self._on_messages(connection, messages, buffers),
            lambda reason: None,
        )

    def _on_messages(self, connection: Connection, messages: list[Any], buffers: list[Any]) -> None:
        for message in messages:
            self.asked.append(message)
            if isinstance(message, GetReplicas):
                replicas, sent = pack(message.request, message.tasks, self.values)
                connection.send_with_buffers(replicas, sent)
            elif isinstance(message, PutReplicas) and self.refuses is not None:
                connection.send([Refusal(message.request, to_failure(self.refuses))])
            elif isinstance(message, PutReplicas):
                at = 0
                for header in message.replicas:
                    mine = buffers[at : at + header.nbuffers]
                    at += header.nbuffers
                    self.values[header.task] = load(header.header, mine)
                connection.send([answer(message.request, None)])
                self.on_put([header.task for header in message.replicas])


def pack(request: int, tasks: list[int], values: dict[int, Any]) -> tuple[Replicas, list[Any]]:
    """Those of `tasks` that are in `values`, as they travel; an exception stands for itself."""
    headers, buffers, failed = [], [], []
    for task in tasks:
        if isinstance(values.get(task), Exception):
            failed.append((task, to_failure(values[task])))
        elif task in values:
            header, more = dump(values[task])
            headers.append(ReplicaHeader(task, "", 100, header, len(more)))
            buffers += more
    missing = [task for task in tasks if task not in values]
    return Replicas(request, headers, missing, failed), buffers


async def gone() -> str:
    """The address of a worker that has died."""
    async with FakeWorker() as worker:
        address = worker.address
    await asyncio.sleep(0)
    return address
