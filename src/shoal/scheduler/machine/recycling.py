"""Workers that are paused for long: one at a time gives its place to another.

Such a worker can make no room by itself, as when a library leaks, or when no disk takes its
results.  It is retired as others are, with one difference: it stays if nobody takes what only it
holds.  Its nanny starts a process under its name, and what may run nowhere else runs there.
"""

from shoal.protocol.memory import WantsReplacement
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.retiring import begin_retiring
from shoal.scheduler.model.copies import RetireCall
from shoal.scheduler.model.entities import NO_WORKER, QUEUED, Worker
from shoal.scheduler.model.state import SchedulerState


def on_wants_replacement(core: Core, worker: Worker, message: WantsReplacement) -> None:
    """Retire it, unless another one is being replaced; else it asks again."""
    if not worker.is_paused or worker.is_leaving or _is_another_replaced(core.state):
        return
    if message.is_of_results and not _helps_to_move(core, worker):
        return
    call = RetireCall(None, 0, removes=True, reason=message.reason)
    begin_retiring(core, [worker], call, message.patience_seconds)


def _helps_to_move(core: Core, worker: Worker) -> bool:
    """Whether tasks wait, and others have room for what it holds without being paused themselves.

    Cost: O(workers).
    """
    state, ratio = core.state, core.settings.memory_pause_ratio
    if not (state.ntasks[QUEUED] or state.ntasks[NO_WORKER]):
        return False
    room = 0.0
    for other in state.workers.values():
        if other.takes_work:
            if not other.memory_limit:
                return True
            room += max(0.0, ratio * other.memory_limit - other.memory_bytes)
    return room > worker.nbytes


def _is_another_replaced(state: SchedulerState) -> bool:
    """Cost: O(workers that retire)."""
    return any(
        retirement.call.client is None and not retirement.call.must_go
        for retirement in state.copies.retiring.values()
    )


HANDLERS = Handlers(from_worker={WantsReplacement: on_wants_replacement})
