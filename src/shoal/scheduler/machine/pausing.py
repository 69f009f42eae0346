"""Workers that start nothing, as their memory is short, until they say that they do again.

What has not begun there goes elsewhere, if anybody else may run it; else it waits here.  What a
paused worker holds it serves as before.  Once all have been paused for a while, the clients whose
tasks wait are told why.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from shoal.protocol.memory import AllPaused, PauseChanged
from shoal.protocol.messages import RecallRuns
from shoal.scheduler.machine.copying import attend_to_resumed, refuse_paused
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import drop_unmet
from shoal.scheduler.machine.errors import AllArePaused
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.placing import unplace, update_load
from shoal.scheduler.machine.waiting import wait_again
from shoal.scheduler.machine.waiting_calls import answer_waiting_calls
from shoal.scheduler.machine.warning import warn
from shoal.scheduler.model.entities import (
    NO_RUN,
    NO_WORKER,
    QUEUED,
    WAITING,
    Client,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState

AGAIN_SECONDS: Final = 300.0
"""How long a client is not told again that all are paused."""

WANTS_LOOKED_AT: Final = 200
"""Of a client, the latest, to find one that waits."""

_WAITING: Final = (WAITING, QUEUED, NO_WORKER)


def on_pause_changed(core: Core, worker: Worker, message: PauseChanged) -> None:
    """It starts nothing more, or is given work again."""
    worker.pause_why = message.why if message.is_paused else ""
    if message.is_paused == worker.is_paused:
        return
    worker.is_paused = message.is_paused
    if message.is_paused:
        _watch(core)
        take_back(core, worker)
        give_no_more(core, worker)
    else:
        give_again(core, worker)


def give_no_more(core: Core, worker: Worker) -> None:
    """It takes no work any more, for a while at least, nor copies."""
    refuse_paused(core, worker)
    update_load(core, worker)
    if core.state.demands:
        drop_unmet(core)


def give_again(core: Core, worker: Worker) -> None:
    """It takes work again: what waits for somebody is decided anew."""
    if worker.takes_work:
        core.state.all_paused_since = None
    attend_to_resumed(core, worker)
    update_load(core, worker)
    core.refill[worker] = None
    core.has_new_demand = core.has_new_demand or bool(core.state.demands)
    for task in list(core.state.unrunnable):
        wait_again(core, task)
    answer_waiting_calls(core, worker)


def take_back(core: Core, worker: Worker) -> bool:
    """What is placed there goes elsewhere, and what was sent and has not begun comes back.

    Returns:
        Whether anything was sent, so that some of it may come back.
    """
    sent = []
    for task in list(worker.processing):
        if task.run == NO_RUN:
            unplace(core, task, recall=False)
            wait_again(core, task)
        else:
            sent.append((task.id, task.run))
    if sent:
        core.to_worker(worker, RecallRuns(sent))
    return bool(sent)


def _watch(core: Core, gone: Worker | None = None) -> None:
    """If nobody is left who is not paused, that is told in a while.  Cost: O(workers).

    `gone`: who is about to be removed.
    """
    state, seconds = core.state, core.settings.stranded_warning_seconds
    if seconds is None or state.all_paused_since is not None:
        return
    staying = (w for w in state.workers.values() if w is not gone and not w.is_leaving)
    first = next(staying, None)
    if first is not None and first.is_paused and all(worker.is_paused for worker in staying):
        state.all_paused_since = core.now
        core.wake_by(core.now + seconds)


def tell_of_pause(core: Core) -> None:
    """All have been paused for a while: who waits is told.

    Cost: O(workers) then, and for each client O(`WANTS_LOOKED_AT`), as often as tasks that nobody
    may run are looked for.
    """
    state, seconds = core.state, core.settings.stranded_warning_seconds
    since = state.all_paused_since
    if since is None or seconds is None:
        return
    if core.now < since + seconds:
        core.wake_by(since + seconds)
        return
    paused = [worker for worker in state.workers.values() if not worker.is_leaving]
    for client, at in list(state.told_paused.items()):
        if at + AGAIN_SECONDS <= core.now:
            del state.told_paused[client]
    fullest = max(paused, key=_fullness, default=None)
    if not (state.ntasks[QUEUED] or state.ntasks[NO_WORKER] or core.awaiting):
        fullest = None  # all that there is to do is being done
    for client in state.clients.values():
        if fullest is None or client in state.told_paused or client in state.serving:
            continue  # nobody reads what the client of a task is told
        if _waits(client):
            state.told_paused[client] = core.now
            name = fullest.name or fullest.address
            told = AllPaused(len(paused), core.now - since, name, fullest.pause_why)
            core.to_client(client, told)
    if fullest is not None:
        warn(
            core, "all are paused", str(AllArePaused(len(paused), core.now - since, _why(fullest)))
        )
    core.wake_by(core.now + seconds)


def _why(worker: Worker) -> str:
    return f"{worker.name or worker.address}: {worker.pause_why}"


def _fullness(worker: Worker) -> float:
    return worker.memory_bytes / worker.memory_limit if worker.memory_limit else 0.0


def _waits(client: Client) -> bool:
    """Whether any of what it has asked for lately is not there yet."""
    latest = islice(reversed(client.tasks.values()), WANTS_LOOKED_AT)
    return any(task.state in _WAITING for task in latest)


def note_worker(core: Core, worker: Worker) -> None:
    """One has come, and is not paused until it says so."""
    core.state.all_paused_since = None


def on_worker_gone(core: Core, worker: Worker) -> None:
    """It may have been the last that was not paused, or that was there at all."""
    state = core.state
    if not any(w is not worker and not w.is_leaving for w in state.workers.values()):
        state.all_paused_since = None
    _watch(core, worker)


def forget_client(core: Core, client: Client) -> None:
    """It has gone."""
    core.state.told_paused.pop(client, None)


def all_are_paused(state: SchedulerState) -> Iterator[str]:
    """What clients are told is so; and who was told is connected."""
    if state.all_paused_since is not None:
        for worker in state.workers.values():
            if worker.takes_work:
                yield f"all are said to be paused, and {worker} is not"
    for client in state.told_paused:
        if state.clients.get(client.id) is not client:
            yield f"{client} was told that all are paused, and has gone"


HANDLERS = Handlers(
    from_worker={PauseChanged: on_pause_changed},
    worker_joined=note_worker,
    worker_gone=on_worker_gone,
    client_gone=forget_client,
    woken=tell_of_pause,
    invariant=all_are_paused,
)
