"""What happened to a worker, by its old names."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any

from shoal.compat.raising import error_message
from shoal.compat.serialising.wrappers import Serialize


def _told_of(raised: BaseException | dict[str, Any]) -> dict[str, Any]:
    """What events say of an error."""
    message = raised if isinstance(raised, dict) else error_message(raised)
    told = {name: message[name] for name in ("exception", "exception_text", "traceback_text")}
    if not isinstance(told["exception"], Serialize):
        told["exception"] = Serialize(told["exception"])
    return {**told, "traceback": message["traceback"]}


@dataclass(slots=True)
class StateMachineEvent:
    """Something that happened; `handled` is when a machine was told, of the wall clock."""

    stimulus_id: str
    handled: float | None = field(init=False, default=None, compare=False)

    def to_loggable(self, *, handled: float) -> StateMachineEvent:
        """A copy to keep, without values of users."""
        copy = dataclasses.replace(self, **self._without_values())
        copy.handled = handled
        return copy

    def _without_values(self) -> dict[str, Any]:
        """Fields to change before the event is kept."""
        return {}

    def _to_dict(self, *, exclude: Any = ()) -> dict[str, Any]:
        """What JSON can say of it, for `from_dict`."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"cls": type(self).__name__, **told}

    @staticmethod
    def from_dict(d: dict[str, Any]) -> StateMachineEvent:
        """The event that `_to_dict` told of; values of users are None."""
        told = dict(d)
        kind: type[StateMachineEvent] = getattr(sys.modules[__name__], told.pop("cls"))
        handled = told.pop("handled", None)
        event = kind(**told)
        event.handled = handled
        event._after_from_dict()
        return event

    def _after_from_dict(self) -> None:
        """Mend what JSON could not say."""


@dataclass(slots=True)
class PauseEvent(StateMachineEvent):
    """Begin nothing new."""


@dataclass(slots=True)
class UnpauseEvent(StateMachineEvent):
    """Go on."""


@dataclass(slots=True)
class RetryBusyWorkerEvent(StateMachineEvent):
    """A peer that was busy may be asked again."""

    worker: str


@dataclass(slots=True)
class GatherDepDoneEvent(StateMachineEvent):
    """A GatherDep is over."""

    worker: str
    total_nbytes: int


@dataclass(slots=True)
class GatherDepSuccessEvent(GatherDepDoneEvent):
    """The peer answered; what is not in `data` it lacks."""

    data: dict[Any, Any]

    def _without_values(self) -> dict[str, Any]:
        return {"data": dict.fromkeys(self.data)}


@dataclass(slots=True)
class GatherDepBusyEvent(GatherDepDoneEvent):
    """The peer said that it is busy."""


@dataclass(slots=True)
class GatherDepNetworkFailureEvent(GatherDepDoneEvent):
    """The peer could not be reached, or broke off."""


@dataclass(slots=True)
class GatherDepFailureEvent(GatherDepDoneEvent):
    """What came could not be read."""

    exception: Serialize
    traceback: Serialize | None
    exception_text: str
    traceback_text: str

    @classmethod
    def from_exception(
        cls, err: BaseException, *, worker: str, total_nbytes: int, stimulus_id: str
    ) -> GatherDepFailureEvent:
        """What was raised as it was read."""
        return cls(
            stimulus_id=stimulus_id, worker=worker, total_nbytes=total_nbytes, **_told_of(err)
        )


@dataclass(slots=True)
class RemoveWorkerEvent(StateMachineEvent):
    """A peer has gone."""

    worker: str


@dataclass(slots=True)
class ComputeTaskEvent(StateMachineEvent):
    """Run this task once its inputs are here."""

    key: Any
    run_id: int
    who_has: dict[Any, Collection[str]]
    nbytes: dict[Any, int]
    priority: tuple[int, ...]
    run_spec: Any
    resource_restrictions: dict[str, float]
    actor: bool
    annotations: dict[str, Any]
    span_id: str | None

    def _without_values(self) -> dict[str, Any]:
        return {"run_spec": None}

    def _after_from_dict(self) -> None:
        self.priority = tuple(self.priority)

    @staticmethod
    def dummy(
        key: Any,
        *,
        run_id: int = 0,
        who_has: dict[Any, Collection[str]] | None = None,
        nbytes: dict[Any, int] | None = None,
        priority: tuple[int, ...] = (0,),
        resource_restrictions: dict[str, float] | None = None,
        actor: bool = False,
        annotations: dict[str, Any] | None = None,
        stimulus_id: str,
    ) -> ComputeTaskEvent:
        """One with little in it, for tests; inputs have one byte each."""
        who_has = who_has or {}
        return ComputeTaskEvent(
            stimulus_id=stimulus_id,
            key=key,
            run_id=run_id,
            who_has=who_has,
            nbytes=nbytes or dict.fromkeys(who_has, 1),
            priority=priority,
            run_spec=None,
            resource_restrictions=resource_restrictions or {},
            actor=actor,
            annotations=annotations or {},
            span_id=None,
        )


