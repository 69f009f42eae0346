"""Logs of services: what they remember, and records that workers send on as they come.

Free tags: 299, for `datasets`, `topics` and `metadata` as well.
"""

from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject

LogLine = tuple[str, str]
"""Name of a level, and the text."""


class SchedulerLogs(Message, frozen=True, tag=294):
    """The latest `n` lines of the scheduler's log, the newest first; None: all that are kept."""

    request: int
    n: int | None = None


class WorkerLogs(Message, frozen=True, tag=295):
    """The same of workers: address -> lines.  A worker that is lost meanwhile has none."""

    request: int
    n: int | None = None
    workers: list[str] | None = None  # addresses, names or hosts; None: all
    nanny: bool = False  # of who keeps the worker's process; one without such is left out


class RecentLogs(Message, frozen=True, tag=296):
    """The same of the worker that is asked."""

    request: int
    n: int | None = None


class ForwardLogs(Message, frozen=True, tag=297):
    """A client wants the log records of a logger in all workers, those that join later as well,
    told under `topic`; answered once the workers are being told.  `level` None: not any more."""

    request: int
    topic: str
    logger: str  # "": the root
    level: int | None


class ForwardLogsOf(Message, frozen=True, tag=298):
    """Tell records of a logger under `topic`; `level` None: not any more."""

    topic: str
    logger: str
    level: int | None


SUBJECT = Subject(
    from_client={
        SchedulerLogs: list[LogLine],
        WorkerLogs: dict[str, list[LogLine]],
        ForwardLogs: None,
    },
    to_worker={
        RecentLogs: list[LogLine],
        ForwardLogsOf: UNANSWERED,
    },
)
