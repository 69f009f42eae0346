"""What workers write and log, told to clients under topics."""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

from shoal.observe.hooks import WorkerPlugin
from shoal.observe.inside import this_process
from shoal.observe.saying import PRINT

STREAMS: Final = {"stdout": 1, "stderr": 2}
"""Attribute of `sys` -> the number by which clients know it."""


LINE_MAX: Final = 1 << 16
"""Characters of a line that are kept while its end has not come."""


class ForwardOutput(WorkerPlugin):
    """Has clients print what is written to a worker's stdout and stderr by Python."""

    def __init__(self) -> None:
        self._taps: list[_Tap] = []

    def setup(self, worker: Any) -> None:
        """From now on."""
        self._taps += [_Tap(worker, name) for name in STREAMS]

    def teardown(self, worker: Any) -> None:
        """No more."""
        for tap in reversed(self._taps):  # the last one stands before the others
            if tap.worker is worker:
                tap.end()
        self._taps = [tap for tap in self._taps if tap.worker is not worker]


class _Tap:
    """Stands in the place of a stream, and tells what goes through it, line by line."""

    def __init__(self, worker: Any, name: str) -> None:
        self.worker = worker
        self._name = name
        self._stream = getattr(sys, name)
        self._line = ""
        self._turn = threading.Lock()  # tasks write from their threads
        self._is_open = True
        setattr(sys, name, self)

    def write(self, text: str) -> Any:
        """Write, and tell whole lines."""
        written = self._stream.write(text)
        if self._is_open:
            with self._turn:
                whole, self._line = _cut(self._line + text)
            if whole:
                self._tell(whole)
        return written

    def flush(self) -> None:
        """Write, and tell what has no end yet."""
        self._stream.flush()
        with self._turn:
            text, self._line = self._line, ""
        if self._is_open and text:
            self._tell(text)

    def end(self) -> None:
        """Tell no more; the stream is in its place again, unless somebody stands before us."""
        self.flush()
        self._is_open = False
        if getattr(sys, self._name) is self:
            setattr(sys, self._name, self._stream)

    def _tell(self, text: str) -> None:
        self.worker.log_event(
            PRINT,
            {
                "args": (text,),
                "sep": " ",
                "end": "",
                "file": STREAMS[self._name],
                "flush": True,
                "home": this_process(),
            },
        )

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's."""
        return getattr(self._stream, name)


def _cut(text: str) -> tuple[str, str]:
    """Whole lines, and what has no end yet; a line that has grown too long is cut."""
    end = len(text) if len(text) > LINE_MAX and "\n" not in text else text.rfind("\n") + 1
    return text[:end], text[end:]


class ForwardLoggingPlugin(WorkerPlugin):
    """Tells what a logger of the workers logs, under a topic."""

    def __init__(self, logger_name: str | None, level: int, topic: str) -> None:
        """`logger_name`: None: the root logger; `level`: records below it are not told."""
        self.name = topic
        self.logger_name = logger_name or ""
        self.level = level
        self.topic = topic

    def setup(self, worker: Any) -> None:
        """From now on."""
        worker.log_forwarding.forward(self.topic, self.logger_name, self.level)

    def teardown(self, worker: Any) -> None:
        """No more."""
        worker.log_forwarding.forward(self.topic, self.logger_name, None)
