"""Two ends of a connection, of any kind, for tests of this layer; they record what they hear."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from shoal.comms import AdmissionLimits, Connection, Listener, connect, listen
from shoal.comms.backends import BACKENDS
from shoal.protocol.codec import Decoder
from shoal.protocol.framing import FrameLimits
from shoal.protocol.handshake import Keyring
from tests.unit.comms import pipes


class Note(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """A small message."""

    number: int
    text: str = ""


class Parcel(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """A message that comes with buffers."""

    request: int


DECODER = Decoder(Note | Parcel)
TOKEN = b"right"
KEYS = Keyring.from_token(TOKEN)
KINDS = ("tcp", "shortcut", "unix", "inproc", pipes.SCHEME)
BACKENDS[pipes.SCHEME] = pipes.PipeBackend()
_numbers = itertools.count()


def address_for(kind: str) -> str:
    """A free address to listen on; `shortcut` is TCP that is dialled the Unix way."""
    name = f"shoal-test-{os.getpid()}-{next(_numbers)}"
    return {
        "tcp": "tcp://127.0.0.1:0",
        "shortcut": "tcp://127.0.0.1:0",
        "unix": f"unix://@{name}",
        "inproc": f"inproc://{name}",
        "pipe": "pipe://127.0.0.1:0",
    }[kind]


class End:
    """One end: the calls that its callbacks got, and futures to wait for them."""

    def __init__(self, connection: Connection, *, start: bool = True) -> None:
        self.connection = connection
        self.calls: list[tuple[list[Any], list[Any]]] = []
        self.reasons: list[Exception | None] = []
        self._changed = asyncio.Event()
        if start:
            self.start()

    def start(self) -> None:
        self.connection.start(self._on_messages, self._on_closed)

    def _on_messages(self, messages: list[Any], buffers: list[Any]) -> None:
        self.calls.append((messages, buffers))
        self._changed.set()

    def _on_closed(self, reason: Exception | None) -> None:
        self.reasons.append(reason)
        self._changed.set()

    @property
    def messages(self) -> list[Any]:
        """All that was said, in order."""
        return [message for messages, _ in self.calls for message in messages]

    @property
    def buffers(self) -> list[Any]:
        return [buffer for _, buffers in self.calls for buffer in buffers]

    async def until(self, holds: Callable[[End], bool]) -> None:
        """Wait until `holds(self)`, looking after every callback."""
        async with asyncio.timeout(10):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    async def heard(self, nmessages: int) -> list[Any]:
        await self.until(lambda end: len(end.messages) >= nmessages)
        return self.messages

    async def told(self) -> Exception | None:
        """The reason of the end, once it came."""
        await self.until(lambda end: bool(end.reasons))
        return self.reasons[0]


class Service:
    """A listener that keeps an End for each peer."""

    def __init__(self, *, start: bool = True) -> None:
        self.ends: list[End] = []
        self.listener: Listener
        self._start = start
        self._changed = asyncio.Event()

    def on_connection(self, connection: Connection) -> None:
        self.ends.append(End(connection, start=self._start))
        self._changed.set()

    async def end(self, number: int = 0) -> End:
        """The end of the peer that came as `number`."""
        async with asyncio.timeout(10):
            while len(self.ends) <= number:
                self._changed.clear()
                await self._changed.wait()
        return self.ends[number]


@contextlib.asynccontextmanager
async def service(
    address: str,
    *,
    keys: Keyring = KEYS,
    limits: FrameLimits | None = None,
    admission: AdmissionLimits | None = None,
    start: bool = True,
    shortcut: bool = True,
) -> AsyncIterator[Service]:
    """A service at `address`, all of whose descriptors are closed afterwards."""
    served = Service(start=start)
    served.listener = await listen(
        address,
        keys,
        lambda role: DECODER,
        served.on_connection,
        limits=limits,
        admission=admission,
        shortcut=shortcut,
    )
    try:
        yield served
    finally:
        served.listener.close()
        for end in served.ends:
            end.connection.abort()
        await served.listener.wait_closed()


@contextlib.asynccontextmanager
async def pair(
    kind: str, *, start_server: bool = True, start_client: bool = True
) -> AsyncIterator[tuple[End, End]]:
    """The dialling end and the accepting one."""
    async with service(address_for(kind), start=start_server, shortcut=kind != "tcp") as served:
        connection = await connect(
            served.listener.address, KEYS, "client", DECODER, timeout_seconds=5
        )
        dialled = End(connection, start=start_client)
        try:
            yield dialled, await served.end()
        finally:
            connection.abort()
            await connection.wait_closed()
