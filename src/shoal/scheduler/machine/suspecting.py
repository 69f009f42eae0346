"""Workers that are silent though they should have spoken: *suspect*, until they are heard or lost.
So are those that hear nothing.

Such a worker is given nothing more, and what is needed of it is computed elsewhere, as if it had
gone.  But it stays registered, and what was taken from it is noted: once it is heard it has its
results again, and what it ran to the end meanwhile counts, if nobody else was quicker.  What nobody
can compute anew, as it was scattered, waits for it; actors stay where they are.
"""

from collections.abc import Iterator

from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import AskHearing, RecallRuns
from shoal.protocol.orphans import FreeOrphans
from shoal.scheduler.machine.barriers import may_come_back
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import WorkerIsSilent
from shoal.scheduler.machine.finishing import adopt_replica, lose_replica
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.orphans import drop_worker
from shoal.scheduler.machine.overfilling import blame, is_hopeless, killed
from shoal.scheduler.machine.pausing import give_again, give_no_more
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.running_again import note_silent
from shoal.scheduler.machine.scattering import fail_lost
from shoal.scheduler.machine.telling import report_silence
from shoal.scheduler.machine.waiting import fail, wait_again
from shoal.scheduler.machine.warning import warn
from shoal.scheduler.model.entities import (
    NEEDS_INPUTS,
    NO_RUN,
    NO_WORKER,
    WAITING,
    Silence,
    Task,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.blame import suspects


def suspect(core: Core, worker: Worker) -> None:
    """Nothing was heard of it for too long: go on without it.  Cost: as if it had gone."""
    state = core.state
    silence = Silence(core.now)
    silence.accused = [task for task in suspects(worker) if not task.options.actor]
    worker.silence = silence
    for task in list(worker.processing):
        if task.options.actor:
            continue  # it may live there already
        if task.run != NO_RUN:
            silence.runs[task.run] = task
            note_silent(core, task, worker)
            core.to_worker(worker, RecallRuns([(task.id, task.run)]))  # what has begun may count
        unplace(core, task, recall=False)
        wait_again(core, task)
    for task in list(worker.has_what):
        if not task.options.actor:
            silence.replicas[task.id] = task.nbytes
            lose_replica(core, task, worker)
    silence.orphans = [
        key
        for key in state.orphans.of_worker.get(worker, ())
        if worker in state.orphans.by_key[key].holders
    ]
    drop_worker(core, worker)
    give_no_more(core, worker)
    report_silence(core, worker, is_suspect=True)
    silent_seconds = core.now - worker.heard_at
    is_deaf = worker.hearing.is_lost
    told = WorkerIsSilent(worker.name, worker.address, worker.pid, silent_seconds, is_deaf=is_deaf)
    warn(core, f"silence of {worker.address}", str(told))


def trust_again(core: Core, worker: Worker) -> None:
    """It was heard: it has what it had, and is given work."""
    silence, state = worker.silence, core.state
    if silence is None:
        return
    worker.silence = None
    worker.forfeited.update(silence.runs)
    for number, nbytes in silence.replicas.items():
        task = state.task_by_id.get(number)
        if task is None or (state.barriers and not may_come_back(core, task)):
            core.free(worker, number)
            continue
        state.withheld.pop(task, None)
        adopt_replica(core, task, worker, nbytes)
    if silence.orphans:
        core.to_worker(worker, FreeOrphans(silence.orphans))
    report_silence(core, worker, is_suspect=False)
    give_again(core, worker)


def note_hearing(core: Core, worker: Worker, received_bytes: int, heard: int) -> None:
    """A sign of life tells how much has arrived: who hears nothing is as good as silent.

    One that has received nothing since its last sign of life, and may not have heard all that was
    said, is asked.  If nothing has arrived by its next sign of life either, nothing that it says is
    a sign of life from then on, until something has.  `heard`: the latest question that has come,
    and with it all before; what comes meanwhile may have been said before the question.
    """
    hearing = worker.hearing
    has_received = received_bytes != hearing.received_bytes
    hearing.received_bytes = received_bytes
    if hearing.is_asked and heard == hearing.nsaid_asked:
        hearing.nheard, has_received = heard, True
    is_lost = hearing.is_asked and not has_received
    if not has_received and not is_lost and hearing.nsaid > hearing.nheard:
        hearing.nsaid_asked = hearing.nsaid + len(worker.outbox) + 1
        core.to_worker(worker, AskHearing(hearing.nsaid_asked))
    if is_lost and not hearing.is_lost:
        # One that was held up may say this before it reads: the next one comes in time.
        worker.heard_at = max(hearing.well_at, core.now - core.settings.suspect_seconds / 2)
    elif not is_lost:
        worker.heard_at = hearing.well_at = core.now
        trust_again(core, worker)
    hearing.is_lost = is_lost


def on_vouch_for_worker(core: Core, worker: Worker) -> None:
    """Its process lives, and is kept from saying so: that is a sign of life."""
    worker.vouched_at = core.now
    trust_again(core, worker)


def lose_for_good(core: Core, worker: Worker, reason: str, *, expected: bool) -> None:
    """A suspect is removed: what had waited for it has not to, and who silenced it is blamed.

    That is, what may have been executing there and has not ended since; it may run elsewhere by
    now, and is let go on unless it has done this to too many.  Nobody is, if it was to go.
    """
    silence = worker.silence
    if silence is None:
        return
    for task, keeper in list(core.state.withheld.items()):
        if keeper is worker:
            del core.state.withheld[task]
            if task.state == WAITING and task not in core.state.scattering:
                fail_lost(core, task, worker)
    for task in () if expected or worker.is_leaving else silence.accused:
        if core.state.tasks.get(task.key) is task and task.state in NEEDS_INPUTS:
            blame(core, task, worker)
            if is_hopeless(core, task, worker):
                _fail(core, task, worker, reason)
    worker.silence = None


def _fail(core: Core, task: Task, worker: Worker, reason: str) -> None:
    """Wherever it is by now."""
    if task.worker is not None:
        unplace(core, task, recall=True)
    if task.state == NO_WORKER:
        del core.state.unrunnable[task]
    error = killed(core, task, worker, reason)
    fail(core, task, to_failure(error, task.key, worker.address))


def are_silent(state: SchedulerState) -> Iterator[str]:
    """A suspect has nothing but actors; and what waits for one, waits for one that is there."""
    for worker in state.workers.values():
        if worker.silence is None:
            continue
        if worker.takes_work:
            yield f"{worker} is suspect, and is given work"
        for task in (*worker.processing, *worker.has_what):
            if not task.options.actor:
                yield f"{worker} is suspect, and {task!r} is there"
    for task, keeper in state.withheld.items():
        if keeper.silence is None or state.workers.get(keeper.address) is not keeper:
            yield f"{task!r} waits for {keeper}, which is no suspect"
        elif task.id not in keeper.silence.replicas:
            yield f"{task!r} waits for {keeper}, which never had it"


HANDLERS = Handlers(invariant=are_silent)
