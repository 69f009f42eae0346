"""What a worker says of its memory, beside what its heartbeats say; and what clients hear of it.

Tags 345 to 349; 349 is free.
"""

from shoal.ids import RunId, TaskId
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class PauseChanged(Message, frozen=True, tag=345):
    """The worker starts no runs and fetches nothing, as its memory is short; or it does again.

    What it was sent and has not begun stays there, unless it is recalled.
    """

    is_paused: bool
    why: str  # with numbers, for people


class RunsGauged(Message, frozen=True, tag=346):
    """By how much the worker's process has grown for each of these runs, at its highest.

    Without what it had as the run began, and without what other runs took.  Said of runs that took
    much: before the answer of the run, and while it goes on whenever it took much more than was
    told.  Columns of one length.
    """

    tasks: list[TaskId]
    runs: list[RunId]
    peak_bytes: list[int]


class WantsReplacement(Message, frozen=True, tag=347):
    """The worker is paused, and nothing that it can do makes room: another process is to come.

    Others take what only it holds, then it is sent away.  If they can't, or another is being
    replaced at this moment, nothing happens; it says so again.
    """

    reason: str  # as it is told when it is sent away
    patience_seconds: float  # without any progress, until it stays
    is_of_results: bool = False  # what takes its memory: of use if others have room, and tasks wait


class AllPaused(Message, frozen=True, tag=348):
    """All workers are paused, and what the client waits for with them."""

    nworkers: int
    seconds: float  # since when it is so
    worker: str  # name of the one with the least room
    why: str  # that one is paused, with numbers


SUBJECT = Subject(
    from_worker={
        PauseChanged: UNANSWERED,
        RunsGauged: UNANSWERED,
        WantsReplacement: UNANSWERED,
    },
    to_client={AllPaused: UNANSWERED},
)
