"""What a zygote and the process that owns it say to each other.

A request has one length, and carries descriptors; without any, it asks for no process, but that
modules be imported (see `warming`).  Its answers, lines of JSON, come on a socket of
its own, one of those descriptors: that the process runs, and in the end how it ended.  So nothing
has to be told apart, and whoever waits for one process is told of that one only.  A socket that
ends before the last answer says that the zygote is gone.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

DESCRIPTORS_MAX: Final = 32
"""Of one request."""

ANSWER_BYTES_MAX: Final = 4096

_REQUEST: Final = struct.Struct("<Qd")
_FLAGS: Final = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))


def send_request(
    control: socket.socket,
    descriptors: Sequence[int],
    kill_above_nbytes: int,
    interval_seconds: float,
) -> None:
    """Ask for a process.

    Args:
        descriptors: where to answer, then the four of `birth.Birth`, then others to inherit.
        kill_above_nbytes: end it when its resident memory is more than this; 0: never.
        interval_seconds: how often to look.

    Raises:
        OSError: the zygote is gone.
    """
    request = _REQUEST.pack(kill_above_nbytes, interval_seconds)
    socket.send_fds(control, [request], list(descriptors))  # short: written whole, or not at all


def send_loaded(control: socket.socket, loaded: int) -> None:
    """Say which modules should be at hand: a bit for each, as in `warming.CANDIDATES`.

    Raises:
        OSError: the zygote is gone.
    """
    control.sendall(_REQUEST.pack(loaded, 0.0))


def receive_request(control: socket.socket) -> tuple[list[int], int, float] | None:
    """The next request, as it was sent; None: nobody will ask any more."""
    text, descriptors = b"", []
    while len(text) < _REQUEST.size:
        try:
            piece, found, _, _ = socket.recv_fds(
                control, _REQUEST.size - len(text), DESCRIPTORS_MAX, _FLAGS
            )
        except ConnectionError:
            piece, found = b"", []
        descriptors += found
        if not piece:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        text += piece
    kill_above_nbytes, interval_seconds = _REQUEST.unpack(text)
    return descriptors, kill_above_nbytes, interval_seconds


def answer(
    report: socket.socket, words: Mapping[str, Any], descriptors: Sequence[int] = ()
) -> None:
    """Say `words` to who has asked; nothing happens if nobody listens any more."""
    line = json.dumps(words).encode() + b"\n"
    try:
        if descriptors:
            socket.send_fds(report, [line], list(descriptors))
        else:
            report.send(line)
    except OSError:
        pass  # the owner has died, or doesn't want to know


def receive_answer(report: socket.socket) -> tuple[bytes, list[int]]:
    """A piece of the answers, and descriptors that came with it; no bytes: there will be no more.

    Raises:
        BlockingIOError: the socket doesn't block, and there is nothing yet.
    """
    try:
        piece, descriptors, _, _ = socket.recv_fds(report, ANSWER_BYTES_MAX, 1, _FLAGS)
    except BlockingIOError:
        raise
    except OSError:
        return b"", []
    return piece, descriptors
