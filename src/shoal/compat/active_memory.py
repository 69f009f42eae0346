"""Policies for copies of results, by upstream's names: what programs derive theirs from.

They run in `scheduler/shell/rounds.py`; that copies which nobody needs are dropped is done by the
scheduler's machine, unless there are others beside it.
"""

from __future__ import annotations

import abc
from collections.abc import Generator
from typing import Any, ClassVar, Literal, NamedTuple

from shoal.observe.views import TaskView, WorkerView
from shoal.scheduler.machine.reducing import too_many_of
from shoal.scheduler.model.entities import MEMORY
from shoal.scheduler.policies.measures import MEASURES
from shoal.scheduler.policies.retirement import is_only_with


class Suggestion(NamedTuple):
    """That one copy of a result be made or dropped."""

    op: Literal["replicate", "drop"]
    ts: Any
    """The task, as `scheduler.tasks` has it."""
    candidates: Any = None
    """Workers among which to choose, as `scheduler.workers` has them; None: all."""


SuggestionGenerator = Generator[Suggestion, Any, None]
"""Each `yield` gives the worker that was chosen, or None if there is none."""


class ActiveMemoryManagerPolicy(abc.ABC):
    """Suggests copies to be made and dropped, round after round."""

    __slots__ = ("__weakref__", "manager")

    manager: Any
    """What runs it: `manager.scheduler` is the scheduler, `manager.pending` what was chosen."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abc.abstractmethod
    def run(self) -> SuggestionGenerator:
        """Yield suggestions; called once a round, on the scheduler's loop, where it must not wait.

        What it raises is logged, and ends its part of the round.
        """


class ReduceReplicas(ActiveMemoryManagerPolicy):
    """Copies that nobody needs are dropped, where memory is fullest."""

    __slots__ = ()

    is_of_the_machine: ClassVar[bool] = True
    """Alone, it is done without being asked.  That of a class derived from this one is not."""

    def run(self) -> SuggestionGenerator:
        """Suggest to drop each copy that is too much.  Cost: O(results with several copies)."""
        state = self.manager.scheduler.machine.state
        memory_of = MEASURES[self.manager.measure]
        for task in list(state.reduction.doubled):
            for worker in too_many_of(state, task, memory_of):
                yield Suggestion("drop", TaskView(task), {WorkerView(worker)})


class RetireWorker(ActiveMemoryManagerPolicy):
    """What only one worker holds is copied elsewhere; then the policy leaves by itself.

    The worker stays, and goes on working: `scheduler.retire_workers` is what lets one go.
    """

    __slots__ = ("address", "no_recipients")

    def __init__(self, address: str) -> None:
        self.address = address
        self.no_recipients = False
        """Whether it gave up, as nobody can take what is left."""

    def __repr__(self) -> str:
        return f"RetireWorker({self.address!r})"

    def run(self) -> SuggestionGenerator:
        """Suggest a copy of each result that would be lost, and to drop what others have."""
        state = self.manager.scheduler.machine.state
        worker = state.workers.get(self.address)
        if worker is None:
            self.manager.policies.discard(self)
            return
        others = {WorkerView(w) for w in state.workers.values() if w is not worker}
        nleft = nchosen = 0
        for task in list(worker.has_what):
            if task.options.actor or task.state != MEMORY:
                continue
            if is_only_with(task, {worker: None}):
                nleft += 1
                chosen: Any = state.copies.on_way.get(task)  # since a round before
                if chosen is None:
                    chosen = yield Suggestion("replicate", TaskView(task), others)
                nchosen += chosen is not None
            elif task.who_has is not None and len(task.who_has) > 1:
                yield Suggestion("drop", TaskView(task), {WorkerView(worker)})
        if nleft and not nchosen:
            self.no_recipients = True
        if self.no_recipients or not nleft:
            self.manager.policies.discard(self)

    def done(self) -> bool:
        """Whether nothing would be lost with the worker.  Cost: O(what it holds)."""
        worker = self.manager.scheduler.machine.state.workers.get(self.address)
        if worker is None:
            return True
        return not any(is_only_with(task, {worker: None}) for task in worker.has_what)
