"""`distributed.utils`: logs, as text to look at and as handlers and filters of `logging`."""

from __future__ import annotations

import logging
import re
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from dask.utils import parse_timedelta

from shoal.observe.logs import Log, Logs

__all__ = [
    "DequeHandler",
    "Log",
    "Logs",
    "RateLimiterFilter",
    "reset_logger_locks",
    "silence_logging_cmgr",
]


class DequeHandler(logging.Handler):
    """Keeps the last `n` records of a logger, in `deque`; None: all."""

    _instances: ClassVar[weakref.WeakSet[DequeHandler]] = weakref.WeakSet()

    def __init__(self, *args: Any, n: int | None = 10000, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.deque: deque[logging.LogRecord] = deque(maxlen=n)
        self._instances.add(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.deque.append(record)

    def clear(self) -> None:
        """Forget them."""
        self.deque.clear()

    @classmethod
    def clear_all_instances(cls) -> None:
        """Every handler of this kind forgets."""
        for handler in list(cls._instances):
            handler.clear()


class RateLimiterFilter(logging.Filter):
    """Lets records whose message matches a pattern pass once in `rate` at most."""

    def __init__(self, pattern: str, *, name: str = "", rate: str | float = "10s") -> None:
        super().__init__(name)
        self.pattern = re.compile(pattern)
        self.rate: float = parse_timedelta(rate)
        self._next_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record may pass."""
        if self.pattern.match(record.getMessage()):
            now = time.monotonic()
            if now < self._next_at:
                return False
            self._next_at = now + self.rate
        return bool(super().filter(record))

    @classmethod
    def reset_timer(cls, logger: logging.Logger | str) -> None:
        """Have the filters of a logger let the next matching record pass."""
        found = logging.getLogger(logger) if isinstance(logger, str) else logger
        for limiter in found.filters:
            if isinstance(limiter, cls):
                limiter._next_at = float("-inf")


@contextmanager
def silence_logging_cmgr(level: str | int, root: str = "distributed") -> Iterator[None]:
    """Have the handlers of a logger pass over what is below `level`, meanwhile."""
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    root = "shoal" + root.removeprefix("distributed") if root.startswith("distributed") else root
    handlers = [
        handler
        for handler in logging.getLogger(root).handlers
        if isinstance(handler, logging.StreamHandler)
    ]
    before = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(max(number, handler.level))
    try:
        yield
    finally:
        for handler, old in zip(handlers, before, strict=True):
            handler.setLevel(old)


def reset_logger_locks() -> None:
    """Give every handler a new lock: a fork may have copied one that is held."""
    for name in list(logging.root.manager.loggerDict):
        for handler in logging.getLogger(name).handlers:
            handler.createLock()
