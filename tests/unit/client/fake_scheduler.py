"""A scheduler and worker in one that computes at once, or holds its answers until told."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import dask

from shoal.client.asynchronous import AsyncClient
from shoal.comms import Connection, Listener, listen
from shoal.ids import Epoch, TaskId
from shoal.protocol.answers import answer
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ClientToScheduler
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import (
    CancelTasks,
    ClientHeartbeat,
    ClientWelcome,
    DefineClientCode,
    Message,
    RegisterClient,
    ReleaseTasks,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    WantKey,
)
from shoal.protocol.payload import dump, dump_small, load, load_call
from shoal.protocol.questions import NThreads, WhoHas
from shoal.worker.shell.evaluation import evaluate_item

T = TypeVar("T")

TOKEN = b"a token for tests"
WORKER = "inproc://no-such-worker"


class FakeScheduler:
    """Computes what clients submit in their order, as soon as it hears of it.

    `holds`: compute, but keep the answers until `let_go`.
    """

    def __init__(self) -> None:
        self.epoch = Epoch(1)
        self.holds = False
        self.inline_bytes_max = 10_000
        self.heard: list[Message] = []
        self.frames = 0
        self.values: dict[int, Any] = {}  # by the client's numbers
        self.numbers: dict[str, int] = {}  # by key
        self._codes: dict[int, Any] = {}
        self.kept: list[Message] = []
        self.connections: list[Connection] = []
        self.answers: dict[type, Callable[[Any], Any]] = {  # call -> the value of its answer
            NThreads: lambda call: {WORKER: 1},
            WhoHas: lambda call: {key: [WORKER] for key in call.keys or ()},
        }
        self.is_understood = True  # else it says what no scheduler says, when it is greeted
        self.turns_away = 0  # so many that connect, before anybody is let in
        self._ids = itertools.count(1)
        self._heard_more = asyncio.Event()

    async def __aenter__(self, address: str = "inproc://") -> FakeScheduler:
        await self._listen(address)
        return self

    async def _listen(self, address: str) -> None:
        self._listener: Listener = await listen(
            address,
            Keyring.from_token(TOKEN),
            lambda role: Decoder(ClientToScheduler),
            self._accept,
        )
        self.address = self._listener.address

    async def go_down(self) -> None:
        """Die, and let nobody in."""
        self._listener.close()
        await self._listener.wait_closed()
        self.hang_up()
        for connection in self.connections:
            await connection.wait_closed()

    async def come_up(self) -> None:
        """Another one takes its place, and knows nothing."""
        self.epoch = Epoch(self.epoch + 1)
        self.values.clear()
        self.numbers.clear()
        self._codes.clear()
        self.heard.clear()
        self.kept.clear()
        await self._listen(self.address)

    async def __aexit__(self, *exception: object) -> None:
        self._listener.close()
        for connection in self.connections:
            connection.close()
            await connection.wait_closed()

    def hang_up(self) -> None:
        """Die, as far as clients can tell."""
        for connection in self.connections:
            connection.abort()

    def let_go(self, n: int | None = None) -> None:
        """Send the first `n` of the answers that were kept; None: all."""
        kept, self.kept = self.kept[:n], self.kept[n:] if n is not None else []
        self.connections[-1].send(kept)

    def say(self, *messages: Message) -> None:
        """Say something to the client that came last."""
        self.connections[-1].send(messages)

    def say_with_buffers(self, message: Message, buffers: list[Any]) -> None:
        """As `say`, with values beside it."""
        self.connections[-1].send_with_buffers(message, buffers)

    async def heard_of(self, kind: type, n: int = 1) -> list[Any]:
        """Wait until `n` messages of this kind have come."""
        while True:
            found = [message for message in self.heard if type(message) is kind]
            if len(found) >= n:
                return found
            self._heard_more.clear()
            await asyncio.wait_for(self._heard_more.wait(), 10)

    async def took(self, nframes: int) -> None:
        """Wait until so many frames have come, of signs of life as well."""
        while self.frames < nframes:
            self._heard_more.clear()
            await asyncio.wait_for(self._heard_more.wait(), 10)

    def _accept(self, connection: Connection) -> None:
        self.connections.append(connection)
        if self.turns_away:
            self.turns_away -= 1
            connection.abort()
            return
        connection.start(
            lambda messages, buffers: self._on_messages(connection, messages), lambda reason: None
        )

    def _on_messages(self, connection: Connection, messages: list[Any]) -> None:
        self.frames += 1
        replies: list[Message] = []
        for message in messages:
            if not isinstance(message, ClientHeartbeat):
                self.heard.append(message)
            match message:
                case RegisterClient() if not self.is_understood:
                    connection.send([message])
                case RegisterClient():
                    connection.send([ClientWelcome(self.epoch, "fake")])
                case DefineClientCode(code, payload):
                    self._codes[code] = load(payload)
                case SubmitTasks():
                    replies += self._compute(message)
                case ReleaseTasks(tasks):
                    for task in tasks:
                        self.values.pop(task, None)
                case CancelTasks(tasks, _, reason):
                    replies += [TaskCancelled(task, reason) for task in tasks]
                case WantKey(task, key):
                    number = self.numbers.get(key, -1)
                    replies.append(self._outcome(task, lambda n=number: self.values[n]))
                case _ if type(message) in self.answers:
                    value = self.answers[type(message)](message)
                    connection.send([answer(message.request, value)])
        self._heard_more.set()
        if self.holds:
            self.kept += replies
        elif replies:
            connection.send(replies)

    def _compute(self, message: SubmitTasks) -> list[Message]:
        replies = []
        wanted = range(len(message.keys)) if message.wanted is None else message.wanted
        for i, key in enumerate(message.keys):
            number = message.first + i
            needs = message.dependencies[i] if message.dependencies else []
            code = self._codes[message.codes[i if len(message.codes) > 1 else 0]]
            self.numbers[key] = number
            reply = self._outcome(number, partial(self._call, code, message.arguments[i], needs))
            if i in wanted:
                replies.append(reply)
        return replies

    def _call(self, code: Any, argument: bytes | int, needs: list[int]) -> Any:
        inputs = [self.values[number] for number in needs]
        if isinstance(argument, int):
            node, names = code[argument]
            return evaluate_item(node, dict(zip(names, inputs, strict=True)))
        args, kwargs = load_call(argument, inputs)
        return code(*args, **kwargs)

    def _outcome(self, number: int, compute: Callable[[], Any]) -> Message:
        try:
            value = compute()
        except BaseException as error:
            return TaskErred(number, to_failure(error))
        self.values[number] = value
        small = dump_small(value, self.inline_bytes_max) or dump(value)[0]
        return TaskInMemory(number, TaskId(next(self._ids)), 100, small, [WORKER])


def play(scenario: Callable[..., Coroutine[Any, Any, T]]) -> T:
    """Run `scenario(client, scheduler)` with an asynchronous client of a fake scheduler."""

    return asyncio.run(_play(scenario, "inproc://"))


def play_over_a_socket(scenario: Callable[..., Coroutine[Any, Any, T]]) -> T:
    """As `play`, but what is said is really encoded."""
    return play_returning(scenario, 0)


def play_returning(
    scenario: Callable[..., Coroutine[Any, Any, T]], reconnect_seconds: float = 60
) -> T:
    """As `play_over_a_socket`, with a client that looks for its scheduler for so long."""
    with dask.config.set({"shoal.client.reconnect-seconds": reconnect_seconds}):
        return asyncio.run(_play(scenario, "tcp://127.0.0.1:0"))


async def _play(scenario: Callable[..., Coroutine[Any, Any, T]], address: str) -> T:
    scheduler = FakeScheduler()
    await scheduler.__aenter__(address)
    try:
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as client:
            return await scenario(client, scheduler)
    finally:
        await scheduler.__aexit__()
