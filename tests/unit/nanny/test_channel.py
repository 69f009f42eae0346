"""Words between a process and its owner: whole lines in their order, however long they are."""

import asyncio
import contextlib
import json

from shoal.nanny.channel import Channel

LARGE_NBYTES = 2_000_000
"""More than the buffers of a socket take."""


@contextlib.contextmanager
def opened():
    channel = Channel()
    try:
        yield channel
    finally:
        channel.close_theirs()
        channel.close()


def test_two_who_speak_at_once_do_not_interrupt_each_other():
    async def scenario():
        loop = asyncio.get_running_loop()
        with opened() as channel:
            channel.their_words.setblocking(False)
            texts = [b"a" * LARGE_NBYTES + b"\n", b"b\n", b"c" * LARGE_NBYTES + b"\n"]
            saying = [asyncio.ensure_future(channel.say(text)) for text in texts]
            heard = b""
            while len(heard) < sum(map(len, texts)):
                heard += await loop.sock_recv(channel.their_words, 1 << 20)
            await asyncio.gather(*saying)
            assert heard == b"".join(texts)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_lines_are_heard_whole_though_they_come_in_pieces():
    async def scenario():
        loop = asyncio.get_running_loop()
        with opened() as channel:
            channel.their_words.setblocking(False)
            heard = []
            listening = asyncio.ensure_future(channel.listen(heard.append))
            words = [{"n": 1}, {"text": "x" * LARGE_NBYTES}, {"n": 2}]
            text = b"".join(json.dumps(word).encode() + b"\n" for word in words)
            await loop.sock_sendall(channel.their_words, text + b'{"half of')
            channel.close_theirs()
            await listening
            assert heard == words

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_the_last_lines_of_errors_are_kept_the_unfinished_one_included():
    async def scenario():
        loop = asyncio.get_running_loop()
        with opened() as channel:
            channel.their_errors.setblocking(False)
            reading = asyncio.ensure_future(channel.read_errors(lambda: False))
            await loop.sock_sendall(channel.their_errors, b"one\ntwo\nthr")
            await loop.sock_sendall(channel.their_errors, b"ee")
            channel.close_theirs()
            await reading
            assert channel.last_lines() == "one\ntwo\nthree"

    asyncio.run(asyncio.wait_for(scenario(), 30))
