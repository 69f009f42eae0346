"""Who waits for which records, and is told on the loop, outside of the lock, that one has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from shoal.client.machine import FINISHED, UNRESOLVED, ClientMachine, Record
from shoal.observe.inside import waiting_for_tasks

P = TypeVar("P")
Watcher = Callable[[Record], None]
Told = list[tuple[Record, list[Watcher]]]
"""Whom to tell of what has ended."""


class Watching:
    """The part of a session that waits."""

    def __init__(self) -> None:
        self.machine = ClientMachine()
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._states: dict[type, Any] = {}

    def state_of(self, kind: type[P]) -> P:
        """The session's one `kind`, made when it is first asked for; from any thread.

        So what few clients use costs nothing to the others.
        """
        found = self._states.get(kind)
        return cast(P, self._states.setdefault(kind, kind()) if found is None else found)

    def watch(self, record: Record, watcher: Watcher) -> bool:
        """Call `watcher(record)` on the loop once it ends; False: it has ended already."""
        with self.lock:
            if not self.machine.may_end(record):
                return False
            if record.watchers is None:
                record.watchers = [watcher]
            else:
                record.watchers.append(watcher)
            return True

    def watch_all(
        self,
        records: Iterable[Record],
        watcher: Watcher,
        is_awaited: Callable[[Record], bool] | None = None,
    ) -> list[Record]:
        """As `watch`, for many at once: those of them that have not ended yet, each once.

        Args:
            is_awaited: which of them to watch instead; asked under the lock.
        """
        watched = []
        with self.lock:
            is_awaited = is_awaited or self.machine.may_end
            for record in dict.fromkeys(records):
                if is_awaited(record):
                    watched.append(record)
                    if record.watchers is None:
                        record.watchers = [watcher]
                    else:
                        record.watchers.append(watcher)
        return watched

    def unwatch(self, records: Iterable[Record], watcher: Watcher) -> None:
        """Forget `watcher` where it was not called yet."""
        with self.lock:
            for record in records:
                if record.watchers and watcher in record.watchers:
                    record.watchers.remove(watcher)

    async def wait_any(self, records: Sequence[Record]) -> None:
        """Return as soon as one of the records ends, or has ended."""
        await self._wait(records, lambda record: True)

    async def wait_all(self, records: Sequence[Record], *, until_failed: bool = False) -> None:
        """Return when all records have ended; with `until_failed`, or one of them failed."""
        if until_failed:
            await self._wait(records, lambda record: record.status != FINISHED)
        else:
            await self._wait(records, lambda record: False)

    async def wait_found(self, records: Sequence[Record]) -> None:
        """Return when it is known again where these are, or that they are nowhere."""
        astray = self.machine.astray
        await self._wait(records, lambda record: False, lambda record: record.number in astray)

    async def _wait(
        self,
        records: Sequence[Record],
        is_enough: Callable[[Record], bool],
        is_awaited: Callable[[Record], bool] | None = None,
    ) -> None:
        """Wait until all have ended, or one that `is_enough`."""
        assert self.loop is not None
        done: asyncio.Future[None] = self.loop.create_future()
        nleft = 0

        def watcher(record: Record) -> None:
            nonlocal nleft
            nleft -= 1
            if (not nleft or is_enough(record)) and not done.done():
                done.set_result(None)

        watched = self.watch_all(records, watcher, is_awaited)
        nleft = len(watched)  # no watcher is called before we give the loop back
        if not watched or any(is_enough(r) for r in records if r.status not in UNRESOLVED):
            self.unwatch(watched, watcher)
            return
        try:
            with waiting_for_tasks():
                await done
        finally:
            self.unwatch(watched, watcher)

    def _take_told(self) -> Told:
        """Whom to tell of what has ended; to be called under the lock."""
        told = []
        for record in self.machine.take_resolved():
            if record.watchers:
                told.append((record, record.watchers))
                record.watchers = None
        return told


def tell(told: Told) -> None:
    """Call watchers, outside of any lock."""
    for record, watchers in told:
        for watcher in watchers:
            watcher(record)
