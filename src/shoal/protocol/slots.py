"""What runs say of the slot that they have on their worker, beside how they end."""

from shoal.ids import RunId, TaskId
from shoal.protocol.messages import Message, RunTask
from shoal.protocol.subject import UNANSWERED, Subject


class LongRunning(Message, frozen=True, tag=256):
    """The run gave its slot to others and goes on; its task is long-running from now on."""

    task: TaskId
    run: RunId
    seconds: float  # that it had a slot


class RunRejoined(Message, frozen=True, tag=257):
    """The run has a slot again."""

    task: TaskId
    run: RunId


class RunRescheduled(Message, frozen=True, tag=258):
    """The run ended, and its task is to be run again, elsewhere if it can; that is no failure."""

    task: TaskId
    run: RunId


class RunTaskIn(RunTask, frozen=True, tag=259):
    """As RunTask, by one of the worker's executors, or for so long at most."""

    executor: str = ""  # "" = as any other run
    timeout_seconds: float = 0.0  # from when a thread begins it; 0 = as long as it likes


SUBJECT = Subject(
    from_worker={
        LongRunning: UNANSWERED,
        RunRejoined: UNANSWERED,
        RunRescheduled: UNANSWERED,
    },
    to_worker={RunTaskIn: UNANSWERED},
)
