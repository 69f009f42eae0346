"""A process's channel to whoever has started it: what it is told, and when it shall end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from shoal.nanny.questions import ANSWER, PREPARE, TOPICS, Asking, value_of
from shoal.observe.reasons import TERMINATED
from shoal.protocol.running import Outcome

TEARDOWN_SECONDS_MAX: Final = 2.5
"""What plugins and preloads of a service may take that was asked to close; the rest is for it."""

CLOSE_SECONDS_MAX: Final = 4.0
"""A service that has not closed this long after it was asked to is ended all the same."""


class Lifeline:
    """The channel to the parent, read by a thread, since a task may hold up the loop."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._loop: asyncio.AbstractEventLoop | None = None
        self._go: asyncio.Future[dict[str, Any]] | None = None
        self._end: asyncio.Future[str] | None = None
        self._turn = threading.Lock()
        self._unsaid: deque[bytes] = deque()  # begun, perhaps; a thread says it
        self._saying: threading.Thread | None = None
        self._asking = Asking(self.tell)
        self.on_told: Callable[[list[str], bytes], None] | None = None
        """Tells what the parent wants to be told, under topics; on the loop."""
        self.on_prepare: Callable[[], None] | None = None
        """Does what is to be done before others end; on the loop."""

    def watch(self) -> None:
        """Start to listen, on behalf of the running loop."""
        self._loop = asyncio.get_running_loop()
        self._go = self._loop.create_future()
        self._end = self._loop.create_future()
        self._loop.add_signal_handler(signal.SIGTERM, self._set, self._end, TERMINATED)
        threading.Thread(target=self._listen, name="shoal-lifeline", daemon=True).start()

    async def told_to_go(self) -> dict[str, Any] | None:
        """Wait for the word, and what it says; None if the end came first."""
        assert self._go is not None
        assert self._end is not None
        await asyncio.wait((self._go, self._end), return_when=asyncio.FIRST_COMPLETED)
        return None if self._end.done() else self._go.result()

    async def ended(self) -> str:
        """Wait until the parent lets go of us, or somebody sends SIGTERM; which of them it was."""
        assert self._end is not None
        return await asyncio.shield(self._end)

    async def ask(self, operation: str, argument: bytes) -> Outcome:
        """Have the parent, a nanny, do something; see `nanny/plugins.py`."""
        return await self._asking.ask(operation, argument)

    def tell(self, what: Mapping[str, Any]) -> None:
        """Say `what` to the parent; nothing happens if it is gone.

        What doesn't fit into the channel at once is said by a thread, so that nobody waits here.
        """
        line = json.dumps(what).encode() + b"\n"
        with self._turn:
            if self._saying is None:
                line = line[self._say_at_once(line) :]
            if line:
                self._unsaid.append(line)
            if self._unsaid and self._saying is None:
                self._saying = threading.Thread(target=self._say, name="shoal-words", daemon=True)
                self._saying.start()

    async def said_all(self) -> None:
        """Wait until everything is said that was told, or the parent is gone."""
        saying = self._saying
        if saying is not None:
            await asyncio.to_thread(saying.join)

    def _say_at_once(self, line: bytes) -> int:
        """How many bytes of it the channel has taken."""
        try:
            return self._channel.send(line, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            return len(line)  # the thread that listens sees it, too

    def _say(self) -> None:
        """Say what is unsaid; ends with that."""
        while True:
            with self._turn:
                if not self._unsaid:
                    self._saying = None
                    return
                line = self._unsaid.popleft()
            with contextlib.suppress(OSError):  # the thread that listens sees it, too
                self._channel.sendall(line)

    def _listen(self) -> None:
        try:
            with self._channel.makefile("rb") as lines:
                for line in lines:
                    words = json.loads(line)
                    if ANSWER in words:
                        self._soon(self._asking.answered, words)
                    elif TOPICS in words:
                        self._soon(self._pass_on, words)
                    elif PREPARE in words:
                        self._soon(self._prepare)
                    else:
                        self._call(self._go, words)
        except OSError:
            pass  # the same as its end
        self._call(self._end, "the cluster closes")
        exit_within(CLOSE_SECONDS_MAX, 1)

    def _pass_on(self, words: Mapping[str, Any]) -> None:
        if self.on_told is not None:
            self.on_told(words[TOPICS], value_of(words))

    def _prepare(self) -> None:
        if self.on_prepare is not None:
            self.on_prepare()

    def _call(self, future: asyncio.Future[Any] | None, value: object) -> None:
        assert future is not None
        self._soon(self._set, future, value)

    def _soon(self, function: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # the loop has closed, and the process is about to end

    @staticmethod
    def _set(future: asyncio.Future[Any], value: object) -> None:
        if not future.done():
            future.set_result(value)


def exit_within(seconds: float, code: int) -> None:
    """End the process after so long, with this code, if it has not ended by itself."""
    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()
