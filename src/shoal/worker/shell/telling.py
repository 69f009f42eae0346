"""What a worker, and the code of its tasks, tells under topics; records of its logs among it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from shoal import config
from shoal.comms import FrameTooLarge
from shoal.observe.inside import this_process
from shoal.observe.logs import WAS_FORWARDED, RecentLogs, shown_lines
from shoal.protocol.messages import Message
from shoal.protocol.payload import dump_function as dump
from shoal.protocol.topics import TellTopicsOfWorker, topic_names
from shoal.worker.shell.link import SchedulerLink

logger = logging.getLogger("shoal.worker")

LOGGERS: Final = ("shoal.worker", "distributed.worker")
"""What workers log to, and what code of tasks does that knows the name of old."""

_FORMATTER: Final = logging.Formatter()


class Telling:
    """The part of a worker that tells what happens, and remembers what it has logged."""

    address: str
    _loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.log_forwarding = LogForwarding(self.log_event)
        self.recent_logs: RecentLogs | None = None
        self._link: SchedulerLink | None = None
        self._unsaid: deque[Message] = deque()
        self._is_about_to_say = False

    def _begin_telling(self) -> None:
        """Remember from now on what is logged."""
        self.recent_logs = RecentLogs(config.read(config.Histories).log_records_max, *LOGGERS)

    def _end_telling(self) -> None:
        """Tell no more, and listen no more."""
        self.log_forwarding.close()
        self._link = None
        if self.recent_logs is not None:
            self.recent_logs.close()

    def log_event(self, topic: str | Collection[str], msg: Any) -> None:
        """Tell something under a topic, or several; nobody hears it if there is no scheduler.

        From any thread.

        Args:
            topic: names.
            msg: any value that can be pickled; a dict gets this worker's address as `worker`.

        Raises:
            TypeError: a topic is no text.
            Exception: the value can't be pickled.
        """
        if self._link is not None:
            message = event_of(topic, msg, self.address)
            self.tell_topics(message.topics, message.value)

    def tell_topics(self, topics: list[str], value: bytes) -> None:
        """As `log_event`, of a value that is pickled."""
        self.tell_scheduler(TellTopicsOfWorker(topics, value))

    def tell_scheduler(self, message: Message) -> None:
        """Have it said before the ends of runs that end from now on.  From any thread."""
        if self._link is None:
            return
        self._unsaid.append(message)
        if self._is_about_to_say:
            return
        self._is_about_to_say = True
        try:
            self._loop.call_soon_threadsafe(self._say)
        except RuntimeError:
            pass  # the loop was closed under a task that was left behind

    def say_topics(self) -> None:
        """Send what was told and has not been sent; on the loop.  Cost: 0.1 us if there is none."""
        if self._unsaid:
            self._say()

    def _say(self) -> None:
        """Send all that gathered meanwhile in one frame, however many lines a task prints."""
        self._is_about_to_say = False  # before we look, so that no later event is missed
        messages = [self._unsaid.popleft() for _ in range(len(self._unsaid))]
        link = self._link
        if link is None or not messages:
            return
        try:
            link.send(messages)
        except FrameTooLarge:
            for message in messages:
                try:
                    link.send([message])
                except FrameTooLarge as error:
                    what = getattr(message, "topics", type(message).__name__)
                    logger.warning("An event of %s is not told: %s", what, error)

    def get_logs(self, start: float = 0, n: int | None = None, timestamps: bool = False) -> Any:
        """What it has logged, the newest first.

        Args:
            start: seconds since the epoch; nothing from before.
            n: so many lines; None: all that are kept.
            timestamps: give the time of each line as well, before it.
        """
        lines = [] if self.recent_logs is None else self.recent_logs.lines()
        return shown_lines(lines, start, n, timestamps)


def event_of(topics: str | Collection[str], value: Any, address: str) -> TellTopicsOfWorker:
    """The message that tells `value` under topics; a mapping says who tells it.

    Raises:
        TypeError: a topic is no text.
        Exception: the value can't be pickled.
    """
    names = topic_names(topics)
    if type(value) is dict:
        value = {**value, "worker": address}
    return TellTopicsOfWorker(names, dump(value))


class LogForwarding:
    """Has log records told under topics, for as long as somebody wants them."""

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        """`tell`: tells a value under a topic; from any thread."""
        self._tell = tell
        self._handlers: dict[tuple[str, str], _Forwarder] = {}

    def forward(self, topic: str, logger: str, level: int | None) -> None:
        """Tell the records of a logger from `level` on; None: no more."""
        handler = self._handlers.pop((topic, logger), None)
        if handler is not None:
            logging.getLogger(logger).removeHandler(handler)
        if level is not None:
            handler = _Forwarder(topic, level, self._tell)
            self._handlers[topic, logger] = handler
            logging.getLogger(logger).addHandler(handler)

    def close(self) -> None:
        """Tell nothing any more."""
        for topic, logger in list(self._handlers):
            self.forward(topic, logger, None)


class _Forwarder(logging.Handler):
    """Tells records under a topic."""

    def __init__(self, topic: str, level: int, tell: Callable[[str, Any], None]) -> None:
        super().__init__(level)
        self._topic = topic
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it, unless it came from a worker itself."""
        if hasattr(record, WAS_FORWARDED):
            return
        try:
            self._tell(self._topic, facts_of(record))
        except Exception:
            self.handleError(record)


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """A record in plain values, of which `logging.makeLogRecord` makes one like it."""
    exception_text = record.exc_text
    if record.exc_info and not exception_text:
        exception_text = _FORMATTER.formatException(record.exc_info)
    return {
        "name": record.name,
        "msg": record.getMessage(),
        "args": None,
        "levelname": record.levelname,
        "levelno": record.levelno,
        "pathname": record.pathname,
        "filename": record.filename,
        "module": record.module,
        "exc_info": None,
        "exc_text": exception_text,
        "stack_info": record.stack_info,
        "lineno": record.lineno,
        "funcName": record.funcName,
        "created": record.created,
        "msecs": record.msecs,
        "relativeCreated": record.relativeCreated,
        "thread": record.thread,
        "threadName": record.threadName,
        "processName": record.processName,
        "process": record.process,
        "home": this_process(),
        WAS_FORWARDED: True,
    }
