"""Which tasks wait for what clients agree on by name, and who has it?  In lines for people."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from shoal.ids import Key
from shoal.protocol.keys import to_text
from shoal.scheduler.model.locks import Claim, Joint, Lock, Standing
from shoal.scheduler.model.state import SchedulerState
from shoal.units import format_seconds

CLAIMS_LOOKED_AT: Final = 20_000
"""Of all that wait, for all that is asked about at once; some ms."""

JUST_NOW_SECONDS: Final = 0.01

NAMED_MAX: Final = 4
"""Holders that are named; of more, how many there are."""


class Blocked:
    """Found when it is first asked for, and once for all that is asked about."""

    __slots__ = ("_now", "_state", "_waits")

    def __init__(self, state: SchedulerState, now: float) -> None:
        self._state = state
        self._now = now
        self._waits: dict[str, list[str]] | None = None  # by key of the task

    def lines(self, key: Key) -> list[str]:
        """W10: what the task of this key waits for as it runs; nothing if it does not.

        Cost: O(claims), the first time, up to `CLAIMS_LOOKED_AT`.
        """
        if self._waits is None:
            self._waits = {}
            for by, line in islice(self._all(), CLAIMS_LOOKED_AT):
                if by:
                    self._waits.setdefault(by, []).append(line)
        return self._waits.get(key, [])

    def _all(self) -> Iterator[tuple[str, str]]:
        """Whoever waits for anything, and a line about it."""
        state = self._state
        for name, lock in state.locks.items():
            for standing in lock.waiting.values():
                yield standing.by, self._on_lock(name, lock, standing)
        for joint in state.joints.claims.values():
            if not joint.holding:
                yield joint.standing.by, self._on_joint(joint)
        for name, event in state.events.items():
            for standing in event.waiting.values():
                yield standing.by, f"{self._waited(standing)} {_called('event', name)}"
        for name, queue in state.queues.items():
            for putting in queue.putting.values():
                standing = putting.standing
                yield (
                    standing.by,
                    (
                        f"{self._waited(standing)} room in {_called('queue', name)}, which "
                        f"has all {queue.size_max} values that it may have"
                    ),
                )
            for taking in queue.taking.values():
                standing = taking.standing
                yield (
                    standing.by,
                    (
                        f"{self._waited(standing)} values in {_called('queue', name)}, "
                        f"which has {len(queue.items)} of the {taking.nvalues} that it takes"
                    ),
                )
        for name, variable in state.variables.items():
            for standing in variable.waiting.values():
                yield (
                    standing.by,
                    (f"{self._waited(standing)} a value of {_called('variable', name)}"),
                )

    def _on_lock(self, name: str, lock: Lock, standing: Standing) -> str:
        if lock.leases_max == 1:
            what = _called("lock", name)
        else:
            what = f"one of the {lock.leases_max} leases of {_called('semaphore', name)}"
        return f"{self._waited(standing)} {what}, {self._had_by(lock.held.items())}"

    def _on_joint(self, joint: Joint) -> str:
        """Those that are first in line for the names, and hold them."""
        joints = self._state.joints
        held: dict[Claim, Standing] = {}
        for name in joint.names:
            first = next(iter(joints.lines.get(name, {})), None)
            if first is not None and name in joints.claims[first].holding:
                held[first] = joints.claims[first].standing
        names = ", ".join(repr(to_text(Key(name))) for name in joint.names[:NAMED_MAX])
        what = f"{joint.count} of the locks {names} together"
        return f"{self._waited(joint.standing)} {what}, {self._had_by(held.items())}"

    def _had_by(self, held: Iterable[tuple[Claim, Standing]]) -> str:
        holders = list(held)
        names = [self._holder(*one) for one in holders[:NAMED_MAX]]
        if not names:
            return "which others wait for as well"
        more = len(holders) - len(names)
        return f"held by {', '.join(names)}{f' and {more} more' if more else ''}"

    def _holder(self, claim: Claim, standing: Standing) -> str:
        since = self._since(standing)
        if not standing.by:
            return f"{claim.client.name}{since}"
        task = self._state.tasks.get(Key(standing.by))
        where = "" if task is None or task.worker is None else f" on worker {task.worker.name}"
        return f"{to_text(Key(standing.by))!r}{where}{since}"

    def _waited(self, standing: Standing) -> str:
        seconds = self._now - standing.at
        if seconds < JUST_NOW_SECONDS:
            return "it waits for"
        return f"it has waited {format_seconds(seconds)} for"

    def _since(self, standing: Standing) -> str:
        seconds = self._now - standing.at
        return f" for {format_seconds(seconds)}" if seconds >= JUST_NOW_SECONDS else ""


def _called(kind: str, name: str) -> str:
    return f"the {kind} {to_text(Key(name))!r}"
