"""Any thread may send: frames stay whole, and those of one thread keep their order."""

import asyncio
import threading
from collections import defaultdict

import pytest

from shoal.comms import Connection, connect, listen, new_token
from shoal.protocol.codec import Decoder
from shoal.protocol.handshake import CLIENT, Keyring
from shoal.protocol.messages import DefineClientCode

NTHREADS = 4
NFRAMES = 300
BYTES = 20_000  # of a frame: many more than a socket takes at once, all in all


async def _play(address: str) -> dict[int, list[int]]:
    """The numbers that each thread sent, in the order in which they arrived."""
    keyring = Keyring.from_token(new_token())
    decoder = Decoder(DefineClientCode)
    arrived: dict[int, list[int]] = defaultdict(list)
    complete = asyncio.Event()
    accepted: list[Connection] = []

    def on_messages(messages, buffers):
        for message in messages:
            thread, number = divmod(message.code, NFRAMES)
            assert message.payload == bytes([thread]) * BYTES
            arrived[thread].append(number)
        if sum(map(len, arrived.values())) == NTHREADS * NFRAMES:
            complete.set()

    def on_connection(connection):
        accepted.append(connection)
        connection.start(on_messages, lambda reason: None)

    listener = await listen(address, keyring, lambda role: decoder, on_connection)
    sender = await connect(listener.address, keyring, CLIENT, decoder, timeout_seconds=5)
    sender.start(lambda messages, buffers: None, lambda reason: None)

    def send(thread: int) -> None:
        for number in range(NFRAMES):
            payload = bytes([thread]) * BYTES
            sender.send([DefineClientCode(thread * NFRAMES + number, payload)])

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(NTHREADS)]
    for thread in threads:
        thread.start()
    await asyncio.wait_for(complete.wait(), 20)
    for thread in threads:
        thread.join()
    for connection in (sender, *accepted):
        connection.close()
        await connection.wait_closed()
    listener.close()
    await listener.wait_closed()
    return dict(arrived)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:0", "inproc://threads"])
def test_frames_of_many_threads_arrive_whole_and_in_the_order_of_each(address):
    arrived = asyncio.run(_play(address))
    assert arrived == {thread: list(range(NFRAMES)) for thread in range(NTHREADS)}
