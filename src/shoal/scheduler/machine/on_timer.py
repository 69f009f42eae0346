"""What is due with time: silent workers are lost, runs that can't have begun are taken back."""

from collections import deque
from itertools import islice
from math import inf

from shoal.ids import RunId, TaskId
from shoal.observe.reasons import TOO_SILENT
from shoal.protocol.messages import RecallRuns, Shutdown
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.on_membership import remove_worker
from shoal.scheduler.machine.placing import update_load
from shoal.scheduler.machine.stealing import is_better_off
from shoal.scheduler.machine.suspecting import suspect
from shoal.scheduler.machine.telling import STEALING, report
from shoal.scheduler.model.entities import NO_RUN, Worker
from shoal.scheduler.policies.liveness import (
    has_stalled_runs,
    next_silence,
    silent_workers,
    suspects_among,
)

THIEVES_MAX = 32
"""Idle workers that look for something to do in one step, as time has come."""

DEAF_SECONDS = 1.0
"""If time comes so much too late, we were stopped, or very busy: who spoke was not heard."""

PIPED_MAX = 256
"""Workers with runs that can't have begun that are looked at in one step."""


def on_timer(core: Core) -> list[Worker]:
    """Do what is due; returns the workers that were given up: their connections must close."""
    if core.late_seconds > DEAF_SECONDS:
        core.listening_since = core.now
    silent = _give_up_silent(core) if core.now >= core.silence_due_at else []
    if core.state.workers:
        core.wake_by(core.silence_due_at)
    if core.now >= core.clients_due_at:
        _end_silent_clients(core)
    core.wake_by(core.clients_due_at)
    for woken in core.announced.woken:
        woken(core)
    if core.settings.moves_work:
        _find_work_for_idle(core)
    return silent


def _give_up_silent(core: Core) -> list[Worker]:
    """Remove those who have said nothing for too long, and return them; after less than that they
    are suspect.

    Where nobody could be heard, as we were stopped ourselves, silence counts from then on.  It is
    known then until when nobody else can be due, and until then this is not asked again.
    Cost: O(workers).
    """
    settings, workers = core.settings, core.state.workers
    ttl = settings.worker_ttl_seconds
    silent = silent_workers(workers.values(), ttl, core.now, core.listening_since)
    for worker in silent:
        remove_worker(core, worker, f"it was silent for {ttl:.0f} s", expected=False)
        core.to_worker(worker, Shutdown(f"{TOO_SILENT} for {ttl:.0f} s"))
    for worker in suspects_among(
        workers.values(), settings.suspect_seconds, core.now, core.listening_since
    ):
        suspect(core, worker)
    core.silence_due_at = next_silence(
        workers.values(), ttl, settings.suspect_seconds, core.now, core.listening_since
    )
    return silent


def _end_silent_clients(core: Core) -> None:
    """What they want is let go of as their connections end; once they are back, they say it again.

    Those that could not come back are kept, however long they are silent.  Cost: O(clients).
    """
    ttl = core.settings.client_ttl_seconds
    core.clients_due_at = inf
    for client in core.state.clients.values():
        if client.may_return:
            heard_at = max(client.heard_at, core.listening_since)
            if core.now >= heard_at + ttl:
                core.silent_clients.append(client)
            else:
                core.clients_due_at = min(core.clients_due_at, heard_at + ttl)


def _find_work_for_idle(core: Core) -> None:
    """Idle workers look for something to do; for the others, runs are recalled from who is slow."""
    idle = [w for w in islice(core.state.open.from_lowest(), THIEVES_MAX) if w.nsent == 0]
    core.refill.update(dict.fromkeys(idle))
    threads = deque(worker for worker in idle for _ in range(worker.nthreads))
    piped = core.state.piped
    for worker in list(islice(piped, PIPED_MAX)):
        if not threads:
            return
        if has_stalled_runs(worker, core.settings.recall_after_seconds, core.now):
            _recall_unbegun(core, worker, threads)
            update_load(core, worker)
        else:  # the next step begins with others
            del piped[worker]
            piped[worker] = None


def _recall_unbegun(core: Core, worker: Worker, threads: deque[Worker]) -> None:
    """Ask for the runs that no thread of `worker` can have begun, for idle ones that would start
    them sooner; each is considered once.

    `threads`: a worker for each idle thread; those that get something are taken off.
    """
    sent = sorted((task for task in worker.processing if task.run != NO_RUN), key=lambda t: t.run)
    unbegun = [task for task in sent[worker.nbegun_max :] if task.run > worker.last_recalled]
    runs: list[tuple[TaskId, RunId]] = []
    thief = threads[0]
    for task in unbegun:
        if not threads:
            break
        thief = threads[0]
        worker.last_recalled = task.run
        if is_better_off(core, task, worker, thief):
            threads.popleft()
            core.state.recalled[task] = thief
            runs.append((task.id, task.run))
    else:
        worker.last_recalled = worker.newest_run  # whatever came after them has ended
    if runs:
        core.to_worker(worker, RecallRuns(runs))
        facts = {"victim": worker.address, "thief": thief.address, "count": len(runs)}
        report(core, (STEALING,), "recall", **facts)
