"""What is due with time: silent workers are lost, runs that can't have begun are taken back."""

from shoal.observe.reasons import TOO_SILENT
from shoal.protocol.messages import RecallRuns, Shutdown
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.on_membership import remove_worker
from shoal.scheduler.machine.telling import STEALING, report
from shoal.scheduler.model.entities import NO_RUN, Worker
from shoal.scheduler.policies.liveness import has_stalled_runs, silent_workers
from shoal.scheduler.policies.placement import may_run_on


def on_timer(core: Core) -> list[Worker]:
    """Do what is due; returns the workers that were given up: their connections must close."""
    ttl = core.settings.worker_ttl_seconds
    silent = silent_workers(core.state.workers.values(), ttl, core.now)
    for worker in silent:
        remove_worker(core, worker, f"it was silent for {ttl:.0f} s", expected=False)
        core.to_worker(worker, Shutdown(f"{TOO_SILENT} for {ttl:.0f} s"))
    if core.state.workers:
        core.wake_by(min(w.heard_at for w in core.state.workers.values()) + ttl + 1)
    for woken in core.announced.woken:
        woken(core)
    idle = core.state.open.lowest()
    if idle is not None and idle.nsent == 0 and core.settings.moves_work:
        core.refill[idle] = None
        for worker in list(core.state.piped):
            if has_stalled_runs(worker, core.settings.recall_after_seconds, core.now):
                _recall_unbegun(core, worker, idle)
    return silent


def _recall_unbegun(core: Core, worker: Worker, idle: Worker) -> None:
    """Ask for the runs that no thread of `worker` can have begun and `idle` may run; each once."""
    sent = sorted((task for task in worker.processing if task.run != NO_RUN), key=lambda t: t.run)
    unbegun = [task for task in sent[worker.nbegun_max :] if task.run > worker.last_recalled]
    worker.last_recalled = worker.newest_run
    runs = [(task.id, task.run) for task in unbegun if may_run_on(task, idle)]
    if runs:
        core.to_worker(worker, RecallRuns(runs))
        facts = {"victim": worker.address, "thief": idle.address, "count": len(runs)}
        report(core, (STEALING,), "recall", **facts)
