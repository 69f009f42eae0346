"""The scheduler's machine: events in, messages out; no I/O, no clock, no chance.

Each event is one step: its handlers note what became due, `_settle` carries that out, and what is
to be said waits in outboxes for `take_outgoing`.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from shoal.ids import Epoch, Key
from shoal.protocol.journal import Entry
from shoal.protocol.messages import (
    Message,
    RegisterClient,
    RegisterWorker,
    WorkerHeartbeat,
    WorkerLeaving,
)
from shoal.protocol.metadata import Leaf
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.filling import fill
from shoal.scheduler.machine.journaling import stop_writing, write_down
from shoal.scheduler.machine.keeping import let_go_of_ended
from shoal.scheduler.machine.on_membership import (
    on_register_client,
    on_register_worker,
    remove_client,
    remove_worker,
)
from shoal.scheduler.machine.on_metadata import set_leaves
from shoal.scheduler.machine.on_timer import on_timer
from shoal.scheduler.machine.placing import TIMER, place_ready
from shoal.scheduler.machine.reducing import (
    begin_rounds,
    enact_suggested,
    end_rounds,
    reduce_now,
)
from shoal.scheduler.machine.releasing import settle_needs
from shoal.scheduler.machine.restoring import restore
from shoal.scheduler.machine.retiring import settle_copies
from shoal.scheduler.machine.shuffling import complete_barriers
from shoal.scheduler.machine.stealing import LOOKS_PER_STEP
from shoal.scheduler.machine.story import Record, Story
from shoal.scheduler.machine.suspecting import on_vouch_for_worker, trust_again
from shoal.scheduler.machine.table import ANNOUNCED, FROM_CLIENT, FROM_WORKER
from shoal.scheduler.machine.telling import tell_topics
from shoal.scheduler.model.about import About
from shoal.scheduler.model.entities import Client, Silence, Worker
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.model.keepers import Keeper
from shoal.scheduler.model.reduction import Suggested
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.state import SchedulerState

OF_SUSPECTS = (WorkerHeartbeat, WorkerLeaving)
"""What counts though it is said by one who hears nothing: else it is as if that was on its way, as
it is with those that are silent.  What is heard while a worker has nothing can't be true of it."""


