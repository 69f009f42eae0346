"""What programs ask over HTTP, whichever server carries the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from shoal import config
from shoal.web.feeds.counts import counts, nawaited_in
from shoal.web.shown import Shown

SECURITY_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        ),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "SAMEORIGIN",
    }
)
"""With every answer: a page may load what is ours alone, and be framed by our own host alone."""

_SLICE: Final = 10_000
"""Tasks that are looked at before others have the loop: about a millisecond."""


class Answer(NamedTuple):
    """A body and its type."""

    content_type: str
    body: bytes


async def health(scheduler: Shown) -> Answer:
    """That the loop still turns."""
    return Answer("text/plain", b"ok")


async def counts_as_json(scheduler: Shown) -> Answer:
    """See `feeds.counts`.  Cost: O(workers + prefixes); O(tasks), in slices, if some wait."""
    state = scheduler.machine.state
    nawaited = 0
    if state.ntasks["waiting"]:
        tasks = list(state.tasks.values())
        for start in range(0, len(tasks), _SLICE):
            nawaited += nawaited_in(tasks[start : start + _SLICE])
            await asyncio.sleep(0)
    target_seconds = config.read(config.Adaptive).target_seconds
    found = counts(state, nawaited, target_seconds)
    return Answer("application/json", msgspec.json.encode(found))


ANSWERS: Final[Mapping[str, Callable[[Shown], Awaitable[Answer]]]] = MappingProxyType(
    {"/health": health, "/json/counts.json": counts_as_json}
)
"""By path."""
