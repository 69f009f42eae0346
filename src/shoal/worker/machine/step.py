"""The worker's machine: one object that is told what happened and leaves what to do.

Each method is a step.  After it, `take_effects` gives what the shell has to do, in order.  No
step waits, reads a clock or touches a value; `now` is in seconds, of any monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from shoal.ids import Key, TaskId
from shoal.protocol.membership import ResourcesChanged
from shoal.protocol.messages import (
    AcquireReplicas,
    DefineCode,
    Failure,
    ForgetCode,
    FreeReplicas,
    RecallRuns,
    RegisterWorker,
    ReplicasAdded,
    ReplicasGone,
    RunTask,
    Shutdown,
    WorkerLeaving,
    WorkerWelcome,
)
from shoal.protocol.orphans import AdoptReplicas, FreeOrphans
from shoal.protocol.slots import RunTaskIn
from shoal.worker.machine import (
    computing,
    forgetting,
    gathering,
    letting_in,
    memory,
    orphans,
    residing,
    spilling,
)
from shoal.worker.machine.effects import (
    Close,
    Define,
    Drop,
    Effect,
    Fetch,
    ForgetCodes,
    ReadBack,
    Send,
    StartRuns,
    Write,
)
from shoal.worker.machine.invariants import broken
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import MachineSettings, Run, RunEnded
from shoal.worker.policies.room import Room


class WorkerMachine:
    """All decisions of one worker."""

    def __init__(self, settings: MachineSettings) -> None:
        self.state = WorkerState(settings)
        self._handlers: dict[type, Callable[[Any], None]] = {
            WorkerWelcome: self.on_worker_welcome,
            RunTask: self.on_run_task,
            RunTaskIn: self.on_run_task,
            RecallRuns: self.on_recall_runs,
            FreeReplicas: self.on_free_replicas,
            AcquireReplicas: self.on_acquire_replicas,
            DefineCode: self.on_define_code,
            ForgetCode: self.on_forget_code,
            AdoptReplicas: self.on_adopt_replicas,
            FreeOrphans: self.on_free_orphans,
            Shutdown: self.on_shutdown,
        }

    # --- what happened -----------------------------------------------------------------------

    def receive(self, messages: Iterable[object], now: float) -> None:
        """One frame from the scheduler.

        Raises:
            KeyError: a message that no machine answers (RunFunction is the shell's).
        """
        self.state.now = now
        handlers = self._handlers
        for message in messages:
            handlers[type(message)](message)

    def runs_ended(self, ended: Sequence[RunEnded], now: float) -> None:
        """Runs came back from the threads; keep the results of those with `kept` set after."""
        self.state.now = now
        computing.on_ended(self.state, ended)

    def seceded(self, run: Run, seconds: float, now: float) -> None:
        """A run that executes gave its slot to others, after `seconds` with it, and goes on."""
        self.state.now = now
        computing.on_seceded(self.state, run, seconds)

    def rejoined(self, run: Run, now: float) -> None:
        """A run that had seceded has a slot again."""
        self.state.now = now
        computing.on_rejoined(self.state, run)

    def waiting(self, nwaiting: int) -> None:
        """So many runs that have a slot wait for other tasks; see `letting_in.is_under_way`."""
        self.state.nwaiting = nwaiting

    def replicas_arrived(
        self,
        fetch: Fetch,
        arrived: Sequence[tuple[TaskId, int]],
        failed: Sequence[tuple[TaskId, Failure]],
        now: float,
    ) -> list[TaskId]:
        """A peer has answered `fetch`.

        Args:
            fetch: the effect that asked for it.
            arrived: what came, with its size in memory.
            failed: what it could not send, or could not be read here; what is neither it lacks.

        Returns:
            Those of `arrived` whose values are to be kept, before the effects are performed.
        """
        self.state.now = now
        return gathering.on_arrived(self.state, fetch, arrived, failed)

    def peer_unreachable(self, fetch: Fetch, now: float) -> None:
        """There was no connection, or it broke or stalled before the answer was complete."""
        self.state.now = now
        gathering.on_unreachable(self.state, fetch)

    def replicas_put(self, items: Iterable[tuple[TaskId, Key, int]], now: float) -> None:
        """Values are here that a client scattered, or that came inline: (task, key, nbytes)."""
        state = self.state
        state.now = now
        for task, key, nbytes in items:
            state.record(key, words.PUT_HERE)
            state.added.append(gathering.keep(state, task, key, nbytes))

    def spill(self, nbytes: int, now: float, *, may_write: bool = True) -> int:
        """Have values of about `nbytes` leave memory; see `spilling.spill`."""
        self.state.now = now
        return spilling.spill(self.state, nbytes, may_write=may_write)

    def forget_files(self) -> list[TaskId]:
        """Files of values that are in memory as well are removed; whose; see `spilling`."""
        return spilling.forget_files(self.state)

    def value_written(self, write: Write, now: float) -> bool:
        """Its file is there; whether the value in memory is to be let go of."""
        self.state.now = now
        return spilling.on_written(self.state, write)

    def value_not_written(self, write: Write, now: float, *, is_for_good: bool) -> None:
        """It stays in memory; `is_for_good`: and need not be tried again."""
        self.state.now = now
        spilling.on_not_written(self.state, write, is_for_good=is_for_good)

    def value_read(self, read: ReadBack, now: float) -> bool:
        """Its value was read; whether to keep it in memory, before the effects are performed."""
        self.state.now = now
        return spilling.on_read(self.state, read)

    def value_not_read(self, read: ReadBack, now: float) -> None:
        """Its file is gone, or is not what was written."""
        self.state.now = now
        spilling.on_not_read(self.state, read)

    def value_lost(self, task: TaskId, now: float) -> None:
        """The same, seen as somebody else wanted what is on disk."""
        self.state.now = now
        spilling.on_lost(self.state, task)

    def value_gone(self, task: TaskId, now: float) -> None:
        """What is held of it turned out to be of no use; whoever counts on it is told."""
        state = self.state
        state.now = now
        if task in state.held:
            state.outbox.append(ReplicasGone([task]))
            forgetting.free(state, [task])

    def value_served(self, task: TaskId) -> None:
        """A peer or a client has asked for it."""
        replica = self.state.held.get(task)
        if replica is not None and replica.residence is not None:
            replica.residence.was_used = True

    def connection_lost(self, now: float) -> None:
        """The connection to the scheduler broke; what runs goes on, what waits is given up."""
        self.state.now = now
        forgetting.lose_scheduler(self.state)

    def leave(self, reason: str, now: float) -> None:
        """The worker closes by itself: say so while there is somebody to listen.

        What has not begun comes back to the scheduler.
        """
        state = self.state
        state.now = now
        state.excepted = None
        if state.connected:
            state.outbox.append(WorkerLeaving(reason))
            computing.on_recall(state, [(task, run.number) for task, run in state.runs.items()])

    def pause(self, why: str, now: float, *, by_hand: bool = False) -> None:
        """Memory is short: nothing is begun until `resume`.  `why`: for people, with numbers.

        Once more with other words if these are what there is to say now.

        Args:
            by_hand: memory is not the reason; that lasts until a `resume` by hand.
        """
        self.state.now = now
        memory.pause(self.state, why, by_hand=by_hand)

    def hold(self, now: float) -> None:
        """Hand no run over until `go_on`; see `memory.hold`."""
        self.state.now = now
        memory.hold(self.state)

    def go_on(self, now: float) -> None:
        """Hand over what was held."""
        self.state.now = now
        self.state.is_holding = False

    def resume(self, why: str, now: float, *, by_hand: bool = False) -> None:
        """This reason to pause is no more: begin what has waited, unless there is the other."""
        self.state.now = now
        memory.resume(self.state, why, by_hand=by_hand)

    def runs_held(self, runs: Iterable[Run], now: float) -> None:
        """The threads gave these back, as they were to be held."""
        self.state.now = now
        memory.on_held(self.state, runs)

    def runs_gauged(self, gauged: Sequence[tuple[Run, int]], now: float) -> None:
        """For these runs the process has grown by so many bytes, at the highest."""
        self.state.now = now
        memory.on_gauged(self.state, gauged)

    def limit_memory(self, room: Room) -> None:
        """From now on what comes into memory is counted, and waits where there is no room."""
        self.state.room = room

    def looked(self, process_bytes: int, grown_bytes: int, now: float) -> None:
        """The process has so much memory; see `letting_in.on_looked`."""
        self.state.now = now
        letting_in.on_looked(self.state, process_bytes, grown_bytes)

    def is_under_way(self) -> bool:
        """Whether anything goes on that may leave room in memory as it ends."""
        return letting_in.is_under_way(self.state)

    def under_way(self) -> tuple[object, ...]:
        """What that is; as long as this is the same, nothing has ended."""
        return letting_in.under_way(self.state)

    def let_in(self, *, is_overdue: bool = False) -> None:
        """No more room can be made: what waits for it is not to wait for ever; see `force`."""
        letting_in.force(self.state, is_overdue=is_overdue)

    def offer(self, resources: Mapping[str, float], now: float) -> None:
        """From now on tasks may use these amounts, beside those that are not named."""
        state = self.state
        state.now = now
        state.settings.resources.update(resources)
        if state.connected:
            state.outbox.append(ResourcesChanged(dict(resources)))

    # --- what to do --------------------------------------------------------------------------

    def take_effects(self) -> list[Effect]:
        """What the steps since the last call ask for, in order."""
        state = self.state
        if state.room is not None:
            letting_in.begin_asking(state)
        if state.ready and not state.is_holding and (runs := computing.hand_over(state)):
            state.effects.append(StartRuns(runs))
        if state.unasked and (state.pause is None or state.excepted is not None):
            residing.begin_reads(state)
        if (state.unqueued or state.starved) and state.pause is None:
            gathering.request(state)
        if state.room is not None:
            letting_in.end_asking(state)
        effects = state.effects
        if state.dropped:
            self._drop(effects)
        if state.added and state.connected:
            self._say_added()
        if state.outbox:
            if state.connected:
                effects.append(Send(state.outbox))
            state.outbox = []
        if effects:
            state.effects = []
            state.drops_at = 0
        return effects

    def register_message(self, now: float) -> RegisterWorker:
        """How the worker introduces itself, with what it holds.  Cost: O(replicas)."""
        state, settings = self.state, self.state.settings
        state.now = now
        return RegisterWorker(
            address=settings.address,
            name=settings.name,
            nthreads=settings.nthreads,
            memory_limit=settings.memory_limit,
            pid=settings.pid,
            host=settings.host,
            epoch=state.epoch,
            inventory=orphans.inventory(state),
            executing=orphans.executing(state),
            keeps_orphans=True,
            resources=settings.resources,
            versions=settings.versions,
            predecessor=settings.predecessor,
            predecessor_death=settings.predecessor_death,
            predecessor_memory_bytes=settings.predecessor_memory_bytes,
            predecessor_limit_bytes=settings.predecessor_limit_bytes,
            local_directory=settings.local_directory,
            nanny=settings.nanny,
            has_nanny=settings.has_nanny,
            services=settings.services,
        )

    def holds(self, task: TaskId) -> bool:
        """Whether peers and clients may have it; not if it only outlives its release."""
        replica = self.state.held.get(task)
        return replica is not None and not replica.freed

    def story(self, key: Key) -> list[tuple[float, str, int]]:
        """(when, what, run or 0) of one key, oldest first.  Cost: O(records kept)."""
        return [(at, what, number) for at, k, what, number in self.state.story if k == key]

    def broken_invariants(self) -> Iterator[str]:
        """A sentence for each thing that can't be.  Cost: O(everything); for tests."""
        return broken(self.state)

    # --- messages ----------------------------------------------------------------------------

    def on_worker_welcome(self, message: WorkerWelcome) -> None:
        """Registered; another epoch than before means that all numbers known here are void."""
        state = self.state
        is_new_epoch = state.epoch != message.epoch
        if not state.epoch:
            state.epoch = message.epoch
        elif is_new_epoch:
            orphans.enter_epoch(state, message.epoch)
        if state.told_runs:
            orphans.say_ended(state, is_new_epoch=is_new_epoch)
        state.connected = True
        memory.say_pause(state)

    def on_run_task(self, message: RunTask) -> None:
        """Run it once its inputs are here."""
        computing.enter(self.state, message)

    def on_recall_runs(self, message: RecallRuns) -> None:
        """Give back what has not begun; end what has, if nobody wants it and it may be ended."""
        computing.on_recall(self.state, message.runs, unwanted=message.unwanted)

    def on_free_replicas(self, message: FreeReplicas) -> None:
        """Let go of these as soon as no run uses them."""
        forgetting.free(self.state, message.tasks)

    def on_acquire_replicas(self, message: AcquireReplicas) -> None:
        """Get copies; answered by ReplicasAdded, or ReplicasGone for what can't be had."""
        gathering.acquire(self.state, message.inputs)

    def on_adopt_replicas(self, message: AdoptReplicas) -> None:
        """Results of another epoch are known by numbers again."""
        orphans.adopt(self.state, message.keys, message.tasks)

    def on_free_orphans(self, message: FreeOrphans) -> None:
        """Let go of results of another epoch, and of runs."""
        orphans.free(self.state, message.keys)

    def on_define_code(self, message: DefineCode) -> None:
        """Runs are going to call this."""
        self.state.codes.add(message.code)
        self.state.effects.append(Define(message))

    def on_forget_code(self, message: ForgetCode) -> None:
        """No run to come calls these."""
        self.state.codes.discard_all(message.codes)
        self.state.effects.append(ForgetCodes(message.codes))

    def on_shutdown(self, message: Shutdown) -> None:
        """Go."""
        self.state.effects.append(Close(message.reason))

    def _drop(self, effects: list[Effect]) -> None:
        """First of all under these numbers, and not what came back in these very steps."""
        state = self.state
        dropped = [task for task in state.dropped if task not in state.held]
        state.dropped.clear()
        if dropped:
            effects.insert(state.drops_at, Drop(dropped))

    def _say_added(self) -> None:
        """One message for all replicas that came in these steps and are still here."""
        state = self.state
        held = state.held
        added = [r for r in state.added if held.get(r.task) is r and not r.freed]
        state.added = []
        if added:
            state.outbox.append(ReplicasAdded([r.task for r in added], [r.nbytes for r in added]))