class SchedulerMachine:
    """Decides what every task does next.  A step that raises is a bug, and ends the service."""

    def __init__(
        self,
        settings: SchedulerSettings,
        epoch: Epoch,
        services: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`services`: what else our process serves, by port; clients are told as they come."""
        self._core = Core(settings, epoch, services, ANNOUNCED)

    @property
    def state(self) -> SchedulerState:
        """All that is known; to be read only."""
        return self._core.state

    @property
    def story(self) -> Story:
        """The latest transitions."""
        return self._core.story

    @property
    def about(self) -> About:
        """What is said of us to those who come; filled in by whoever runs the machine."""
        return self._core.about

    @property
    def nsteps(self) -> int:
        """The number of the latest step."""
        return self._core.step

    def have_told(self, hear: Callable[[Record], None] | None) -> None:
        """Have `hear` told of each transition while it is made, to look at once the step is over;
        None: nobody is."""
        self._core.have_told(hear)

    def keep_told(self, wanted: bool) -> None:
        """Whether what is told under topics is kept for `take_told`."""
        self._core.told = [] if wanted else None

    def take_told(self) -> list[tuple[str, bytes]]:
        """Topics and pickled values that were told since, if they are kept."""
        told = self._core.told
        if not told:
            return []
        self._core.told = []
        return told

    @property
    def is_forgetting(self) -> bool:
        """Whether tasks are to be forgotten in steps to come; the machine asks to be woken."""
        state = self._core.state
        return bool(state.of_no_use or state.letting_go)

    @property
    def wake_at(self) -> float | None:
        """When `wake` is due (s, monotonic); None if nothing waits for time."""
        return self._core.wake_at

    def worker_joined(self, message: RegisterWorker, now: float) -> Worker:
        """A worker has connected and proved who it is.

        Raises:
            NameTaken: another connected worker has its name; nothing has changed.
        """
        core = self._begin("worker-joined", now)
        worker = on_register_worker(core, message)
        self._settle()
        return worker

    def worker_lost(
        self, worker: Worker, now: float, reason: str = "", expected: bool = False
    ) -> None:
        """The connection to a worker has ended; nothing happens if it was removed before."""
        core = self._begin("worker-lost", now)
        if core.state.worker_by_id.get(worker.id) is worker:
            remove_worker(core, worker, reason, expected=expected)
        self._settle()

    def worker_vouched(self, worker: Worker, now: float) -> None:
        """Somebody who sees its process says that it lives, though it can't say so itself."""
        core = self._begin("vouched", now)
        if core.state.worker_by_id.get(worker.id) is worker:
            silence = worker.silence
            on_vouch_for_worker(core, worker)
            if silence is not None:
                self._catch_up(worker, silence)
        self._settle()

    def client_joined(self, message: RegisterClient, now: float) -> Client:
        """A client has connected and proved who it is."""
        core = self._begin("client-joined", now)
        client = on_register_client(core, message)
        self._settle()
        return client

    def client_lost(self, client: Client, now: float) -> None:
        """The connection to a client has ended."""
        core = self._begin("client-lost", now)
        if core.state.clients.get(client.id) is client:
            remove_client(core, client)
        self._settle()

    def receive_from_worker(self, worker: Worker, messages: Sequence[Message], now: float) -> None:
        """Messages of one frame; ignored if the worker was removed before they came."""
        core = self._begin("", now)
        if core.state.worker_by_id.get(worker.id) is not worker:
            return
        if not worker.hearing.is_lost:
            worker.heard_at = now
            if worker.silence is not None:
                core.cause = "heard-again"
                trust_again(core, worker)
        for message in messages:
            silence = worker.silence
            if silence is not None and type(message) not in OF_SUSPECTS:
                silence.put_by.append(message)
                continue
            self._hear(worker, message)
            if silence is not None:
                self._catch_up(worker, silence)
        self._settle()

    def receive_from_client(self, client: Client, messages: Sequence[Message], now: float) -> None:
        """Messages of one frame; ignored if the client was removed before they came."""
        core = self._begin("", now)
        if core.state.clients.get(client.id) is not client:
            return
        client.heard_at = now
        for message in messages:
            kind = type(message)
            core.cause = kind.__name__
            FROM_CLIENT[kind](core, client, message)
        self._settle()

    def wake(self, now: float) -> list[Worker]:
        """Time has come to `wake_at`; returns workers given up, whose connections must close.

        Their last messages are in their outboxes.
        """
        core = self._begin(TIMER, now)
        core.late_seconds = 0.0 if core.wake_at is None else now - core.wake_at
        core.state.lateness.note(core.late_seconds, now)
        core.wake_at = None
        silent = on_timer(core)
        self._settle()
        return silent

    def reduce_replicas(self, interval_seconds: float | None, now: float) -> None:
        """Drop copies that nobody needs, every so often from now on; None: not any more."""
        core = self._begin("reduce-replicas", now)
        if interval_seconds is None:
            end_rounds(core)
        else:
            begin_rounds(core, interval_seconds)
        self._settle()

    def reduce_replicas_now(self, now: float) -> None:
        """Drop copies that nobody needs, once."""
        reduce_now(self._begin("reduce-replicas", now))
        self._settle()

    def enact(self, suggested: Suggested, now: float) -> None:
        """Make and drop copies as code beside the scheduler suggests, where that makes sense."""
        enact_suggested(self._begin("suggestions", now), suggested)
        self._settle()

    def tell(self, topics: Sequence[str], value: bytes, now: float) -> None:
        """Code beside the scheduler tells something, pickled, under topics."""
        tell_topics(self._begin("tell", now), topics, value)
        self._settle()

    def set_metadata(self, path: Sequence[Key], leaves: Sequence[Leaf], now: float) -> None:
        """Code beside the scheduler leaves a value with it."""
        set_leaves(self._begin("set-metadata", now).state, path, leaves)
        self._settle()

    def begin_journal(self, journaled: Journaled, epoch: Epoch, now: float) -> None:
        """Before anything else: go on with what the life before has left, and write on.

        Args:
            journaled: pruned; of an empty journal for the first life.
            epoch: of this life; greater than that in the journal.
        """
        restore(self._begin("journal", now), journaled, epoch)
        self._settle()

    def take_journaled(self) -> tuple[list[Entry], list[tuple[Client, Message]]]:
        """What is to be written since the last time, and what is to be said once it is."""
        journal = self._core.state.journal
        if journal is None:
            return [], []
        entries, journal.entries = journal.entries, []
        held, journal.held = journal.held, []
        return entries, held

    def stop_journal(self, why: str, now: float) -> None:
        """Nothing can be written any more.  `why`: as a clause, for people."""
        stop_writing(self._begin("journal", now), why)
        self._settle()

    def take_outgoing(self) -> list[tuple[Worker | Client, list[Message]]]:
        """What to say, by peer, in the order in which it is to be said."""
        outgoing: list[tuple[Worker | Client, list[Message]]] = []
        for peer in self._core.speaking:
            if type(peer) is not Keeper:  # which nobody hears
                outgoing.append((peer, peer.outbox))
                if type(peer) is Worker:
                    peer.hearing.nsaid += len(peer.outbox)
            peer.outbox = []
        self._core.speaking.clear()
        return outgoing

    def take_sent_away(self) -> dict[Worker, str]:
        """Workers that were removed, and why; to be asked for once they were told, so that their
        connections can close."""
        sent_away = self._core.sent_away
        if sent_away:
            self._core.sent_away = {}
        return sent_away

    def take_silent_clients(self) -> list[Client]:
        """Clients that were silent for too long: as their connections end, they are lost."""
        silent = self._core.silent_clients
        if silent:
            self._core.silent_clients = []
        return silent

    def take_warnings(self) -> list[str]:
        """What is to be logged; to be asked for after each step."""
        warnings = self._core.warnings
        if warnings:
            self._core.warnings = []
        return warnings

    def _hear(self, worker: Worker, message: Message) -> None:
        kind = type(message)
        self._core.cause = kind.__name__
        FROM_WORKER[kind](self._core, worker, message)

    def _catch_up(self, worker: Worker, silence: Silence) -> None:
        """What a suspect has said is heard once it is none any more, as if it had come only now."""
        if worker.silence is None:
            for message in silence.put_by:
                self._hear(worker, message)

    def _begin(self, cause: str, now: float) -> Core:
        core = self._core
        core.now = now
        core.step += 1
        core.cause = cause
        core.nforgets_left = core.settings.forgets_max
        core.nplacements_left = core.settings.placements_max
        core.nlooks_left = LOOKS_PER_STEP
        if core.stranded_before:
            core.stranded_before = {}
        return core

    def _carry_out(self, core: Core) -> None:
        """Needs first, then what follows from where results are, then what is to be run."""
        settle_needs(core)
        while core.attended is not None:
            settle_copies(core)
            settle_needs(core)
            if not core.attended:
                break
        if core.state.barriers and core.ready:
            complete_barriers(core)
            settle_needs(core)
        place_ready(core)
        if core.releasing:
            settle_needs(core)
        fill(core)

    def _settle(self) -> None:
        """Carry out all that became due, until nothing is."""
        core = self._core
        self._carry_out(core)
        while True:
            has_let_go = bool(core.state.keepers) and let_go_of_ended(core)
            if has_let_go:
                settle_needs(core)
            if core.attended:
                self._carry_out(core)
            elif not has_let_go:
                break
        for worker in list(core.freeing):
            core.say_what_to_free(worker)
        journal = core.state.journal
        if journal is not None:
            write_down(core, journal)
