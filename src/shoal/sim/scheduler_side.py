"""The scheduler in the simulation: its real machine, and connections in place of a service."""

from typing import TYPE_CHECKING

from shoal.ids import Epoch
from shoal.protocol.messages import (
    InputsUnavailable,
    Message,
    RegisterClient,
    RegisterWorker,
    WorkerHeartbeat,
)
from shoal.scheduler.machine.invariants import check as check_scheduler
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.faults import SCHEDULER
from shoal.sim.network import End
from shoal.sim.wire import TO_CLIENT, TO_WORKER

if TYPE_CHECKING:
    from shoal.sim.cluster import Cluster


class SchedulerActor:
    """One life of a scheduler."""

    def __init__(self, cluster: "Cluster", epoch: Epoch) -> None:
        self.cluster = cluster
        self.epoch = epoch
        self.settings = _settings(cluster.plan.settings)
        self.machine = SchedulerMachine(self.settings, epoch)
        self.peers: dict[End, Worker | Client] = {}
        self.nsteps = 0
        self._ends: list[End] = []  # all that were accepted and are open
        self._end_by_peer: dict[Worker | Client, End] = {}
        self._wake_planned_at: float | None = None
        self._is_over = False

    def accept(self, end: End) -> None:
        """Somebody connects; their first message says who they are."""
        self._ends.append(end)
        end.on_messages = lambda batch: self._receive(end, batch)
        end.on_closed = lambda: self._closed(end)

    def die(self) -> None:
        """The process is gone: every connection breaks."""
        self._is_over = True
        for end in self._ends:
            end.drop()

    def _receive(self, end: End, batch: list[Message]) -> None:
        if self._is_over:
            return
        cluster, machine = self.cluster, self.machine
        now = cluster.world.now
        if not all(isinstance(message, WorkerHeartbeat) for message in batch):
            cluster.hear(SCHEDULER, batch)
        peer = self.peers.get(end)
        if peer is None:
            first, batch = batch[0], batch[1:]
            if isinstance(first, RegisterWorker):
                self._note_deaths(machine.state.workers.get(first.address))
                peer = machine.worker_joined(first, now)
            elif isinstance(first, RegisterClient):
                cluster.oracle.client_joined(first.name)
                peer = machine.client_joined(first, now)
            else:
                cluster.fail("vocabulary", f"a stranger begins with {first!r}")
                return
            self.peers[end] = peer
            self._end_by_peer[peer] = end
            self._let_go_of_replaced()
        if batch:
            if isinstance(peer, Worker):
                self._note_unavailable(batch)
                machine.receive_from_worker(peer, batch, now)
            else:
                for message in batch:
                    cluster.oracle.client_said(peer.name, message)
                machine.receive_from_client(peer, batch, now)
        self._after_step()

    def _closed(self, end: End) -> None:
        if self._is_over:
            return
        self._ends.remove(end)
        peer = self.peers.pop(end, None)
        if peer is None or self._end_by_peer.get(peer) is not end:
            return
        del self._end_by_peer[peer]
        now = self.cluster.world.now
        self.cluster.trace.note(now, SCHEDULER, "loses", end.other.owner)
        if isinstance(peer, Worker):
            self._note_deaths(peer)
            self.machine.worker_lost(peer, now, "its connection broke", expected=peer.is_leaving)
        else:
            self.cluster.oracle.client_lost(peer.name)
            self.machine.client_lost(peer, now)
        self._after_step()

    def _wake(self, planned_at: float) -> None:
        if self._is_over or self._wake_planned_at != planned_at:
            return
        self._wake_planned_at = None
        for worker in self.machine.state.workers.values():
            if worker.heard_at < self.cluster.world.now - self.settings.worker_ttl_seconds:
                self._note_deaths(worker)
        self.machine.wake(self.cluster.world.now)
        self._let_go_of_replaced()
        self._after_step()

    def _let_go_of_replaced(self) -> None:
        """Close connections of workers that the machine no longer knows."""
        workers = self.machine.state.workers
        for peer, end in list(self._end_by_peer.items()):
            if isinstance(peer, Worker) and workers.get(peer.address) is not peer:
                self._say_outgoing()
                self._end_by_peer.pop(peer, None)
                self.peers.pop(end, None)
                self._ends.remove(end)
                end.close()

    def _after_step(self) -> None:
        """Say what is to be said, plan the next wake-up, and look whether all is well."""
        self._say_outgoing()
        cluster, machine = self.cluster, self.machine
        wake_at = machine.wake_at
        planned = self._wake_planned_at
        if wake_at is not None and (planned is None or wake_at < planned):
            self._wake_planned_at = wake_at
            cluster.world.at(wake_at, self._wake, wake_at, background=True)
        self.nsteps += 1
        oracle, tasks = cluster.oracle, machine.state.tasks
        if oracle.fresh:
            fresh = [one.key for one in oracle.fresh if one.key in tasks]
            oracle.bind({key: tasks[key].id for key in fresh})
        if len(tasks) != len(oracle.known):
            self._fail_about_known()
        if cluster.checks_all:
            for sentence in check_scheduler(machine.state):
                cluster.fail("scheduler machine", sentence)

    def _say_outgoing(self) -> None:
        for peer, messages in self.machine.take_outgoing():
            end = self._end_by_peer.get(peer)
            if end is not None:
                decoder = TO_WORKER if isinstance(peer, Worker) else TO_CLIENT
                self.cluster.say(end, messages, decoder)

    def _fail_about_known(self) -> None:
        known, tasks = self.cluster.oracle.known, self.machine.state.tasks
        lost = [key for key in known if key not in tasks]
        kept = [key for key in tasks if key not in known]
        self.cluster.fail(
            "known is what is needed",
            f"the scheduler has forgotten {lost}, which is needed, and keeps {kept}, which is not",
            *lost,
            *kept,
        )

    # --- what failures may be blamed on ------------------------------------------------------

    def _note_deaths(self, worker: Worker | None) -> None:
        if worker is not None and not worker.is_leaving:
            for task in worker.processing:
                instance = self.cluster.oracle.by_task.get(task.id)
                if instance is not None:
                    instance.ndeaths += 1

    def _note_unavailable(self, batch: list[Message]) -> None:
        for message in batch:
            if isinstance(message, InputsUnavailable):
                instance = self.cluster.oracle.by_task.get(message.task)
                if instance is not None:
                    instance.nunavailable += 1


def _settings(chosen: tuple[tuple[str, float], ...]) -> SchedulerSettings:
    return SchedulerSettings(**dict(chosen))  # type: ignore[arg-type]
