"""Who is suspect, as somebody would say who sees both ends of each connection.

The judge knows of each worker when something of it was heard last, and whether what is said to it
arrives.  From that follows, within a moment, who has to be suspect by now, and who must not be.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from shoal.ids import RunId, TaskId
from shoal.protocol.messages import AskHearing, Message, RunTask, TaskFinished, WorkerHeartbeat
from shoal.scheduler.model.entities import ERRED, MEMORY, Client, Silence, Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.state import SchedulerState
from shoal.sim.network import End

VAIN_MAX: Final = 3
"""Signs of life of one who does not hear: the first may tell of what came just before, the second
is answered by something that is said for it to hear, and at the third it has not heard that."""

MOMENT: Final = 1e-6
"""Within one time of the world there is an order (s)."""

GIVEN_UP_SECONDS: Final = 1.0
"""So much later than it might a silent worker is given up at the latest."""


LONG_SECONDS: Final = 100.0
"""Silence of so long is not looked at."""


class _Ear:
    """What is known of one worker."""

    __slots__ = ("heard_at", "nreceived", "nvain", "silence", "taken", "vain_at", "was_asked")

    def __init__(self, now: float) -> None:
        self.heard_at = now  # or vouched for, or nobody could be heard
        self.nreceived = -1  # as its latest sign of life says
        self.nvain = 0  # those that say the same, since what is said to it does not arrive
        self.vain_at = 0.0  # when it had given `VAIN_MAX` of those
        self.was_asked = False  # the latest that was said to it is whether it hears
        self.silence: Silence | None = None
        self.taken: dict[RunId, Task] = {}  # as it was silent, and it may end them all the same


class SilenceJudge:
    """Judges one life of a scheduler."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self._suspect_seconds = settings.suspect_seconds
        self._ttl_seconds = settings.worker_ttl_seconds
        self._ears: dict[Worker, _Ear] = {}
        self.is_needed = min(self._suspect_seconds, self._ttl_seconds) < LONG_SECONDS

    def vouched(self, worker: Worker, now: float) -> None:
        """Somebody says that its process lives."""
        self._ear(worker, now).heard_at = now

    def could_not_listen(self, now: float) -> None:
        """The scheduler stood still until now."""
        for ear in self._ears.values():
            ear.heard_at = now

    def heard(self, worker: Worker, end: End, batch: Sequence[Message], now: float) -> None:
        """Something is about to be heard of it."""
        ear = self._ear(worker, now)
        ear.heard_at = now
        for message in batch:
            if not isinstance(message, WorkerHeartbeat):
                continue
            if message.received_bytes != ear.nreceived or not end.other.nwithheld:
                ear.nvain = 0
            ear.nreceived = message.received_bytes
            if end.other.nwithheld:
                ear.nvain += 1
                if ear.nvain == VAIN_MAX:
                    ear.vain_at = now

    def said(self, worker: Worker, messages: Sequence[Message], now: float) -> Iterator[str]:
        """What is said to it: runs that it has again, or something to hear, once."""
        ear = self._ear(worker, now)
        for message in messages:
            if isinstance(message, RunTask) and ear.taken:
                for run, task in list(ear.taken.items()):
                    if task.id == message.task:  # it throws away what the older one gives
                        del ear.taken[run]
            asks = isinstance(message, AskHearing)
            if asks and ear.was_asked:
                yield f"{worker} is asked again whether it hears, though it has heard all"
            ear.was_asked = asks

    def counts(self, worker: Worker, batch: Sequence[Message]) -> list[TaskId]:
        """Tasks of which results are about to come that nobody has, from who was silent."""
        ear = self._ears.get(worker)
        if ear is None or not ear.taken or worker.hearing.is_lost:
            return []  # what is said by who hears nothing counts later
        found: list[TaskId] = []
        for message in batch:
            if isinstance(message, TaskFinished):
                task = ear.taken.pop(message.run, None)
                if task is not None and task.id == message.task:
                    found.append(task.id)
        return found

    def look(
        self, state: SchedulerState, ends: Mapping[Worker | Client, End], now: float
    ) -> Iterator[str]:
        """A sentence for each worker that is suspect, or is not, and should not be.

        Args:
            ends: the scheduler's ends of the connections to them.
        """
        for worker in list(self._ears):
            if state.workers.get(worker.address) is not worker:
                del self._ears[worker]
        for worker in state.workers.values():
            ear = self._ear(worker, now)
            silent_seconds = now - ear.heard_at
            if worker.silence is not None and ear.silence is not worker.silence:
                self._note_taken(worker, ear)
                is_early = silent_seconds < self._suspect_seconds - MOMENT
                if is_early and not worker.hearing.is_lost:
                    yield f"{worker} is suspect, and was heard {silent_seconds:.3f} s ago"
            ear.silence = worker.silence
            end = ends.get(worker)
            if end is not None and end.other.nwithheld and ear.nvain >= VAIN_MAX:
                silent_seconds = max(silent_seconds, now - ear.vain_at)
            if silent_seconds > self._suspect_seconds + MOMENT and worker.silence is None:
                yield f"{worker} is not suspect after {silent_seconds:.3f} s"
            if silent_seconds > self._ttl_seconds + GIVEN_UP_SECONDS + MOMENT:
                yield f"{worker} is not given up after {silent_seconds:.3f} s"

    def _ear(self, worker: Worker, now: float) -> _Ear:
        ear = self._ears.get(worker)
        if ear is None:
            ear = self._ears[worker] = _Ear(now)
        return ear

    def _note_taken(self, worker: Worker, ear: _Ear) -> None:
        assert worker.silence is not None
        ear.taken.update(worker.silence.runs)


def unheeded(state: SchedulerState, tasks: Sequence[TaskId]) -> Iterator[str]:
    """A sentence for each of these whose result has come, and does not count.

    Of shuffles others may have begun to read another cut.
    """
    if state.barriers:
        return
    for number in tasks:
        task = state.task_by_id.get(number)
        if task is not None and task.is_needed and task.state not in (MEMORY, ERRED):
            yield f"{task!r} is {task.state}, though who was silent has ended it"
