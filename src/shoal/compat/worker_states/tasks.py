"""A task as a worker's machine shows it by its old names."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final

import dask.config
from dask.utils import key_split, parse_bytes

from shoal.compat.worker_states.errors import RecommendationsConflict

READY: Final = {"ready", "constrained"}
PROCESSING: Final = {"waiting", "ready", "constrained", "executing", "long-running"}
WAITING_FOR_DATA: Final = PROCESSING | {"fetch", "flight", "missing", "resumed"}
RUN_ID_SENTINEL: Final = -1
"""The run of a task that was not to be run here."""

_NO_DEFAULTS = ("key", "run_id", "state")


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class TaskState:
    """One task; equal to itself alone."""

    _instances: ClassVar[weakref.WeakSet[TaskState]] = weakref.WeakSet()

    key: Any
    run_id: int = RUN_ID_SENTINEL
    run_spec: Any = None
    dependencies: set[TaskState] = field(default_factory=set)
    dependents: set[TaskState] = field(default_factory=set)
    waiting_for_data: set[TaskState] = field(default_factory=set)
    waiters: set[TaskState] = field(default_factory=set)
    state: str = "released"
    previous: str | None = None
    next: str | None = None
    priority: tuple[int, ...] | None = None
    who_has: set[str] = field(default_factory=set)
    coming_from: str | None = None
    resource_restrictions: dict[str, float] = field(default_factory=dict)
    exception: Any = None
    traceback: Any = None
    exception_text: str = ""
    traceback_text: str = ""
    type: type | None = None
    suspicious_count: int = 0
    startstops: list[dict[str, Any]] = field(default_factory=list)
    start_time: float | None = None
    stop_time: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    nbytes: int | None = None
    annotations: dict[str, Any] | None = None
    span_id: str | None = None
    done: bool = False
    prefix: str = field(init=False, default="")

    def __post_init__(self) -> None:
        TaskState._instances.add(self)
        self.prefix = key_split(self.key)

    def __repr__(self) -> str:
        state = self.state
        if state == "cancelled":
            state = f"cancelled({self.previous})"
        elif state == "resumed":
            state = f"resumed({self.previous}->{self.next})"
        return f"<TaskState {self.key!r} {state}>"

    def get_nbytes(self) -> int:
        """Bytes of its result; as configured if that is not known."""
        if self.nbytes is not None:
            return self.nbytes
        return int(parse_bytes(dask.config.get("distributed.scheduler.default-data-size", "1kiB")))

    def _to_dict_no_nest(self, *, exclude: Any = ()) -> dict[str, Any]:
        """What is of interest of it; other tasks as text."""
        told: dict[str, Any] = {}
        for each in fields(self):
            name, value = each.name, getattr(self, each.name)
            if name in exclude or name == "prefix":
                continue
            if name in _NO_DEFAULTS or value not in (None, "", False, 0, set(), [], {}):
                told[name] = sorted(map(repr, value)) if _has_tasks(value) else value
        return told


def _has_tasks(value: Any) -> bool:
    return isinstance(value, set) and any(isinstance(each, TaskState) for each in value)


def merge_recs_instructions(
    *args: tuple[dict[TaskState, Any], Iterable[Any]],
) -> tuple[dict[TaskState, Any], list[Any]]:
    """Recommendations and instructions of several parts as one pair.

    Raises:
        RecommendationsConflict: two recommend different things for one task.
    """
    merged: dict[TaskState, Any] = {}
    instructions: list[Any] = []
    for recommendations, more in args:
        for task, finish in recommendations.items():
            if merged.setdefault(task, finish) != finish:
                raise RecommendationsConflict(
                    f"Mismatched recommendations for {task.key!r}: {merged[task]} vs. {finish}"
                )
        instructions += more
    return merged, instructions
