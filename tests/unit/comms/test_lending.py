"""A connection that was started already, in the hands of somebody who starts it again."""

import asyncio
from typing import Any, cast

from shoal.comms.lending import Lent


class Wire:
    closed = False
    peer_address = "tcp://10.0.0.1:1"

    def abort(self):
        self.closed = True


def test_what_came_early_is_heard_first_and_the_end_last():
    async def scenario():
        heard: list[Any] = []
        lent = Lent(cast(Any, Wire()))
        lent.hear(["a"], [b"x"])
        lent.start(lambda messages, buffers: heard.append(messages), heard.append)
        lent.hear(["b"], [])
        assert heard == []
        await asyncio.sleep(0)
        lent.hear(["c"], [])
        lent.end(None)
        lent.hear(["d"], [])
        lent.end(None)
        return heard

    assert asyncio.run(scenario()) == [["a"], ["b"], ["c"], None]


def test_what_came_early_is_heard_though_it_ends_at_once():
    async def scenario():
        heard: list[Any] = []
        lent = Lent(cast(Any, Wire()))
        lent.hear(["a"], [])
        lent.start(lambda messages, buffers: heard.append(messages), heard.append)
        lent.end(None)
        await asyncio.sleep(0)
        return heard

    assert asyncio.run(scenario()) == [["a"], None]


def test_the_end_is_told_to_who_starts_it_later_with_what_came_before():
    async def scenario():
        heard: list[Any] = []
        wire = Wire()
        lent = Lent(cast(Any, wire))
        lent.hear(["a"], [])
        wire.closed = True  # as it is when the peer has gone
        lent.end(None)
        lent.start(lambda messages, buffers: heard.append(messages), heard.append)
        await asyncio.sleep(0)
        return heard

    assert asyncio.run(scenario()) == [["a"], None]


def test_who_ends_it_hears_nothing_more_but_that():
    async def scenario():
        heard: list[Any] = []
        lent = Lent(cast(Any, Wire()))
        lent.hear(["a"], [])
        lent.start(lambda messages, buffers: heard.append(messages), heard.append)
        lent.abort()
        lent.end(None)
        await asyncio.sleep(0)
        return heard

    assert asyncio.run(scenario()) == [None]


def test_it_is_else_as_the_connection_is():
    assert Lent(cast(Any, Wire())).peer_address == "tcp://10.0.0.1:1"
