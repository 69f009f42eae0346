"""Workers on which all fails that succeeds elsewhere: given nothing for a while, then tried again.

A machine with a full disk, or without a library or a mount, fails fast and is idle again at once:
it would be given one task after the other, until all have failed.
"""

from collections.abc import Iterator
from typing import Final

from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import WorkerFailsAll
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.pausing import give_again, give_no_more, take_back
from shoal.scheduler.machine.telling import report_quarantine
from shoal.scheduler.machine.warning import warn
from shoal.scheduler.model.entities import Prefix, Worker
from shoal.scheduler.model.failing import Failing
from shoal.scheduler.model.state import SchedulerState

SECONDS: Final = 10.0
SECONDS_MAX: Final = 300.0
"""It is twice as long each time."""

KINDS_MAX: Final = 20
"""That are looked at, of those that failed there."""


def note_failed(core: Core, worker: Worker, prefix: Prefix, text: str) -> None:
    """A run of this kind has raised.  Cost: O(1), but for a worker that is put in quarantine."""
    state, nfailed_max = core.state, core.settings.quarantine_failures
    if not nfailed_max:
        return
    failing = state.failing.get(worker)
    if failing is None:
        failing = state.failing[worker] = Failing()
    failing.nfailed += 1
    if len(failing.nfinished_before) < KINDS_MAX:
        failing.nfinished_before.setdefault(prefix, prefix.nfinished)
    if failing.nfailed < nfailed_max or failing.until is not None:
        return
    nwell = _succeeded_elsewhere(failing)
    if nwell >= nfailed_max and _can_be_spared(state):
        _put_in_quarantine(core, worker, failing, nwell, text)


def note_finished(core: Core, worker: Worker) -> None:
    """A run has ended well there: it can do it."""
    failing = core.state.failing.pop(worker, None)
    if failing is not None and failing.until is not None:
        _let_out(core, worker)


def _succeeded_elsewhere(failing: Failing) -> int:
    """Runs of the kinds that failed that have ended well since; none of them did on this worker."""
    before = failing.nfinished_before
    return sum(max(0, prefix.nfinished - nfinished) for prefix, nfinished in before.items())


def _can_be_spared(state: SchedulerState) -> bool:
    """Half of the workers go on in any case."""
    ninside = sum(failing.until is not None for failing in state.failing.values())
    return 2 * (ninside + 1) <= len(state.workers)


def _put_in_quarantine(core: Core, worker: Worker, failing: Failing, nwell: int, text: str) -> None:
    seconds = min(SECONDS * 2**failing.nturns, SECONDS_MAX)
    failing.nturns += 1
    failing.until = core.now + seconds
    core.wake_by(failing.until)
    worker.is_quarantined = True
    take_back(core, worker)
    give_no_more(core, worker)
    report_quarantine(core, worker, seconds)
    latest = text.strip().partition("\n")[0]
    told = WorkerFailsAll(worker.name, worker.address, failing.nfailed, nwell, seconds, latest)
    warn(core, f"failures of {worker.address}", str(told))


def wake_quarantined(core: Core) -> None:
    """Whose time is over is tried again: the next failure is one too many."""
    for worker, failing in core.state.failing.items():
        if failing.until is None:
            continue
        if core.now < failing.until:
            core.wake_by(failing.until)
            continue
        failing.until = None
        failing.nfailed = core.settings.quarantine_failures - 1
        _let_out(core, worker)


def _let_out(core: Core, worker: Worker) -> None:
    worker.is_quarantined = False
    report_quarantine(core, worker, 0.0)
    give_again(core, worker)


def forget_failing(core: Core, worker: Worker) -> None:
    """It has gone."""
    core.state.failing.pop(worker, None)


def are_in_quarantine(state: SchedulerState) -> Iterator[str]:
    """Whoever is said to be is, and is let out some day."""
    for worker, failing in state.failing.items():
        if state.workers.get(worker.address) is not worker:
            yield f"{worker} failed runs, and has gone"
        if worker.is_quarantined != (failing.until is not None):
            yield f"{worker} is in quarantine, or not, until {failing.until}"
    for worker in state.workers.values():
        if worker.is_quarantined and worker not in state.failing:
            yield f"{worker} is in quarantine for nothing"


HANDLERS = Handlers(worker_gone=forget_failing, woken=wake_quarantined, invariant=are_in_quarantine)
