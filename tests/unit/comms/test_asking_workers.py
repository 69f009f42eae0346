"""Requests to workers that may take as long as they like: they leave in order, and end with the
connection."""

import asyncio
import gc
import socket
import weakref
from typing import Any

import pytest

from shoal.comms import CommClosedError, listen
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Key, RunId
from shoal.protocol.actors import ActorReply, ReadActor
from shoal.protocol.answers import Refusal
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring

KEYRING = Keyring.from_token(b"a token that both ends have, of 32")


class Peer:
    """A worker that notes what it is asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[ReadActor] = []
        self.connection: Any = None
        self.heard = asyncio.Event()

    async def start(self) -> str:
        decoder = Decoder(ToWorkerFromPeer)
        self.listener = await listen("tcp://127.0.0.1:0", KEYRING, lambda _: decoder, self._let_in)
        return self.listener.address

    def _let_in(self, connection: Any) -> None:
        self.connection = connection
        connection.start(self._hear, lambda reason: None)

    def _hear(self, messages: list[Any], buffers: list[Any]) -> None:
        self.asked += messages
        self.heard.set()

    async def wait_for(self, n: int) -> None:
        while len(self.asked) < n:
            self.heard.clear()
            await asyncio.wait_for(self.heard.wait(), 10)

    async def close(self) -> None:
        self.listener.close()
        await self.listener.wait_closed()


def reading(name: str) -> Any:
    return lambda request: ReadActor(request, Key("x"), RunId(0), name)


def test_those_that_wait_for_the_connection_are_not_overtaken_once_it_is_there() -> None:
    async def scene() -> None:
        peer = Peer()
        address = await peer.start()
        exchange = ReplicaExchange(KEYRING)
        said: list[int] = []
        early = [
            asyncio.create_task(
                exchange.ask(address, reading(str(i)), (), lambda i=i: said.append(i))
            )
            for i in range(5)
        ]
        while peer.connection is None:  # what comes as soon as there is one
            await asyncio.sleep(0)
        late = [asyncio.create_task(exchange.ask(address, reading(str(i)))) for i in range(5, 9)]
        await peer.wait_for(9)
        assert [message.name for message in peer.asked] == [str(i) for i in range(9)]
        assert said == list(range(5))
        for message in reversed(peer.asked):  # answers come in whatever order
            value = message.name.encode()
            peer.connection.send_with_buffers(ActorReply(message.request, value), [b"b" * 20_000])
        for i, asking in enumerate([*early, *late]):
            reply, buffers = await asyncio.wait_for(asking, 10)
            assert reply.value == str(i).encode()
            assert [len(buffer) for buffer in buffers] == [20_000]
        await exchange.close()
        await peer.close()

    asyncio.run(scene())


def test_a_refusal_is_an_answer_and_the_end_of_the_connection_is_raised() -> None:
    async def scene() -> None:
        peer = Peer()
        address = await peer.start()
        exchange = ReplicaExchange(KEYRING)
        refused, lost = [asyncio.create_task(exchange.ask(address, reading(n))) for n in "ab"]
        await peer.wait_for(2)
        failure = to_failure(OSError("of the method's own"))
        peer.connection.send([Refusal(peer.asked[0].request, failure)])
        assert (await asyncio.wait_for(refused, 10))[0].failure == failure
        peer.connection.abort()
        with pytest.raises(CommClosedError):
            await asyncio.wait_for(lost, 10)
        await exchange.close()
        await peer.close()

    asyncio.run(scene())


def test_a_worker_that_is_given_up_is_not_waited_for_though_its_connection_lives() -> None:
    async def scene() -> None:
        peer = Peer()
        address = await peer.start()
        exchange = ReplicaExchange(KEYRING)
        asking = asyncio.create_task(exchange.ask(address, reading("a")))
        await peer.wait_for(1)
        exchange.forget(address, "it was silent for 3 s")
        with pytest.raises(CommClosedError, match="it was silent for 3 s"):
            await asyncio.wait_for(asking, 10)
        await exchange.close()
        await peer.close()

    asyncio.run(scene())


def test_whoever_waits_in_line_for_a_worker_fails_with_the_first() -> None:
    """One that says nothing takes a while to be given up, and is not dialled for each anew."""

    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
            exchange = ReplicaExchange(KEYRING, connect_seconds=0.3)
            asked = [exchange.ask(address, reading(str(i))) for i in range(20)]
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(outcome, OSError) for outcome in outcomes)
            assert ndials(silent) == 1
            with pytest.raises(OSError, match="Timed out trying to connect"):
                await exchange.ask(address, reading("a"), has_another_way=True)
            assert ndials(silent) == 0
            with pytest.raises(OSError, match="Timed out trying to connect"):
                await exchange.ask(address, reading("a"))
            assert ndials(silent) == 1
            await exchange.close()

    asyncio.run(scene())


def ndials(listening: socket.socket) -> int:
    """How many have come since it was last asked."""
    n = 0
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return n
        n += 1


class Memory(bytearray):
    """Of which one can tell whether it is still held."""


def test_large_arguments_are_let_go_of_once_they_have_left() -> None:
    """An answer may take hours."""

    async def scene() -> None:
        peer = Peer()
        address = await peer.start()
        exchange = ReplicaExchange(KEYRING)
        buffers = [Memory(100_000)]
        held = weakref.ref(buffers[0])
        asking = asyncio.create_task(exchange.ask(address, reading("a"), buffers))
        del buffers
        await peer.wait_for(1)
        gc.collect()
        assert held() is None
        peer.connection.send([ActorReply(peer.asked[0].request, b"")])
        await asyncio.wait_for(asking, 10)
        await exchange.close()
        await peer.close()

    asyncio.run(scene())


def test_whoever_stops_waiting_leaves_the_connection_to_the_others() -> None:
    async def scene() -> None:
        peer = Peer()
        address = await peer.start()
        exchange = ReplicaExchange(KEYRING)
        stops, stays = [asyncio.create_task(exchange.ask(address, reading(n))) for n in "ab"]
        await peer.wait_for(2)
        stops.cancel()
        for message in peer.asked:
            peer.connection.send([ActorReply(message.request, message.name.encode())])
        assert (await asyncio.wait_for(stays, 10))[0].value == b"b"
        assert stops.cancelled()
        await exchange.close()
        await peer.close()

    asyncio.run(scene())
