"""A connection that was started, and turns out to be for somebody else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from shoal.comms.transport import Connection, OnClosed, OnMessages


class Lent:
    """A `Connection` to whoever gets it, who starts it as if nobody had.

    Whoever has really started it passes on what comes, by `hear` and `end`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._early: list[tuple[list[msgspec.Struct], list[Any]]] = []
        self._on_messages: OnMessages | None = None
        self._on_closed: OnClosed | None = None
        self._ended: tuple[Exception | None] | None = None  # (why,), if nobody was told yet
        self._left = False  # by whoever has it: nothing more is to be heard

    def __repr__(self) -> str:
        return repr(self._connection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """See `Connection.start`."""
        self._on_messages, self._on_closed = on_messages, on_closed
        if self._early or self._ended is not None:
            asyncio.get_running_loop().call_soon(self._pass_on)

    def hear(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        """This has come."""
        if self._on_messages is None or self._early:
            self._early.append((messages, buffers))  # in order, after what is still to be heard
        else:
            self._on_messages(messages, buffers)

    def _pass_on(self) -> None:
        if self._on_messages is None or self._on_closed is None:
            return  # `start` will ask again, or it is over
        early, self._early = self._early, []
        for messages, buffers in early:
            if not self._left:
                self._on_messages(messages, buffers)
        if self._ended is not None:
            (reason,), self._ended = self._ended, None
            on_closed, self._on_messages, self._on_closed = self._on_closed, None, None
            on_closed(reason)

    def close(self) -> None:
        """See `Connection.close`."""
        self._left = True
        self._connection.close()

    def abort(self) -> None:
        """See `Connection.abort`."""
        self._left = True
        self._connection.abort()

    def end(self, reason: Exception | None) -> None:
        """It has ended."""
        self._ended = (reason,)
        self._pass_on()
