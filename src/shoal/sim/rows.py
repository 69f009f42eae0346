"""Which rows the outputs of each shuffle of the simulation were made of.

A transfer may give other rows when it is run again.  What is made of them must be of one kind all
the same: an output of the first run's rows and one of the second's would have some rows twice, and
lack others, with nobody knowing.
"""

from shoal.ids import Epoch, RunId, TaskId
from shoal.protocol.messages import Message, TaskFinished
from shoal.scheduler.model.state import SchedulerState

Variants = tuple[int, ...]
"""By input partition: which of the transfer's results it is."""


class Rows:
    """What runs of unpacks have joined, and which of it the scheduler has taken for outputs."""

    def __init__(self) -> None:
        self._joined: dict[tuple[Epoch, RunId], dict[TaskId, Variants]] = {}
        self._outputs: dict[tuple[Epoch, TaskId], Variants] = {}  # by barrier

    def join(self, epoch: Epoch, run: RunId, barrier: TaskId, variants: Variants) -> None:
        """A run of an unpack has joined these."""
        self._joined.setdefault((epoch, run), {})[barrier] = variants

    def contradictions(
        self, epoch: Epoch, state: SchedulerState, batch: list[Message]
    ) -> list[str]:
        """What the scheduler is about to take for outputs, and is of other rows than others are."""
        found: list[str] = []
        for message in batch:
            if not isinstance(message, TaskFinished):
                continue
            joined = self._joined.get((epoch, message.run))
            task = state.task_by_id.get(message.task)
            if joined is None or task is None or task.run != message.run:
                continue
            for barrier, variants in joined.items():
                others = self._outputs.setdefault((epoch, barrier), variants)
                if others != variants:
                    found.append(
                        f"{task.key!r} is made of runs {variants} of the transfers of {barrier}, "
                        f"and other outputs of {others}"
                    )
        return found
