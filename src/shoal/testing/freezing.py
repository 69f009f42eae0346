"""Workers that do not begin to fetch results for as long as a test wants to look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import MachineSettings
from shoal.worker.shell.service import Worker


class _NoMoreFetches:
    """Settings of a worker that may have as many requests out as it has, however few those are."""

    def __init__(self, state: WorkerState) -> None:
        self._settings, self._fetches = state.settings, state.fetches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)

    @property
    def transfers_max(self) -> int:
        return len(self._fetches)


@contextmanager
def freeze_data_fetching(w: Worker, *, jump_start: bool = False) -> Iterator[None]:
    """Have a worker ask no peer for results meanwhile; afterwards it goes on by itself.

    Args:
        jump_start: not used.
    """
    state = w.feed.machine.state
    before = state.settings
    state.settings = cast(MachineSettings, _NoMoreFetches(state))
    try:
        yield
    finally:
        state.settings = before
        w.feed.on_messages([])  # nothing new is needed to go on


class NoSchedulerDelayWorker(Worker):
    """A worker, whose times are this machine's: they are never shifted by what was measured."""
