"""What a worker's machine asks for, by its old names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from shoal.compat.serialising.wrappers import Serialize
from shoal.compat.worker_states.tasks import TaskState


class InstructionMatch:
    """Equal to every instruction of its class that has these fields."""

    __slots__ = ("cls", "kwargs")

    def __init__(self, cls: type[Instruction], **kwargs: Any) -> None:
        self.cls, self.kwargs = cls, kwargs

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.kwargs.items())
        return f"{self.cls.__name__}({told}) (partial match)"

    def __eq__(self, other: object) -> bool:
        return type(other) is self.cls and all(
            getattr(other, name) == value for name, value in self.kwargs.items()
        )

    __hash__ = None  # type: ignore[assignment]  # it is equal to what is different


@dataclass(slots=True)
class Instruction:
    """Something to do; `stimulus_id` is of what brought it about."""

    stimulus_id: str

    @classmethod
    def match(cls, **kwargs: Any) -> InstructionMatch:
        """What equals each instruction of this class with these fields, whatever the others are."""
        return InstructionMatch(cls, **kwargs)


@dataclass(slots=True)
class GatherDep(Instruction):
    """Fetch these from a peer; answered by a GatherDepDoneEvent."""

    worker: str
    to_gather: set[Any]
    total_nbytes: int


@dataclass(slots=True)
class Execute(Instruction):
    """Run this task; answered by an ExecuteDoneEvent."""

    key: Any


@dataclass(slots=True)
class RetryBusyWorkerLater(Instruction):
    """Ask a peer again after a while.  No peer of this worker says that it is busy."""

    worker: str


@dataclass(slots=True)
class SendMessageToScheduler(Instruction):
    """Say this to the scheduler."""

    op: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The message as a dictionary."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"op": self.op, **told}


@dataclass(slots=True)
class TaskFinishedMsg(SendMessageToScheduler):
    """A run ended well."""

    op: ClassVar[str] = "task-finished"

    key: Any
    run_id: int
    nbytes: int
    type: bytes
    typename: str
    metadata: dict[str, Any]
    thread: int | None
    startstops: list[dict[str, Any]]


@dataclass(slots=True)
class TaskErredMsg(SendMessageToScheduler):
    """A run raised."""

    op: ClassVar[str] = "task-erred"

    key: Any
    run_id: int
    exception: Serialize
    traceback: Serialize | None
    exception_text: str
    traceback_text: str
    thread: int | None
    startstops: list[dict[str, Any]]

    @classmethod
    def from_task(
        cls, ts: TaskState, run_id: int, stimulus_id: str, thread: int | None = None
    ) -> TaskErredMsg:
        """What there is to say of a task that is shown as failed."""
        return cls(
            stimulus_id=stimulus_id,
            key=ts.key,
            run_id=run_id,
            exception=ts.exception,
            traceback=ts.traceback,
            exception_text=ts.exception_text,
            traceback_text=ts.traceback_text,
            thread=thread,
            startstops=ts.startstops,
        )


@dataclass(slots=True)
class ReleaseWorkerDataMsg(SendMessageToScheduler):
    """This worker lacks a result that it was to hold."""

    op: ClassVar[str] = "release-worker-data"

    key: Any


@dataclass(slots=True)
class RescheduleMsg(SendMessageToScheduler):
    """This task is to be run again, elsewhere if it can."""

    op: ClassVar[str] = "reschedule"

    key: Any


@dataclass(slots=True)
class LongRunningMsg(SendMessageToScheduler):
    """A run gave its slot to others."""

    op: ClassVar[str] = "long-running"

    key: Any
    run_id: int
    compute_duration: float | None


@dataclass(slots=True)
class AddKeysMsg(SendMessageToScheduler):
    """This worker holds these now."""

    op: ClassVar[str] = "add-keys"

    keys: Collection[Any]


@dataclass(slots=True)
class RequestRefreshWhoHasMsg(SendMessageToScheduler):
    """Nobody that this worker knows of gave these."""

    op: ClassVar[str] = "request-refresh-who-has"

    keys: Collection[Any]


@dataclass(slots=True)
class StealResponseMsg(SendMessageToScheduler):
    """The state that a task was in as it was asked back; None: it is not here."""

    op: ClassVar[str] = "steal-response"

    key: Any
    state: str | None
