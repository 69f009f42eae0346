"""What dask is told while there is a client, beside which scheduler it has."""

from __future__ import annotations

import re
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import dask.config

from shoal.client.frames import AnnotatedExpressions
from shoal.version import DROP_IN_MARK

_OUR_FRAMES: Final = re.escape(str(Path(__file__).parents[1])) + r"[\\/]"
_SHUFFLE_METHOD: Final = "dataframe.shuffle.method"


def settings_with_client() -> dict[str, Any]:
    """Settings for `dask.config.set` where tasks run; what a user has set stays.

    There dask finds no client of its own, as a task's is made when it is asked for.
    """
    return {**_methods(in_tasks=True), **_hidden_frames()}


def _methods(*, in_tasks: bool) -> dict[str, str]:
    """How dataframes are shuffled, where the user has said nothing.

    Where the name `distributed` leads to us, dask finds the client by itself, and chooses "p2p"
    later, as it optimizes, with regard to what is partitioned already.
    """
    if dask.config.get(_SHUFFLE_METHOD, None) is not None:
        return {}
    if not drop_in_is_ours():
        return {_SHUFFLE_METHOD: "tasks"}
    return {_SHUFFLE_METHOD: "p2p" if _has_arrow() else "tasks"} if in_tasks else {}


def _has_arrow() -> bool:
    return find_spec("pyarrow") is not None


@cache
def drop_in_is_ours() -> bool:
    """Whether the name `distributed` leads to us: what would be imported, not what is listed.

    Cost: 0.2 ms, once.
    """
    try:
        found = find_spec("distributed")
    except (ImportError, ValueError):
        return False
    if found is None or found.origin is None:
        return False
    with open(found.origin, encoding="utf-8") as module:
        return DROP_IN_MARK in module.readline()


def _hidden_frames() -> dict[str, list[str]]:
    """Which frames dask leaves out of tracebacks, ours too; none if a user wants them all."""
    hidden = dask.config.get("admin.traceback.shorten", None)
    if not hidden or _OUR_FRAMES in hidden:
        return {}
    return {"admin.traceback.shorten": [*hidden, _OUR_FRAMES]}


class WhileThereAreClients:
    """Tells dask that there are clients, from the first one on until the last one ends.

    All methods are for any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a client may be collected while one is added
        self._nclients = 0
        self._settings: Any = None  # gives dask back what it had
        self._expressions = AnnotatedExpressions()
        self._chose_tasks = False

    def begin(self) -> None:
        """One client more."""
        with self._lock:
            if not self._nclients:
                methods = _methods(in_tasks=False)
                self._chose_tasks = bool(methods) and _has_arrow()
                self._settings = dask.config.set({**methods, **_hidden_frames()})
                self._expressions.turn_on()
            self._nclients += 1

    @property
    def chose_tasks(self) -> bool:
        """Whether dataframes are shuffled by tasks because dask can't find shuffles of ours."""
        return self._chose_tasks and dask.config.get(_SHUFFLE_METHOD, None) == "tasks"

    def end(self) -> None:
        """One client less."""
        with self._lock:
            self._nclients -= 1
            if not self._nclients:
                self._expressions.turn_off()
                self._settings.__exit__(None, None, None)


CLIENTS: Final = WhileThereAreClients()


class SchedulerSetting:
    """What dask computes with, by whoever said so last and has not taken it back.

    Dask's own way to take a setting back is for blocks inside of each other; clients come and go in
    any order, and so do tasks in the threads of a worker.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: list[SchedulerEntry] = []  # in the order of time

    def begin(self, scheduler: Any) -> SchedulerEntry:
        """From now on it is `scheduler`; give what is returned to `end`."""
        with self._lock:
            entry = SchedulerEntry(scheduler)
            self._entries.append(entry)
        return entry

    def end(self, entry: SchedulerEntry) -> None:
        """It is again what it was, unless others have begun since, or a user has set another."""
        with self._lock:
            place = self._entries.index(entry)
            del self._entries[place]
            if place < len(self._entries):  # the next one has to give back what this one found
                self._entries[place].before = entry.before
            elif dask.config.get("scheduler", None) == entry.scheduler:
                entry.before.__exit__(None, None, None)


class SchedulerEntry:
    """One time that dask was told what to compute with."""

    __slots__ = ("before", "scheduler")

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.before: Any = dask.config.set(scheduler=scheduler)  # gives back what was there


SCHEDULER: Final = SchedulerSetting()
