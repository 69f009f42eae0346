"""Streams over real sockets, which are reset in the midst of what is sent."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal.comms import Connection, connect, listen
from shoal.comms.resumable import AcceptedStream, Streams
from shoal.comms.resuming import connect_resuming
from shoal.comms.sockets import SocketConnection
from shoal.comms.streams import Stream
from shoal.protocol.streams import BeginStream, ResumeStream
from tests.faults.breaking import Passage
from tests.unit.comms.ends import KEYS, End, Note, Parcel
from tests.unit.comms.lines import DECODER

NTHREADS, NSAID = 4, 2_000


class Service:
    """Accepts streams; each is an End."""

    def __init__(self, window_seconds: float = 10.0) -> None:
        self.ends: list[End] = []
        self.streams = Streams({"client": window_seconds})

    def on_connection(self, connection: Connection) -> None:
        assert isinstance(connection, SocketConnection)
        connection.start(partial(self._first, connection), lambda reason: None)

    def _first(self, connection: SocketConnection, messages: list[Any], buffers: list[Any]) -> None:
        match messages[0]:
            case BeginStream() as word:
                stream = self.streams.begin(connection, word)
                assert isinstance(stream, AcceptedStream)
                self.ends.append(End(stream))
            case ResumeStream() as word:
                self.streams.resume(connection, word)


async def with_a_stream(use: Callable[[End, Service, Passage], Any]) -> None:
    """The dialling end of a stream that goes through a passage."""
    service = Service()
    listener = await listen(
        "tcp://127.0.0.1:0", KEYS, lambda role: DECODER, service.on_connection, shortcut=False
    )
    async with Passage(listener.address) as passage:
        connection = await connect_resuming(
            passage.address, KEYS, "client", DECODER, timeout_seconds=5, window_seconds=10
        )
        assert isinstance(connection, Stream)
        await use(End(connection), service, passage)
        connection.close()
        await connection.wait_closed()
        for end in service.ends:
            assert await end.told() is None
        assert len(service.streams) == 0
    listener.close()
    await listener.wait_closed()


def test_threads_send_on_while_the_connection_is_reset() -> None:
    """What each says arrives once and in its order."""

    async def use(dialled: End, service: Service, passage: Passage) -> None:
        def speak(thread: int) -> None:
            for number in range(NSAID):
                dialled.connection.send([Note(number, str(thread))])

        dialled.connection.send([Note(0, "first")])
        while not service.ends:
            await asyncio.sleep(0)
        end = service.ends[0]
        end.connection.send([Note(0)])  # so that both know that it is a stream
        await dialled.heard(1)
        threads = [threading.Thread(target=speak, args=(number,)) for number in range(NTHREADS)]
        for thread in threads:
            thread.start()
        nmessages = NTHREADS * NSAID + 1
        for part in range(1, 11):
            await end.heard(part * nmessages // 12)
            passage.reset()
            end.connection.send([Note(part)])
        for thread in threads:
            thread.join()
        said = await end.heard(nmessages)
        assert len(said) == nmessages
        for number in range(NTHREADS):
            mine = [note.number for note in said if note.text == str(number)]
            assert mine == list(range(NSAID))
        assert await dialled.heard(11) == [Note(number) for number in range(11)]
        assert passage.nconnections > 1

    asyncio.run(with_a_stream(use))


def test_large_buffers_that_are_cut_in_two_arrive_whole() -> None:
    async def use(dialled: End, service: Service, passage: Passage) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [b"small"])
        while not service.ends:
            await asyncio.sleep(0)
        end = service.ends[0]
        end.connection.send([Note(0)])
        await dialled.heard(1)
        buffers = [bytes([number]) * 3_000_000 for number in range(8)]
        for number, buffer in enumerate(buffers):
            dialled.connection.send_with_buffers(Parcel(number), [buffer])
        passage.reset()
        await end.heard(4)
        passage.reset()
        await end.heard(len(buffers) + 1)
        assert [bytes(buffer) for buffer in end.buffers] == [b"small", *buffers]

    asyncio.run(with_a_stream(use))


def test_on_one_host_nothing_is_a_stream() -> None:
    """A Unix socket ends with one of its two processes, and so needs no patience."""

    async def main() -> None:
        listener = await listen("tcp://127.0.0.1:0", KEYS, lambda role: DECODER, End)
        for window_seconds in (0.0, 10.0):
            connection = await connect_resuming(
                listener.address,
                KEYS,
                "client",
                DECODER,
                timeout_seconds=5,
                window_seconds=window_seconds,
            )
            assert type(connection) is SocketConnection
            connection.abort()
            await connection.wait_closed()
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())


def test_a_connection_that_is_handed_on_tells_the_new_owner_what_follows() -> None:
    async def main() -> None:
        heard: list[Any] = []
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def on_connection(connection: Connection) -> None:
            def hand_on(messages: list[Any], buffers: list[Any]) -> None:
                heard.append(("first", messages))
                connection.start(
                    lambda messages, buffers: heard.append(("then", messages)), ended.set_result
                )

            connection.start(hand_on, lambda reason: heard.append("ended"))

        listener = await listen(
            "tcp://127.0.0.1:0", KEYS, lambda role: DECODER, on_connection, shortcut=False
        )
        connection = await connect(listener.address, KEYS, "client", DECODER, timeout_seconds=5)
        connection.send_with_buffers(Parcel(1), [b""])
        connection.send([Note(2)])
        connection.start(lambda messages, buffers: None, lambda reason: None)
        connection.close()
        assert await ended is None
        assert heard == [("first", [Parcel(1)]), ("then", [Note(2)])]
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())
