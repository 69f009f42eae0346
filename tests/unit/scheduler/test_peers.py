"""What a scheduler sends to one peer: within what a frame may hold, and what the peer reads."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from shoal.comms import FrameTooLarge
from shoal.protocol.answers import Answer, Refusal, answer
from shoal.protocol.messages import Message
from shoal.protocol.topics import TopicEvent
from shoal.scheduler.shell.peers import UNSENT_BYTES_MAX, Peer


class Wire:
    """A connection that takes frames of so many messages or bytes, and says what it sent."""

    peer_address = "tcp://c:1"
    closed = False

    def __init__(self) -> None:
        self.unsent_nbytes = 0
        self.sent: list[list[Message]] = []

    def start(self, *heard: Any) -> None:
        """Nobody speaks."""

    def send(self, messages: Sequence[Message]) -> None:
        """Answers of 100 bytes and more are too large."""
        for message in messages:
            if isinstance(message, Answer) and len(message.value) >= 100:
                raise FrameTooLarge("bytes of messages", len(message.value), 99)
        self.sent.append(list(messages))


def connect() -> tuple[Wire, Peer]:
    """Somebody has connected."""

    async def on_a_loop() -> tuple[Wire, Peer]:
        wire = Wire()
        return wire, Peer(cast(Any, None), cast(Any, wire))

    return asyncio.run(on_a_loop())


def test_whoever_asks_for_more_than_a_frame_holds_is_refused() -> None:
    """And what else is to be said is said; the connection goes on."""
    wire, peer = connect()
    peer.send([answer(1, "x"), answer(2, "x" * 100), answer(3, "y")])
    first, refused, last = [message for frame in wire.sent for message in frame]
    assert (first, last) == (answer(1, "x"), answer(3, "y"))
    assert isinstance(refused, Refusal)
    assert refused.request == 2
    assert "the limit is 99" in refused.failure.text

    wire.sent.clear()
    peer.send([answer(4, "x" * 100)])
    assert [type(message) for frame in wire.sent for message in frame] == [Refusal]


def test_whoever_does_not_read_misses_events_until_it_has_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is told all else, and the log says once what happens."""
    wire, peer = connect()
    event, other = TopicEvent("x", 0.0, b""), answer(1, "x")
    wire.unsent_nbytes = UNSENT_BYTES_MAX
    peer.send([event, other])
    assert wire.sent == [[event, other]]

    wire.sent.clear()
    wire.unsent_nbytes += 1
    peer.send([event])
    peer.send([event, other])
    wire.unsent_nbytes = 1
    peer.send([event])
    assert wire.sent == [[other]]
    assert len(caplog.records) == 1

    wire.sent.clear()
    wire.unsent_nbytes = 0
    peer.send([event])
    assert wire.sent == [[event]]
