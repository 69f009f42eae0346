"""Messages that go together."""

import asyncio

import pytest

from shoal.comms.errors import CommClosedError
from shoal.compat.comm import mailbox
from shoal.compat.comm.batched import BatchedSend
from shoal.compat.serialising.wrappers import to_serialize
from tests.unit.compat.test_comms import pair, play


def test_what_came_before_the_start_and_in_one_go_is_one_list():
    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            batched = BatchedSend(interval="10ms")
            batched.send("a", "b")
            assert "2 in buffer" in repr(batched)
            batched.start(ours)
            assert await theirs.read() == ("a", "b")
            batched.send("c")
            batched.send("d")
            assert await theirs.read() == ("c", "d")
            assert (batched.message_count, batched.batch_count) == (4, 2)
            assert batched.byte_count > 4
            await batched.close()

    play(scenario)


def test_closing_sends_what_is_left_and_then_nothing_can_be_sent():
    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            batched = BatchedSend(interval=10)
            batched.start(ours)
            batched.send("last")
            await batched.close()
            assert await theirs.read() == ("last",)
            with pytest.raises(CommClosedError):
                batched.send("too late")
            await batched.close()
        await BatchedSend(interval=10).close()

    play(scenario)


def test_closing_gives_up_on_a_peer_that_does_not_read(monkeypatch):
    monkeypatch.setattr(mailbox, "WINDOW_NBYTES", 1_000)

    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, _):
            batched = BatchedSend(interval=10)
            batched.start(ours)
            batched.send(bytes(2_000))
            while batched.batch_count < 1:
                await asyncio.sleep(0)
            batched.send("there is no room for this one")
            await batched.close(timeout=0.05)
            assert ours.closed()

    play(scenario)


def test_what_cannot_be_sent_ends_the_comm_and_is_in_the_log(caplog):
    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            batched = BatchedSend(interval=10, serializers=["msgpack"])
            batched.start(ours)
            batched.send({"x": to_serialize(print)})
            with pytest.raises(CommClosedError):
                await theirs.read()
            assert batched.closed()

    play(scenario)
    assert "Could not serialize object of type" in caplog.text
