"""Waiting for workers that may never come: whoever starts them says so, and the wait ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Hopeful(Protocol):
    """Somebody who waits for results."""

    def lose_hope(self, reason: Exception) -> None:
        """There is no worker, and none will come.  From any thread."""

    def regain_hope(self) -> None:
        """Workers are wanted again.  From any thread."""


class Prospects:
    """How many workers there may be at most, and who waits for more.  From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hopeful: weakref.WeakSet[Hopeful] = weakref.WeakSet()
        self._wanted: dict[concurrent.futures.Future[None], int] = {}
        self._end: tuple[int, Exception] | None = None
        self._telling = threading.Lock()  # so that the last word is the latest
        self._lost: Exception | None = None  # why nobody need wait for results

    def wait(self, nworkers: int) -> concurrent.futures.Future[None]:
        """Ends, with the reason, once `nworkers` can't be had any more; cancel it when done."""
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            self._wanted[future] = nworkers
        future.add_done_callback(self._forget)
        self._tell()
        return future

    def end(self, nworkers: int, reason: Exception) -> None:
        """There won't be more than `nworkers`."""
        with self._lock:
            self._end = nworkers, reason
        self._tell()

    def end_all(self, reason: Exception) -> None:
        """There is none, and won't be: nobody need wait for results either."""
        self.end(0, reason)
        with self._telling:
            self._lost = reason
            for one in self._all_hopeful():
                one.lose_hope(reason)

    def tell(self, hopeful: Hopeful) -> None:
        """Have `hopeful` told when all is lost, at once if it is, as long as somebody else refers
        to it."""
        with self._telling:
            with self._lock:
                self._hopeful.add(hopeful)
            if self._lost is not None:
                hopeful.lose_hope(self._lost)

    def renew(self) -> None:
        """Others are started: there is hope again."""
        with self._lock:
            self._end = None
        with self._telling:
            if self._lost is not None:
                self._lost = None
                for one in self._all_hopeful():
                    one.regain_hope()

    def _all_hopeful(self) -> list[Hopeful]:
        with self._lock:
            return list(self._hopeful)

    def _tell(self) -> None:
        """End the waits that are in vain."""
        with self._lock:
            if self._end is None:
                return
            most, reason = self._end
            hopeless = [future for future, wanted in self._wanted.items() if wanted > most]
        for future in hopeless:
            if future.set_running_or_notify_cancel():
                future.set_exception(reason)

    def _forget(self, future: concurrent.futures.Future[None]) -> None:
        with self._lock:
            self._wanted.pop(future, None)


def prospects_of(cluster: Any) -> Prospects | None:
    """Those of `cluster`; None: it can't tell, or is none."""
    prospects = getattr(cluster, "prospects", None)
    return prospects if isinstance(prospects, Prospects) else None


async def unless_hopeless(
    waiting: Coroutine[Any, Any, T], prospects: Prospects | None, nworkers: int
) -> T:
    """What `waiting` returns, or the reason why it would wait for ever, whichever comes first.

    Args:
        waiting: for `nworkers`.
    """
    if prospects is None:
        return await waiting
    answer = asyncio.ensure_future(waiting)
    end = asyncio.wrap_future(prospects.wait(nworkers))
    try:
        await asyncio.wait((answer, end), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            end.result()  # raises the reason
        return await answer
    finally:
        end.cancel()
        answer.cancel()
        await asyncio.wait((answer,))
