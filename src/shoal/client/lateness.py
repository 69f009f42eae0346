"""Why futures have not ended in time: what the scheduler says of them, for TimeoutErrors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from shoal.client.machine import UNRESOLVED, Record
from shoal.comms import CallTimeoutError
from shoal.errors import ShoalError
from shoal.protocol.keys import to_text
from shoal.protocol.placement import ExplainTasks

POLL_SECONDS: Final = 0.5
"""Whoever waits for less asks again and again, and reads no text."""

ANSWER_SECONDS_MAX: Final = 1.0
"""By so much may a wait be longer than its user has allowed, if the scheduler is busy."""

KEYS_MAX: Final = 3
"""Futures that are explained; those that were asked for first."""


async def why_late(session: Any, records: Iterable[Record], seconds: float | None) -> str:
    """What these wait for, in lines of which each follows a line break; "" if nobody can say.

    Args:
        session: the records'.
        seconds: for how long they were waited for.
    """
    if seconds is None or seconds < POLL_SECONDS or not session.is_open:
        return ""
    if session.is_away:
        return "\nThe connection to the scheduler is lost, and it is being looked for."
    late = [record for record in dict.fromkeys(records) if record.status in UNRESOLVED]
    asked = late or list(dict.fromkeys(records))  # those are there, and have not come yet
    keys = [record.key for record in asked[:KEYS_MAX]]
    patience_seconds = min(seconds, ANSWER_SECONDS_MAX)
    try:
        lines: list[str] = await session.call(
            lambda request: ExplainTasks(request, keys), timeout_seconds=patience_seconds
        )
    except CallTimeoutError:
        return (
            f"\nThe scheduler has not said why within {patience_seconds:g} s: it is busy, or can't "
            "be reached."
        )
    except (OSError, ShoalError):  # the connection has ended; a text must not fail
        return ""
    return "".join(f"\n{line}" for line in lines)


async def late(session: Any, record: Record, seconds: float | None) -> TimeoutError:
    """What to raise for a record that has not ended in time."""
    why = await why_late(session, [record], seconds)
    return TimeoutError(f"{to_text(record.key)} has not ended within {seconds:g} s{why}")
