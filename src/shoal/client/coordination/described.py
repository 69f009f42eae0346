"""What the scheduler tells of coordination, in plain types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from shoal.ids import Key
from shoal.protocol.coordination import Claimant, NamedDescription
from shoal.protocol.keys import from_canonical

KINDS: Final = {
    "lock": "locks",
    "joint lock": "multi_locks",
    "event": "events",
    "queue": "queues",
    "variable": "variables",
    "channel": "channels",
}
"""Kind → its name in what is shown."""


def claimant_of(part: Claimant) -> dict[str, Any]:
    """Who holds something, or waits for it; None where there is nothing to tell."""
    return {
        "client": part.client,
        "task": from_canonical(Key(part.task)) if part.task else None,
        "worker": part.worker or None,
        "seconds": part.seconds,
    }


def described(found: Iterable[NamedDescription]) -> dict[str, dict[Any, dict[str, Any]]]:
    """Kind → name → what is known of it."""
    shown: dict[str, dict[Any, dict[str, Any]]] = {kind: {} for kind in KINDS.values()}
    for part in found:
        shown[KINDS[part.kind]][from_canonical(Key(part.name))] = _facts_of(part)
    return shown


def _facts_of(part: NamedDescription) -> dict[str, Any]:
    waiting = [claimant_of(claimant) for claimant in part.waiting]
    holders = [claimant_of(claimant) for claimant in part.holders]
    match part.kind:
        case "lock" | "joint lock":
            holder = holders[0] if holders else None
            leases = {"max_leases": part.size_max, "holders": holders}
            return {"holder": holder, "waiting": waiting, **leases}
        case "queue":
            return {"size": part.size, "maxsize": part.size_max, "waiting": waiting}
        case "channel":
            return {"subscribers": holders}
        case _:
            return {"is_set": bool(part.size), "waiting": waiting}
