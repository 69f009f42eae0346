"""What the nannies of this process have logged; they share a log, as they share a logger."""

from __future__ import annotations

import threading
from typing import Any, Final

import msgspec

from shoal import config
from shoal.observe.logs import RecentLogs
from shoal.protocol.running import Outcome

LOGGERS: Final = ("shoal.nanny", "distributed.nanny")
_beginning: Final = threading.Lock()
_remembered: Final[list[RecentLogs]] = []


def remember_logs() -> RecentLogs:
    """What is logged, from the first call on and as long as this process lives."""
    with _beginning:
        if not _remembered:
            lines_max = config.read(config.Histories).log_records_max
            _remembered.append(RecentLogs(lines_max, *LOGGERS))
        return _remembered[0]


async def on_logs(nanny: Any, argument: bytes) -> Outcome:
    """The latest lines; `argument`: how many, packed, or None for all."""
    latest = remember_logs().latest(msgspec.msgpack.decode(argument, type=int | None))
    return Outcome(msgspec.msgpack.encode(latest))
