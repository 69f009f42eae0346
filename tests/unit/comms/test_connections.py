"""One suite for every kind of connection: what one end says, the other hears, whatever happens."""

import asyncio
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shoal.comms import (
    CommClosedError,
    connect,
)
from tests.unit.comms.ends import (
    DECODER,
    KEYS,
    KINDS,
    End,
    Note,
    Parcel,
    address_for,
    pair,
    service,
)

LARGE_NBYTES = 24 << 20

Story = Callable[[End, End], Awaitable[None]]


def play(kind: str, story: Story, **arguments: bool) -> None:
    """Run `story` on a new pair: the end that dialled, and the one that accepted."""

    async def main() -> None:
        async with pair(kind, **arguments) as (dialled, accepted):
            await story(dialled, accepted)

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_each_end_knows_whom_it_talks_to(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        assert dialled.connection.role == "server"
        assert accepted.connection.role == "client"
        assert dialled.connection.peer_address == accepted.connection.local_address
        assert accepted.connection.peer_address != accepted.connection.local_address
        assert dialled.connection.scheme == {"shortcut": "unix"}.get(kind, kind)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_arrive_in_order_in_both_directions(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        for number in range(0, 500, 2):
            dialled.connection.send([Note(number), Note(number + 1, "x" * number)])
            accepted.connection.send([Note(number)])
        heard = await accepted.heard(500)
        assert [note.number for note in heard] == list(range(500))
        assert heard[401].text == "x" * 400
        assert [note.number for note in await dialled.heard(250)] == list(range(0, 500, 2))

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_that_arrive_together_are_delivered_together(kind: str) -> None:
    """None of them waits for the other loop turn: one call, and never from inside `send`."""

    async def story(dialled: End, accepted: End) -> None:
        for number in range(100):
            dialled.connection.send([Note(number)])
        assert accepted.calls == []
        await accepted.heard(100)
        # The system may hand TCP segments over while the first are being read.
        assert len(accepted.calls) <= (20 if kind == "tcp" else 1)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_buffers_arrive_with_their_message_between_the_others(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        large = bytes(range(256)) * (LARGE_NBYTES // 256)
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [b"small", large, b"", memoryview(b"end")])
        dialled.connection.send([Note(3)])
        assert await accepted.heard(3) == [Note(1), Parcel(2), Note(3)]
        assert [len(buffers) for _, buffers in accepted.calls] == [0, 4, 0]
        small, heard, empty, end = accepted.buffers
        assert (bytes(small), bytes(empty), bytes(end)) == (b"small", b"", b"end")
        assert heard == large
        assert memoryview(heard).contiguous

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_message_takes_its_memory_once_and_its_place_between_the_others(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        large = Note(2, "large" * (LARGE_NBYTES // 5))
        dialled.connection.send([Note(1)])
        tracemalloc.start()
        try:
            dialled.connection.send([large])
            peak_nbytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        dialled.connection.send([Note(3)])
        assert await accepted.heard(3) == [Note(1), large, Note(3)]
        assert peak_nbytes < 1.75 * LARGE_NBYTES

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_close_sends_what_is_queued_and_then_both_ends_are_told_once(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        dialled.connection.send([Note(2)])
        # Unread bytes at the side that closes must not cost the other side the tail.
        accepted.connection.send([Note(number) for number in range(1000)])
        dialled.connection.close()
        dialled.connection.close()
        assert dialled.connection.closed
        assert await accepted.told() is None
        assert await dialled.told() is None
        assert accepted.messages == [Parcel(1), Note(2)]
        assert len(accepted.buffers[0]) == LARGE_NBYTES
        await dialled.connection.wait_closed()
        await accepted.connection.wait_closed()
        assert (len(dialled.reasons), len(accepted.reasons)) == (1, 1)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_can_be_sent_after_the_end(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.close()
        with pytest.raises(CommClosedError, match="is closed"):
            dialled.connection.send([Note(1)])
        await accepted.told()
        with pytest.raises(CommClosedError, match="is closed"):
            accepted.connection.send_with_buffers(Parcel(1), [b"x"])

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_abort_ends_at_once_and_the_peer_is_told(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.abort()
        assert dialled.connection.closed
        assert await dialled.told() is None
        await accepted.told()
        assert accepted.messages in ([], [Note(1)])

    play(kind, story)


@pytest.mark.parametrize("kind", ["tcp", "shortcut", "unix"])
def test_a_peer_that_dies_in_the_middle_of_a_buffer_is_lost_with_a_reason(kind: str) -> None:
    """Half a buffer never reaches the owner."""

    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [bytes(LARGE_NBYTES)])
        assert dialled.connection.unsent_nbytes > 0
        await accepted.heard(1)
        dialled.connection.abort()
        reason = await accepted.told()
        assert isinstance(reason, CommClosedError)
        assert "middle of a frame" in str(reason) or "reset" in str(reason)
        assert accepted.messages == [Note(1)]
        assert len(accepted.reasons) == 1

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_drain_waits_until_the_peer_takes_what_was_sent(kind: str) -> None:
    """An end that has not started does not read, as one that is busy doesn't."""

    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        assert dialled.connection.unsent_nbytes > 1 << 20
        draining = asyncio.ensure_future(dialled.connection.drain())
        dialled.connection.send([Note(2)])
        for _ in range(20):
            await asyncio.sleep(0)
        assert not draining.done()
        accepted.start()
        await draining
        assert dialled.connection.unsent_nbytes <= 1 << 20
        assert await accepted.heard(2) == [Parcel(1), Note(2)]

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_drain_ends_when_the_connection_does(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        draining = asyncio.ensure_future(dialled.connection.drain())
        await asyncio.sleep(0)
        dialled.connection.abort()
        await draining

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_sent_before_the_peer_started_are_kept_for_it(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        accepted.connection.send([Note(1)])
        accepted.connection.send_with_buffers(Parcel(2), [b"x"])
        await asyncio.sleep(0)
        dialled.start()
        assert await dialled.heard(2) == [Note(1), Parcel(2)]

    play(kind, story, start_client=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_that_raises_ends_its_connection_and_the_loop_is_told(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        problems: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
        reasons: asyncio.Queue[Exception | None] = asyncio.Queue()
        error = ValueError("a bug in the receiver")

        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            raise error

        accepted.connection.start(on_messages, reasons.put_nowait)
        dialled.connection.send([Note(1)])
        assert await reasons.get() is error
        assert [problem["exception"] for problem in problems] == [error]
        await dialled.told()

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_may_close_while_it_receives(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            accepted.connection.close()

        reasons: asyncio.Queue[Exception | None] = asyncio.Queue()
        accepted.connection.start(on_messages, reasons.put_nowait)
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [b"x"])
        assert await reasons.get() is None
        assert await dialled.told() is None

    play(kind, story, start_server=False)


def test_two_loops_in_two_threads_talk_within_the_process() -> None:
    """The far end answers from its own thread, and all answers come in order."""
    address = address_for("inproc")
    ready, stop = threading.Event(), threading.Event()

    def serve() -> None:
        async def main() -> None:
            async with service(address) as served:
                ready.set()
                end = await served.end()
                await end.heard(300)
                end.connection.send(end.messages)
                await end.told()
                stop.set()

        asyncio.run(main())

    async def main() -> None:
        connection = await connect(address, KEYS, "client", DECODER, timeout_seconds=5)
        dialled = End(connection)
        for number in range(300):
            connection.send([Note(number)])
        assert [note.number for note in await dialled.heard(300)] == list(range(300))
        connection.close()
        await connection.wait_closed()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    asyncio.run(main())
    assert stop.wait(10)
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_that_was_sent_may_be_used_again(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        messages = [Note(1), Note(2)]
        dialled.connection.send(messages)
        messages.clear()
        assert await accepted.heard(2) == [Note(1), Note(2)]

    play(kind, story)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_close_does_not_wait_for_ever_for_a_peer_that_does_not_read(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.close()
        async with asyncio.timeout(5):
            assert await dialled.told() is None

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_with_unread_bytes_is_still_a_clean_end_for_the_peer(kind: str) -> None:
    """A socket that is simply closed then resets the connection, and may take our tail along."""

    async def story(dialled: End, accepted: End) -> None:
        accepted.connection.send([Note(number) for number in range(1000)])
        dialled.connection.send([Note(1)])
        dialled.connection.close()
        assert await accepted.told() is None
        assert accepted.messages == [Note(1)]

    play(kind, story, start_client=False)
