"""A scheduler that says what a test tells it to say, and remembers what it hears."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from shoal.comms import Connection, listen
from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import WorkerToScheduler
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import (
    DefineCode,
    Input,
    Message,
    RegisterWorker,
    RunTask,
    WorkerHeartbeat,
    WorkerWelcome,
)
from shoal.protocol.payload import dump_call, dump_function
from shoal.worker.shell.replicas import Held
from shoal.worker.shell.service import Worker

M = TypeVar("M")
T = TypeVar("T")

TOKEN = b"a token for tests"
DEADLINE_SECONDS = 10.0


class FakeScheduler:
    """Listens at `address`; welcomes every worker that registers, unless told otherwise."""

    def __init__(self, epoch: int = 1, hears: Any = WorkerToScheduler) -> None:
        self.epoch = epoch
        self._decoder = Decoder(hears)
        self.welcomes = True
        self.connections: dict[str, Connection] = {}  # by the worker's address
        self.registrations: list[RegisterWorker] = []
        self.heard: dict[str, list[Any]] = {}
        self._changed = asyncio.Event()
        self._next_run = 0
        self._next_code = 0

    async def start(self, address: str = "inproc://") -> "FakeScheduler":
        self._listener = await listen(
            address,
            Keyring.from_token(TOKEN),
            lambda role: self._decoder,
            self._on_connection,
        )
        self.address = self._listener.address
        return self

    def _on_connection(self, connection: Connection) -> None:
        worker = ""

        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            nonlocal worker
            for message in messages:
                if isinstance(message, RegisterWorker):
                    worker = message.address
                    self.connections[worker] = connection
                    self.registrations.append(message)
                    if self.welcomes:
                        connection.send([WorkerWelcome(Epoch(self.epoch), 1, 60.0)])
                elif not isinstance(message, WorkerHeartbeat):
                    self.heard.setdefault(worker, []).append(message)
            self._changed.set()

        def on_closed(reason: Exception | None) -> None:
            self._changed.set()

        connection.start(on_messages, on_closed)

    def say(self, worker: Worker, *messages: Message) -> None:
        self.connections[worker.address].send(messages)

    def define(self, worker: Worker, function: object) -> CodeId:
        self._next_code += 1
        code = CodeId(self._next_code)
        self.say(worker, DefineCode(code, dump_function(function)))
        return code

    def run(
        self,
        worker: Worker,
        function: object,
        *args: object,
        task: int = 1,
        inputs: list[TaskId | Input] | None = None,
    ) -> RunTask:
        """Have it run now; returns what was said."""
        self._next_run += 1
        code = function if isinstance(function, int) else self.define(worker, function)
        message = RunTask(
            TaskId(task),
            RunId(self._next_run),
            Key(f"key-{task}"),
            CodeId(code),
            dump_call(args, {}),
            0.0,
            self._next_run,
            inputs or [],
        )
        self.say(worker, message)
        return message

    async def hear(self, worker: Worker, kind: type[M]) -> M:
        """The next message that the worker says; it must be of this kind."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not self.heard.get(worker.address):
                self._changed.clear()
                await self._changed.wait()
        message = self.heard[worker.address].pop(0)
        assert isinstance(message, kind), message
        return message

    async def registered(self) -> RegisterWorker:
        """The next registration from now on."""
        nbefore = len(self.registrations)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(self.registrations) == nbefore:
                self._changed.clear()
                await self._changed.wait()
        return self.registrations[-1]

    async def close(self) -> None:
        self._listener.close()
        for connection in self.connections.values():
            connection.close()
            await connection.wait_closed()
        await self._listener.wait_closed()


def worker_of(scheduler: FakeScheduler, **arguments: Any) -> Worker:
    """A worker, not started yet, of that scheduler."""
    arguments = {"nthreads": 1, "token": TOKEN, "validate": True, "memory_limit": 0} | arguments
    return Worker(scheduler.address, **arguments)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` with a deadline."""

    async def limited() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(limited())


async def bring_as_they_are(values: Sequence[Held], *, as_values: bool) -> list[Held]:
    """For a server of which nothing is on disk."""
    return list(values)
