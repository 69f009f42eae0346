"""Workers' processes are replaced: they are sent away, and their successors are waited for.

Whether somebody starts another process is not ours to know; a worker that has a nanny says so.
"""

from collections.abc import Iterator

from shoal.observe.reasons import RESTARTED
from shoal.protocol.answers import answer
from shoal.protocol.membership import RestartWorkers
from shoal.protocol.messages import Shutdown, TaskCancelled
from shoal.protocol.operations import NO_NANNY, OK, REMOVED, TIMED_OUT
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.on_membership import remove_worker
from shoal.scheduler.machine.placing import update_load
from shoal.scheduler.machine.releasing import settle_all
from shoal.scheduler.machine.scattering import stop_bringing
from shoal.scheduler.machine.telling import ALL, report
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.model.restarts import Replaced, Restart
from shoal.scheduler.model.state import SchedulerState, unlink_hold, unlink_want

SENT_AWAY = "the cluster is restarted"
"""Why a worker without a nanny closes, as it is told."""

EVERYTHING_RESTARTS = "scheduler-restart"
"""Why all wants are cancelled, as clients are told."""


def on_restart_workers(core: Core, client: Client, call: RestartWorkers) -> None:
    """Send workers away, after all wants have ended if that is asked for; answer when others came.

    Those without a nanny are waited for only as everything restarts: whatever has started them may
    do so again.
    """
    state = core.state
    if call.lets_go:
        _cancel_everything(core)
    if call.workers is None:
        workers = list(state.workers.values())
    else:
        workers = list(state.workers_named(call.workers))
    without = [worker for worker in workers if not worker.has_nanny]
    if without and not call.lets_go:
        verdicts = {worker.address: NO_NANNY for worker in without}
        core.to_client(client, answer(call.request, verdicts))
        return
    report(core, (ALL, client.name), "restart-workers", workers=[w.address for w in workers])
    restart = Restart(client, call.request, core.now + call.timeout_seconds)
    for worker in workers:
        replaced = Replaced(worker.address, worker.name, worker.host, worker.pid, worker.has_nanny)
        if worker.has_nanny or call.lets_go:
            restart.awaited.append(replaced)
        restart.verdicts[worker.address] = OK if worker.has_nanny else REMOVED
        remove_worker(core, worker, RESTARTED, expected=True)
        core.send_away(worker, _why(replaced))
    if not call.waits:
        restart.awaited.clear()
    if restart.awaited:
        state.restarts.append(restart)
        core.wake_by(restart.deadline)
    else:
        _answer(core, restart)


def note_successor(core: Core, worker: Worker) -> None:
    """A worker has joined: it may have taken the place of one that is waited for.

    Not if it is that one itself, as its connection broke before it was told to go: it is told now.
    """
    if worker.has_been_here:
        awaited = (one for restart in core.state.restarts for one in restart.awaited)
        itself = next((one for one in awaited if one.is_back(worker)), None)
        if itself is not None:
            worker.is_leaving = worker.says_goodbye = True
            update_load(core, worker)
            core.to_worker(worker, Shutdown(_why(itself)))
        return
    for restart in list(core.state.restarts):
        followed = next((one for one in restart.awaited if one.is_followed_by(worker)), None)
        if followed is None:  # whatever starts workers without a nanny names them as it likes
            followed = next((one for one in restart.awaited if not one.has_nanny), None)
        if followed is None:
            continue
        restart.awaited.remove(followed)
        restart.verdicts[followed.address] = OK
        if not restart.awaited:
            core.state.restarts.remove(restart)
            _answer(core, restart)


def give_up_waiting(core: Core) -> None:
    """Those that have not come in time are told of."""
    for restart in list(core.state.restarts):
        if restart.deadline > core.now:
            core.wake_by(restart.deadline)
            continue
        core.state.restarts.remove(restart)
        for one in restart.awaited:
            restart.verdicts[one.address] = TIMED_OUT if one.has_nanny else REMOVED
        _answer(core, restart)


def drop_restarts(core: Core, client: Client) -> None:
    """The client has gone, and waits for nothing."""
    core.state.restarts = [one for one in core.state.restarts if one.client is not client]


def _why(replaced: Replaced) -> str:
    """What a worker that is sent away is told."""
    return RESTARTED if replaced.has_nanny else SENT_AWAY


def _cancel_everything(core: Core) -> None:
    """Every want of every client ends, whatever was kept included, and clients are told."""
    state = core.state
    for client in (*state.clients.values(), *state.keepers.values()):
        for number, task in list(client.tasks.items()):
            unlink_want(task, client, number)
            stop_bringing(core, task, client)
            core.to_client(client, TaskCancelled(number, EVERYTHING_RESTARTS))
            core.releasing.append(task)
        for number, task in list(client.held.items()):
            unlink_hold(task, client, number)
            core.releasing.append(task)
    settle_all(core)


def _answer(core: Core, restart: Restart) -> None:
    core.to_client(restart.client, answer(restart.request, restart.verdicts))


def restarts_are_awaited(state: SchedulerState) -> Iterator[str]:
    """Somebody waits for each, and somebody is waited for."""
    for restart in state.restarts:
        if state.clients.get(restart.client.id) is not restart.client:
            yield f"{restart.client} waits for workers to come back, and has gone"
        if not restart.awaited:
            yield f"{restart.client} waits for nobody to come back"


HANDLERS = Handlers(
    from_client={RestartWorkers: on_restart_workers},
    worker_joined=note_successor,
    client_gone=drop_restarts,
    woken=give_up_waiting,
    invariant=restarts_are_awaited,
)
