"""What the scheduler and the workers have logged, and what workers log from now on."""

from __future__ import annotations

import logging
from typing import Any

from shoal.client.control.topics import Topics
from shoal.observe.inside import this_process
from shoal.protocol import logs
from shoal.protocol.operations import worker_names


class LogRecords(Topics):
    """`get_scheduler_logs`, `get_worker_logs`, `forward_logging` and `unforward_logging`."""

    async def get_scheduler_logs(self, n: int | None = None) -> tuple[tuple[str, str], ...]:
        """What the scheduler has logged: level and text, the newest first.

        Args:
            n: so many lines; None: all that it has kept.
        """
        lines: list[logs.LogLine] = await self.session.call(
            lambda request: logs.SchedulerLogs(request, n)
        )
        return tuple(lines)

    async def get_worker_logs(
        self, n: int | None = None, workers: Any = None, nanny: bool = False
    ) -> dict[str, tuple[tuple[str, str], ...]]:
        """What workers have logged: worker -> level and text, the newest first.

        Workers of one process share a log.  A worker that is lost meanwhile is left out.

        Args:
            n: so many lines of each; None: all that they have kept.
            workers: addresses or names; None: all.
            nanny: of the nannies instead; a worker without one is left out.
        """
        names = None if workers is None else worker_names(workers)
        found: dict[str, list[logs.LogLine]] = await self.session.call(
            lambda request: logs.WorkerLogs(request, n, names, nanny)
        )
        return {worker: tuple(lines) for worker, lines in found.items()}

    async def forward_logging(
        self, logger_name: str | None = None, level: int = logging.NOTSET
    ) -> None:
        """Have what a logger logs in workers handled here, by the logger of that name.

        Which records there are is for the logger's own level in each worker to say.  It lasts until
        `unforward_logging`, or until this client goes, and holds for workers that come later.

        Args:
            logger_name: None: the root logger.
            level: records below it are not forwarded.
        """
        name = logger_name or ""
        self.subscribe_topic(_topic(name), Forwarded(level))
        await self.session.call(
            lambda request: logs.ForwardLogs(request, _topic(name), name, level)
        )

    async def unforward_logging(self, logger_name: str | None = None) -> None:
        """End `forward_logging`.

        Raises:
            ValueError: that logger is not forwarded.
        """
        name = logger_name or ""
        self.unsubscribe_topic(_topic(name))
        await self.session.call(lambda request: logs.ForwardLogs(request, _topic(name), name, None))


def _topic(logger: str) -> str:
    return f"forwarded-log-record-forward-logging-{logger or 'root'}"


class Forwarded:
    """Handles records of workers here; those of this very process are handled already."""

    def __init__(self, level: int) -> None:
        self._level = level

    def __call__(self, event: tuple[float, dict[str, Any]]) -> None:
        facts = dict(event[1])
        if facts.pop("home", None) != this_process():
            record = logging.makeLogRecord(facts)
            if record.levelno >= self._level:
                logging.getLogger(record.name).handle(record)
