"""What a worker's machine asks its shell to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.ids import CodeId, Key, TaskId
from shoal.protocol.messages import DefineCode, Input, Message
from shoal.worker.model.entities import Run


@dataclass(slots=True)
class Send:
    """To the scheduler, as one frame."""

    messages: list[Message]


@dataclass(slots=True)
class StartRuns:
    """Hand these to the threads, in this order; all inputs are here.

    Each is to be reported once to `runs_ended`, even if it is withdrawn.
    """

    runs: list[Run]


@dataclass(slots=True)
class WithdrawRuns:
    """Take these back from the threads; those that have begun go on as if nothing was said."""

    runs: list[Run]


@dataclass(slots=True)
class EndRuns:
    """End these if they have begun, and not ended: nobody wants what they give.

    Each is reported once, as ever.
    """

    runs: list[Run]


@dataclass(slots=True)
class HoldRuns:
    """Take these back from the threads, to be handed to them again; those that have begun go on.

    Answered by one `runs_held`, in the same step, if there were any.
    """

    runs: list[Run]


@dataclass(slots=True, eq=False)
class Fetch:
    """Ask a peer for results; answered by one `replicas_arrived` or `peer_unreachable`."""

    peer: str
    tasks: list[TaskId]
    nbytes: int = 0  # expected


@dataclass(slots=True)
class LoadInline:
    """Load these small values and keep them; answered by `replicas_put`."""

    inputs: list[Input]


@dataclass(slots=True)
class Drop:
    """Let go of the values of these."""

    tasks: list[TaskId]


@dataclass(slots=True)
class Renumber:
    """The values of these are known by other numbers from now on: (before, after).

    No number is both.  Of `runs` there is no value yet, but there may be an actor.
    """

    pairs: list[tuple[TaskId, TaskId]]
    runs: list[tuple[TaskId, TaskId]]


@dataclass(slots=True)
class TellAdopted:
    """Say ReplicasAdopted of these (key, number, bytes), with the values that are small."""

    adopted: list[tuple[Key, TaskId, int]]


@dataclass(slots=True, eq=False)
class Write:
    """Write the value to disk; answered by one `value_written` or `value_not_written`."""

    task: TaskId
    nbytes: int


@dataclass(slots=True)
class Evict:
    """Let go of these values in memory; what was written of them stays."""

    tasks: list[TaskId]


@dataclass(slots=True, eq=False)
class ReadBack:
    """Have the value in memory again; answered by one `value_read` or `value_not_read`."""

    task: TaskId
    nbytes: int


@dataclass(slots=True)
class Define:
    """Remember this code; it is loaded when a run first calls it."""

    message: DefineCode


@dataclass(slots=True)
class ForgetCodes:
    """No run that is yet to come calls these."""

    codes: Sequence[CodeId]


@dataclass(slots=True)
class Close:
    """The scheduler sent this worker away."""

    reason: str


Effect = (
    Send
    | StartRuns
    | WithdrawRuns
    | EndRuns
    | HoldRuns
    | Fetch
    | LoadInline
    | Drop
    | Renumber
    | TellAdopted
    | Write
    | Evict
    | ReadBack
    | Define
    | ForgetCodes
    | Close
)
