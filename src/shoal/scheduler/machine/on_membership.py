"""Workers and clients come and go."""

from typing import Final

from shoal.errors import NameTaken
from shoal.ids import ClientId, WorkerId
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import (
    ClientWelcome,
    RegisterClient,
    RegisterWorker,
    WorkerWelcome,
)
from shoal.scheduler.machine.actors import tell_of_lost_actors
from shoal.scheduler.machine.barriers import may_come_back
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import adopt_replica, lose_replica
from shoal.scheduler.machine.on_looking import watch_members
from shoal.scheduler.machine.orphans import take_orphans
from shoal.scheduler.machine.overfilling import (
    blame,
    hear_of_death,
    is_hopeless,
    killed,
    note_death,
)
from shoal.scheduler.machine.placing import unplace, update_load
from shoal.scheduler.machine.recovering import begin_recovery, expect, note_arrival, note_speaker
from shoal.scheduler.machine.running_again import note_died
from shoal.scheduler.machine.suspecting import lose_for_good
from shoal.scheduler.machine.telling import report_loss
from shoal.scheduler.machine.waiting import fail, wait_again
from shoal.scheduler.model.entities import NO_RUN, Client, Worker, host_of
from shoal.scheduler.policies.blame import suspects

HEARTBEATS_PER_SECOND: Final = 1000
"""Of all workers together, some times that: less than a fifth of a processor for ten thousand."""

DEATHS_MAX: Final = 1000
"""How many deaths are remembered, for the errors of tasks that die again and again."""


def on_register_worker(core: Core, message: RegisterWorker) -> Worker:
    """Register a worker, and record what it still holds from before its connection broke.

    Raises:
        NameTaken: another connected worker has its name.
    """
    note_arrival(core)
    state = core.state
    for other in state.workers_by_alias.get(message.name, {}):
        if other.name == message.name and other.address != message.address:
            raise NameTaken(message.name, other.address)
    before = state.workers.get(message.address)
    if before is not None:
        remove_worker(core, before, "it connected anew", expected=False)
    worker = Worker(
        WorkerId(state.next_worker_id),
        message.address,
        message.name,
        message.nthreads,
        core.queuing.slots(message.nthreads),
        core.now,
    )
    state.next_worker_id += 1
    worker.host = message.host or host_of(message.address)
    worker.pid = message.pid
    worker.memory_limit = message.memory_limit
    worker.resources = message.resources
    worker.available = dict(message.resources)
    worker.predecessor = message.predecessor
    worker.has_been_here = message.epoch == state.epoch
    worker.has_nanny = message.has_nanny
    worker.versions = message.versions
    worker.local_directory = message.local_directory
    worker.nanny = message.nanny
    worker.services = message.services
    state.add_worker(worker)
    if message.predecessor:
        state.deaths[worker.host, message.predecessor] = message.predecessor_death
        if len(state.deaths) > DEATHS_MAX:
            del state.deaths[next(iter(state.deaths))]
        if core.state.footprints.last_seen:
            hear_of_death(core, (worker.host, message.predecessor), message)
    settings = core.settings
    core.to_worker(
        worker,
        WorkerWelcome(state.epoch, worker.id, _heartbeat_seconds(core), settings.inline_bytes_max),
    )
    if message.epoch == state.epoch:
        _take_inventory(core, worker, message)
    elif message.epoch or state.heirlooms.are_awaited:
        begin_recovery(core)
    if message.keeps_orphans and (message.inventory or message.executing):
        take_orphans(core, worker, message)
    for task in list(state.unrunnable):
        wait_again(core, task)
    core.refill[worker] = None
    update_load(core, worker)
    for joined in core.announced.worker_joined:
        joined(core, worker)
    core.wake_by(core.now + min(settings.worker_ttl_seconds, settings.suspect_seconds))
    core.silence_due_at = min(core.silence_due_at, core.now + settings.suspect_seconds)
    return worker


def _heartbeat_seconds(core: Core) -> float:
    """How often one more worker shall say that it lives: less often among very many, and often
    enough that two of its signs are missed before it is suspect."""
    settings = core.settings
    seconds = len(core.state.workers) / HEARTBEATS_PER_SECOND
    return max(settings.heartbeat_seconds, min(seconds, settings.suspect_seconds / 2.5))


def remove_worker(core: Core, worker: Worker, reason: str, *, expected: bool) -> None:
    """A worker has gone: what it ran runs elsewhere, what only it held is computed again.

    Unless that was `expected`, tasks that may have been executing there are to blame.
    """
    report_loss(core, worker, expected=expected)
    if worker.silence is not None:
        lose_for_good(core, worker, reason, expected=expected)
    blamed = [] if expected or worker.is_leaving else suspects(worker)
    for task in blamed:
        blame(core, task, worker)
    note_death(core, worker, blamed)
    for task in list(worker.processing):
        if task.run != NO_RUN:
            note_died(core, task, worker)
        unplace(core, task, recall=False)
        if task in blamed and is_hopeless(core, task, worker):
            error = killed(core, task, worker, reason)
            fail(core, task, to_failure(error, task.key, worker.address))
        else:
            wait_again(core, task)
    if worker.actors:
        tell_of_lost_actors(core, worker, reason)
    for task in list(worker.has_what):
        lose_replica(core, task, worker, reason)
    for gone in core.announced.worker_gone:
        gone(core, worker)
    for code in worker.told:
        del code.told[worker]
    core.state.remove_worker(worker)
    for index in (core.refill, core.held_back, core.freeing, core.speaking):
        index.pop(worker, None)
    worker.outbox.clear()


def on_register_client(core: Core, message: RegisterClient) -> Client:
    """Register a client."""
    note_arrival(core)
    if message.returning:
        begin_recovery(core)
    if message.workers:
        expect(core, message.workers)
    state = core.state
    client = Client(ClientId(state.next_client_id), message.name, core.now)
    client.share = message.share
    client.may_return = message.may_return
    if message.may_return:
        due_at = core.now + core.settings.client_ttl_seconds
        core.clients_due_at = min(core.clients_due_at, due_at)
        core.wake_by(due_at)
    state.next_client_id += 1
    state.clients[client.id] = client
    if message.returning:
        note_speaker(core, client)
    if message.watches_members:
        watch_members(core, client)
    about = core.about
    welcome = ClientWelcome(
        state.epoch,
        about.id,
        dict(about.versions),
        dict(core.services),
        about.started_at,
        {
            worker.address: worker.versions
            for worker in state.workers.values()
            if worker.versions != message.versions
        }
        if message.versions
        else {},
    )
    core.to_client(client, welcome)
    for joined in core.announced.client_joined:
        joined(core, client)
    return client


def remove_client(core: Core, client: Client) -> None:
    """A client has gone: what only it wanted is let go, and what else is kept for it."""
    for gone in core.announced.client_gone:
        gone(core, client)
    del core.state.clients[client.id]
    core.speaking.pop(client, None)
    client.outbox.clear()


def _take_inventory(core: Core, worker: Worker, message: RegisterWorker) -> None:
    """Record the replicas that are of use, and free the others; a fact, not a negotiation."""
    barriers = core.state.barriers
    for item in message.inventory:
        if item.task < 0:
            continue
        task = core.state.task_by_id.get(item.task)
        if task is None or task.key != item.key or (barriers and not may_come_back(core, task)):
            core.free(worker, item.task)
        else:
            adopt_replica(core, task, worker, item.nbytes)
