"""The latest lines that services of a process have logged, for whoever asks."""

from __future__ import annotations

import html
import logging
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

FORMATTER: Final = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s")


WAS_FORWARDED: Final = "was_forwarded"
"""What a record has that came from a worker, so that no worker tells it once more."""


class Log(str):
    """Lines of a log, which a notebook shows in a frame."""

    def _repr_html_(self) -> str:
        return f"<pre><code>\n{html.escape(self)}\n</code></pre>"


class Logs(dict[str, Any]):
    """Name → its `Log`, which a notebook shows as sections that open."""

    def _repr_html_(self) -> str:
        sections = [
            f"<details>\n<summary>{html.escape(str(name))}</summary>\n"
            f"{Log(log)._repr_html_()}\n</details>"
            for name, log in sorted(self.items(), key=lambda item: str(item[0]))
        ]
        return "\n".join(sections)


class RecentLogs(logging.Handler):
    """Remembers lines of some loggers; what is shown elsewhere is not changed by it.

    Cost: nothing but for what is logged, which is 10 us a line.
    """

    def __init__(self, lines_max: int, *loggers: str) -> None:
        """Begin to listen.

        Args:
            lines_max: so many are kept, the latest.
            loggers: their names.
        """
        super().__init__()
        self._lines: deque[tuple[float, str, str]] = deque(maxlen=lines_max)
        self._loggers = [logging.getLogger(name) for name in loggers]
        for logger in self._loggers:
            logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; if there is no other handler, do what would be done without us."""
        try:
            text = FORMATTER.format(record)
        except Exception:  # its arguments do not fit
            self.handleError(record)
            return
        self._lines.append((record.created, record.levelname, text))
        fallback = logging.lastResort
        if fallback is not None and record.levelno >= fallback.level and self._is_first(record):
            fallback.handle(record)

    def latest(self, n: int | None = None) -> list[tuple[str, str]]:
        """Level and text of the latest `n` lines, the newest first; None: all that are kept."""
        return [(level, text) for _, level, text in self.lines(n)]

    def lines(self, n: int | None = None) -> list[tuple[float, str, str]]:
        """As `latest`, with the time (s, wall clock) of each before it."""
        lines = list(self._lines)
        lines.reverse()
        return lines if n is None else lines[: max(0, n)]

    def close(self) -> None:
        """Listen no more; what was heard can still be read."""
        for logger in self._loggers:
            logger.removeHandler(self)
        super().close()

    def _is_first(self, record: logging.LogRecord) -> bool:
        """Whether only such as we hear the record, and we are the first of them."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        first: RecentLogs | None = None
        while logger is not None:
            for handler in logger.handlers:
                if not isinstance(handler, RecentLogs):
                    return False
                first = first or handler
            logger = logger.parent if logger.propagate else None
        return first is self


def shown_lines(
    lines: list[tuple[float, str, str]], start: float, n: int | None, timestamps: bool
) -> list[tuple[Any, ...]]:
    """Lines as `get_logs` of a service shows them: since `start`, `n` at most."""
    since = [line for line in lines if line[0] >= start]
    chosen = since if n is None else since[: max(0, n)]
    return [line if timestamps else line[1:] for line in chosen]


def text_of(lines: Iterable[tuple[str, str]]) -> Log:
    """Lines as one text."""
    return Log("\n".join(text for _, text in lines))