@dataclass(slots=True)
class ExecuteDoneEvent(StateMachineEvent):
    """An Execute is over."""

    key: Any


@dataclass(slots=True)
class ExecuteSuccessEvent(ExecuteDoneEvent):
    """The run ended well."""

    run_id: int
    value: object
    start: float
    stop: float
    nbytes: int
    type: type | None

    def _without_values(self) -> dict[str, Any]:
        return {"value": None}

    def _after_from_dict(self) -> None:
        self.value = None
        self.type = None

    @staticmethod
    def dummy(
        key: Any, value: object = None, *, run_id: int = 1, nbytes: int = 1, stimulus_id: str
    ) -> ExecuteSuccessEvent:
        """One with little in it, for tests."""
        return ExecuteSuccessEvent(
            stimulus_id=stimulus_id,
            key=key,
            run_id=run_id,
            value=value,
            start=0.0,
            stop=1.0,
            nbytes=nbytes,
            type=None,
        )


@dataclass(slots=True)
class ExecuteFailureEvent(ExecuteDoneEvent):
    """The run raised, or could not begin."""

    run_id: int
    start: float | None
    stop: float | None
    exception: Serialize
    traceback: Serialize | None
    exception_text: str
    traceback_text: str

    def _after_from_dict(self) -> None:
        self.exception = Serialize(Exception())
        self.traceback = None

    @classmethod
    def from_exception(
        cls,
        err_or_msg: BaseException | dict[str, Any],
        *,
        key: Any,
        run_id: int,
        start: float | None = None,
        stop: float | None = None,
        stimulus_id: str,
    ) -> ExecuteFailureEvent:
        """What the run raised, as itself or as `distributed.core.error_message` says it."""
        return cls(
            stimulus_id=stimulus_id,
            key=key,
            run_id=run_id,
            start=start,
            stop=stop,
            **_told_of(err_or_msg),
        )

    @staticmethod
    def dummy(key: Any, *, run_id: int = 1, stimulus_id: str) -> ExecuteFailureEvent:
        """One with little in it, for tests."""
        return ExecuteFailureEvent(
            stimulus_id=stimulus_id,
            key=key,
            run_id=run_id,
            start=None,
            stop=None,
            exception=Serialize(None),
            traceback=None,
            exception_text="",
            traceback_text="",
        )


@dataclass(slots=True)
class RescheduleEvent(ExecuteDoneEvent):
    """The run asked to be run elsewhere."""

    @staticmethod
    def dummy(key: Any, *, stimulus_id: str) -> RescheduleEvent:
        """One, for tests."""
        return RescheduleEvent(stimulus_id=stimulus_id, key=key)


@dataclass(slots=True)
class CancelComputeEvent(StateMachineEvent):
    """Give this task back if it has not begun."""

    key: Any


@dataclass(slots=True)
class FindMissingEvent(StateMachineEvent):
    """Ask who holds what nobody was known to hold."""


@dataclass(slots=True)
class RefreshWhoHasEvent(StateMachineEvent):
    """Who holds these now."""

    who_has: dict[Any, Collection[str]]


@dataclass(slots=True)
class AcquireReplicasEvent(StateMachineEvent):
    """Fetch copies of these and keep them."""

    who_has: dict[Any, Collection[str]]
    nbytes: dict[Any, int]


@dataclass(slots=True)
class RemoveReplicasEvent(StateMachineEvent):
    """Let go of these copies."""

    keys: Collection[Any]


@dataclass(slots=True)
class FreeKeysEvent(StateMachineEvent):
    """Nobody wants these any more, run or not."""

    keys: Collection[Any]


@dataclass(slots=True)
class StealRequestEvent(StateMachineEvent):
    """Give this task back if it has not begun, and say how it stands."""

    key: Any


@dataclass(slots=True)
class UpdateDataEvent(StateMachineEvent):
    """A client put these here."""

    data: dict[Any, object]

    def _without_values(self) -> dict[str, Any]:
        return {"data": dict.fromkeys(self.data)}


@dataclass(slots=True)
class SecedeEvent(StateMachineEvent):
    """A run gave its slot to others, after so many seconds with it."""

    key: Any
    compute_duration: float
