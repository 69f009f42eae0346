"""What two ends say so that their conversation survives the connection that carries it.

A *stream* is that conversation: messages both ways, numbered from 1 by the order in which they
were sent.  The side that dialled begins it and, after a break, comes back with its name and with
how much it has heard; each side then says again what the other lacks.  These words are said by
connections, and never to a scheduler, worker or client; so they are no subject.  Each is in a frame
of its own with one empty buffer, which is how they are told from what they count.  Tags 440 to 447.
"""

from __future__ import annotations

from typing import Final

import msgspec


class StreamWord(msgspec.Struct, array_like=True, frozen=True):
    """One of them."""


class BeginStream(StreamWord, frozen=True, tag=440):
    """What follows belongs to a new stream; said first of all, and answered by StreamBegun."""

    name: bytes  # nobody else's, and nobody's guess
    window_seconds: float  # after a break, whoever said this comes back within it or not at all


class StreamBegun(StreamWord, frozen=True, tag=441):
    """How long a break will be waited out: no longer than was asked for, and 0 for not at all."""

    window_seconds: float


class ResumeStream(StreamWord, frozen=True, tag=442):
    """This connection carries on a stream; said first of all by who began it.

    Answered by StreamResumed or StreamForgotten.
    """

    name: bytes
    nreceived: int  # messages of the other side that have arrived


class StreamResumed(StreamWord, frozen=True, tag=443):
    """So it does; what you had not received follows."""

    nreceived: int  # messages of yours that have arrived


class StreamForgotten(StreamWord, frozen=True, tag=444):
    """There is no such stream, or it can't be completed any more."""


class TellReceived(StreamWord, frozen=True, tag=445):
    """Much is kept for a break: say how much of it has arrived."""


class MessagesReceived(StreamWord, frozen=True, tag=446):
    """So many messages have arrived, from the first on; they are needed no more."""

    nreceived: int


class EndStream(StreamWord, frozen=True, tag=447):
    """The end that follows is meant; nobody will come back."""


STREAM_WORDS: Final = (
    BeginStream
    | StreamBegun
    | ResumeStream
    | StreamResumed
    | StreamForgotten
    | TellReceived
    | MessagesReceived
    | EndStream
)
"""For decoders of connections that may carry streams."""
