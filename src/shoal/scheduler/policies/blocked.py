"""Which tasks wait for what clients agree on by name, and who has it?  In lines for people."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
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
        self._waits: dict[str, list[Callable[[], str]]] | None = None  # by key of the task

    def lines(self, key: Key) -> list[str]:
        """W10: what the task of this key waits for as it runs; nothing if it does not.

        Cost: O(claims), the first time, up to `CLAIMS_LOOKED_AT`.
        """
        if self._waits is None:
            self._waits = {}
            for by, line in islice(self._all(), CLAIMS_LOOKED_AT):
                if by:
                    self._waits.setdefault(by, []).append(line)
        return [line() for line in self._waits.get(key, [])]

    def _all(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Whoever waits for anything, and what makes a line about it."""
        state = self._state
        for name, lock in state.locks.items():
            for standing in lock.waiting.values():
                yield standing.by, partial(self._on_lock, name, lock, standing)
        for joint in state.joints.claims.values():
            if not joint.holding:
                yield joint.standing.by, partial(self._on_joint, joint)
        for name, event in state.events.items():
            for standing in event.waiting.values():
                yield standing.by, partial(self._on, standing, "", "event", name, "")
        for name, queue in state.queues.items():
            for putting in queue.putting.values():
                has = f", which has all {queue.size_max} values that it may have"
                yield (
                    putting.standing.by,
                    partial(self._on, putting.standing, "room in ", "queue", name, has),
                )
            for taking in queue.taking.values():
                has = f", which has {len(queue.items)} of the {taking.nvalues} that it takes"
                yield (
                    taking.standing.by,
                    partial(self._on, taking.standing, "values in ", "queue", name, has),
                )
        for name, variable in state.variables.items():
            for standing in variable.waiting.values():
                yield standing.by, partial(self._on, standing, "a value of ", "variable", name, "")

    def _on(self, standing: Standing, part: str, kind: str, name: str, has: str) -> str:
        return f"{self._waited(standing)} {part}{_called(kind, name)}{has}"

    def _on_lock(self, name: str, lock: Lock, standing: Standing) -> str:
        if lock.leases_max == 1:
            what = _called("lock", name)
        else:
            what = f"one of the {lock.leases_max} leases of {_called('semaphore', name)}"
        return f"{self._waited(standing)} {what}, {self._had_by(lock.held)}"

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
        return f"{self._waited(joint.standing)} {what}, {self._had_by(held)}"

    def _had_by(self, held: Mapping[Claim, Standing]) -> str:
        names = [self._holder(*one) for one in islice(held.items(), NAMED_MAX)]
        if not names:
            return "which others wait for as well"
        more = len(held) - len(names)
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
