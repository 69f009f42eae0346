"""The scheduler in the simulation: its real machine, and connections in place of a service."""

from shoal.ids import Key
from shoal.protocol.datasets import UnpublishDatasets
from shoal.protocol.journal import Entry
from shoal.protocol.messages import (
    AcquireReplicas,
    Input,
    InputsUnavailable,
    Message,
    RegisterClient,
    RegisterWorker,
    RunReturned,
    TaskFailed,
    TaskFinished,
    WantKey,
    WorkerHeartbeat,
)
from shoal.protocol.orphans import ReplicasAdopted
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import MEMORY, Client, Worker
from shoal.scheduler.policies.liveness import sign_at
from shoal.sim.distrusted import claims_of, still_believed
from shoal.sim.dropping import dropped_too_much
from shoal.sim.faults import SCHEDULER
from shoal.sim.journals import contradictions
from shoal.sim.network import End
from shoal.sim.silence_judge import SilenceJudge, unheeded
from shoal.sim.stage import Stage
from shoal.sim.wire import TO_CLIENT, TO_WORKER


class SchedulerActor:
    """One life of a scheduler."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.machine = SchedulerMachine(stage.settings, stage.epoch)
        self.peers: dict[End, Worker | Client] = {}
        self.nsteps = 0
        self._ends: list[End] = []  # all that were accepted and are open
        self._end_by_peer: dict[Worker | Client, End] = {}
        self._wake_planned_at: float | None = None
        self._is_over = False
        self._keeps_journal = stage.plan.sync_seconds is not None
        self._silences = SilenceJudge(stage.settings)

    def begin(self) -> None:
        """Before anybody connects: go on with what is on disk, if a journal is kept."""
        if not self._keeps_journal:
            return
        stage = self.stage
        found = stage.disk.begin()
        for sentence in stage.disk.missing(found):
            stage.fail("what is told is published stays so", sentence)
        self.machine.begin_journal(found, stage.epoch, stage.world.now)
        stage.oracle.restored(found)
        self._after_step()

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

    def copy_to(self, address: str, every: int) -> None:
        """Have a worker get copies of results, as a policy for replicas would."""
        state = self.machine.state
        worker = state.workers.get(address)
        end = self._end_by_peer.get(worker) if worker is not None else None
        there = [task for task in state.tasks.values() if task.state == MEMORY][::every]
        inputs = [
            Input(
                task.id,
                task.key,
                task.nbytes,
                [holder.address for holder in task.who_has or ()],
                task.value,
            )
            for task in there
        ]
        if end is not None and inputs:
            self.stage.say(end, [AcquireReplicas(inputs)], TO_WORKER)

    def unpublish_all(self) -> None:
        """A late client lets go of all that is published."""
        machine, oracle, now = self.machine, self.stage.oracle, self.stage.world.now
        name = f"late.{self.stage.epoch}"
        oracle.client_joined(name)
        client = machine.client_joined(RegisterClient(name), now)
        message = UnpublishDatasets(1, list(machine.state.datasets))
        oracle.client_said(name, message)
        machine.receive_from_client(client, [message], now)
        oracle.client_lost(name)
        machine.client_lost(client, now)
        self._after_step()

    def _receive(self, end: End, batch: list[Message]) -> None:
        if self._is_over:
            return
        stage, machine = self.stage, self.machine
        now = stage.world.now
        if not all(isinstance(message, WorkerHeartbeat) for message in batch):
            stage.hear(SCHEDULER, batch)
        peer = self.peers.get(end)
        if peer is None:
            first, batch = batch[0], batch[1:]
            if isinstance(first, RegisterWorker):
                self._note_deaths(machine.state.workers.get(first.address))
                peer = machine.worker_joined(first, now)
            elif isinstance(first, RegisterClient):
                stage.oracle.client_joined(first.name)
                peer = machine.client_joined(first, now)
            else:
                stage.fail("vocabulary", f"a stranger begins with {first!r}")
                return
            self.peers[end] = peer
            self._end_by_peer[peer] = end
            self._let_go_of_replaced()
        if batch:
            if isinstance(peer, Worker):
                self._note_unavailable(batch)
                self._note_adopted(batch)
                self._silences.heard(peer, end, batch, now)
                self._receive_from_worker(peer, batch)
            else:
                for message in batch:
                    if isinstance(message, WantKey) and self._may_know(message.key):
                        stage.oracle.named(peer.name, message)
                    stage.oracle.client_said(peer.name, message)
                machine.receive_from_client(peer, batch, now)
        self._after_step()

    def _receive_from_worker(self, worker: Worker, batch: list[Message]) -> None:
        """Pass messages on; if all of them are stale, they must change nothing.

        But for what was of no use before, and is let go of some at a time, in any step.
        """
        machine = self.machine
        for sentence in self.stage.rows.contradictions(self.stage.epoch, machine.state, batch):
            self.stage.fail("outputs of a shuffle are of the same rows", sentence)
        is_stale = not machine.is_forgetting
        is_stale = is_stale and all(self._is_stale(worker, message) for message in batch)
        ntransitions = len(machine.story)
        now = self.stage.world.now
        claims = claims_of(machine.state, worker, batch, now) if machine.state.barriers else []
        counting = self._silences.counts(worker, batch)
        machine.receive_from_worker(worker, batch, now)
        for sentence in unheeded(machine.state, counting):
            self.stage.fail("what a silent worker ended counts", sentence)
        for sentence in still_believed(machine.state, claims):
            self.stage.fail("who lacks shards is not believed to have them", sentence)
        if is_stale and len(machine.story) != ntransitions:
            changed = list(machine.story)[ntransitions:]
            self.stage.fail(
                "stale answers change nothing",
                f"{batch!r} of {worker} is stale, and changed {changed!r}",
            )

    def _is_stale(self, worker: Worker, message: Message) -> bool:
        if not isinstance(message, TaskFinished | TaskFailed | RunReturned | InputsUnavailable):
            return False
        if message.run in worker.claims or message.run in worker.weights:
            return False  # what it had is there for others now
        if worker.silence is not None or message.run in worker.forfeited:
            return False  # it is heard again, or has ended what was taken from it
        task = self.machine.state.task_by_id.get(message.task)
        return task is None or task.run != message.run or task.worker is not worker

    def _may_know(self, key: Key) -> bool:
        """Whether a key is taken for one that a worker has, or somebody may yet submit."""
        state = self.machine.state
        return key in state.orphans.by_key or state.recovery is not None

    def _note_adopted(self, batch: list[Message]) -> None:
        for message in batch:
            if isinstance(message, ReplicasAdopted):
                for key, task in zip(message.keys, message.tasks, strict=True):
                    self.stage.oracle.adopted(task)
                    self.stage.awaited.computed(key)

    def _closed(self, end: End) -> None:
        if self._is_over:
            return
        self._ends.remove(end)
        peer = self.peers.pop(end, None)
        if peer is None or self._end_by_peer.get(peer) is not end:
            return
        del self._end_by_peer[peer]
        now = self.stage.world.now
        self.stage.trace.note(now, SCHEDULER, "loses", end.other.owner)
        if isinstance(peer, Worker):
            self._note_deaths(peer)
            self.machine.worker_lost(peer, now, "its connection broke", expected=peer.is_leaving)
        else:
            self.stage.oracle.client_lost(peer.name)
            self.machine.client_lost(peer, now)
        self._after_step()

    def _wake(self, planned_at: float) -> None:
        if self._is_over or self._wake_planned_at != planned_at:
            return
        self._wake_planned_at = None
        now = self.stage.world.now
        for worker in self.machine.state.workers.values():
            if now > sign_at(worker, 0.0) + self.stage.settings.worker_ttl_seconds:
                self._note_deaths(worker)
        ndropped = self.machine.state.reduction.ndropped
        self.machine.wake(now)
        if self.machine.state.reduction.ndropped != ndropped:
            for sentence in dropped_too_much(self.machine.state):
                self.stage.fail("copies are dropped that nobody needs", sentence)
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
        if self._keeps_journal:
            self._write()
        stage, machine = self.stage, self.machine
        if self._silences.is_needed:
            self._judge_silence()
        wake_at = machine.wake_at
        planned = self._wake_planned_at
        if wake_at is not None and (planned is None or wake_at < planned):
            self._wake_planned_at = wake_at
            is_due = wake_at <= stage.world.now
            stage.world.at(wake_at, self._wake, wake_at, background=not is_due)
        self.nsteps += 1
        oracle, tasks = stage.oracle, machine.state.tasks
        if oracle.fresh:
            fresh = [one.key for one in oracle.fresh if one.key in tasks]
            oracle.bind({key: tasks[key].id for key in fresh})
        stage.after_scheduler_step()

    def _write(self) -> None:
        """What the step leaves to be written is on disk a little later, unless we die before."""
        stage = self.stage
        entries, held = self.machine.take_journaled()
        stage.disk.journaled.take(entries)
        for sentence in contradictions(self.machine.state, stage.disk.journaled):
            stage.fail("the journal says what is so", sentence)
        if entries or held:
            assert stage.plan.sync_seconds is not None
            stage.world.after(stage.plan.sync_seconds, self._synced, entries, held)

    def _synced(self, entries: list[Entry], held: list[tuple[Client, Message]]) -> None:
        """It is there for good; who waits for that is told."""
        if self._is_over:
            return
        if entries:
            self.stage.disk.sync(entries)
        for client, message in held:
            end = self._end_by_peer.get(client)
            if end is not None:
                self.stage.say(end, [message], TO_CLIENT)

    def _judge_silence(self) -> None:
        ends = self._end_by_peer
        for sentence in self._silences.look(self.machine.state, ends, self.stage.world.now):
            self.stage.fail("who can't be heard or hear is suspect", sentence)

    def _say_outgoing(self) -> None:
        for peer, messages in self.machine.take_outgoing():
            end = self._end_by_peer.get(peer)
            if end is not None:
                decoder = TO_WORKER if isinstance(peer, Worker) else TO_CLIENT
                if isinstance(peer, Worker) and self._silences.is_needed:
                    for sentence in self._silences.said(peer, messages, self.stage.world.now):
                        self.stage.fail("who has heard all is told nothing", sentence)
                self.stage.say(end, messages, decoder)

    # --- what failures may be blamed on ------------------------------------------------------

    def _note_deaths(self, worker: Worker | None) -> None:
        if worker is not None and not worker.is_leaving:
            accused = [] if worker.silence is None else worker.silence.accused
            for task in (*worker.processing, *accused):
                instance = self.stage.oracle.by_task.get(task.id)
                if instance is not None:
                    instance.ndeaths += 1

    def _note_unavailable(self, batch: list[Message]) -> None:
        for message in batch:
            if isinstance(message, InputsUnavailable):
                instance = self.stage.oracle.by_task.get(message.task)
                if instance is not None:
                    instance.nunavailable += 1
