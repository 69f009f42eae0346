"""A worker in the simulation: its real machine, and threads that end when the plan says so."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, assert_never

from shoal.ids import CodeId, Epoch, Key, TaskId
from shoal.protocol.actors import ActorsLost
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.membership import LeavingChanged, TimeIsOver
from shoal.protocol.messages import (
    AskHearing,
    Failure,
    FreeReplicas,
    Input,
    Message,
    RecallRuns,
    RegisterWorker,
    WorkerHeartbeat,
    WorkerWelcome,
)
from shoal.protocol.orphans import ReplicasAdopted
from shoal.sim.footprints import Memory, Shortage
from shoal.sim.making_room import MemoryWatch
from shoal.sim.network import End
from shoal.sim.plan import WorkerPlan
from shoal.sim.process import Process
from shoal.sim.shuffling import Shuffling
from shoal.sim.specs import NBYTES_MIN, Value, from_bytes, to_bytes
from shoal.sim.spilling import Disk
from shoal.sim.stage import Stage
from shoal.sim.threads import Threads
from shoal.sim.wire import FROM_WORKER
from shoal.worker.machine.effects import (
    Close,
    Define,
    Drop,
    Effect,
    EndRuns,
    Evict,
    Fetch,
    ForgetCodes,
    HoldRuns,
    LoadInline,
    ReadBack,
    Renumber,
    Send,
    StartRuns,
    TellAdopted,
    WithdrawRuns,
    Write,
)
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import MachineSettings, Run

PATIENCE_SECONDS: Final = 1.0
"""Without progress, until a worker whose time is over goes all the same."""

LOAD_SECONDS: Final = 0.0001
"""What it takes to load small values that came inside a message."""

WRITING_BYTES_MAX: Final = 1000
"""On their way to disk: few values at once."""

WRITING_BYTES_MAX_BOUND: Final = 60_000_000
"""The same where there is a bound that room is made below."""


class WorkerActor:
    """One process at one address."""

    def __init__(
        self, stage: Stage, address: str, life: int, plan: WorkerPlan, had_bytes: int = 0
    ) -> None:
        """`life`: which process this is at its address; `had_bytes`: what the one before had, if
        it died of that."""
        self.stage = stage
        self.address = address
        self.name = f"{address}/{life}"
        self.nthreads = plan.nthreads
        self.machine = WorkerMachine(
            MachineSettings(
                address=address,
                name=address.removeprefix("tcp://"),
                nthreads=plan.nthreads,
                pid=life,
                host=address,
                resources=dict(plan.resources),
                memory_limit=plan.memory_limit,
                predecessor=life - 1,
                predecessor_memory_bytes=had_bytes,
                predecessor_limit_bytes=plan.memory_limit,
                transfer_tasks_max=3,
                transfers_max=4,
                writable_nbytes_min=NBYTES_MIN,
                writing_bytes_max=(
                    WRITING_BYTES_MAX_BOUND if plan.room_bytes else WRITING_BYTES_MAX
                ),
            )
        )
        self.store: dict[TaskId, Value] = {}
        self.disk = Disk(self)
        self.memory = Memory(self, plan.memory_limit, is_counted=plan.room_bytes > 0)
        self.process = Process(
            stage.world, stage.streams.of(f"process {self.name}"), self.store, self.memory
        )
        self.shortage = Shortage(self, PATIENCE_SECONDS)
        self.has_reconnected = False
        self.codes: dict[CodeId, bytes] = {}
        self.slowness = (1.0, 0.0)  # factor, until when
        self.reconnect_seconds = 0.01
        self.is_dead = False
        self.inline_bytes_max = 0
        self._nbeats = 0
        self._nreceived = -1  # messages, by the connection that there is; -1: none yet
        self._heard = 0  # the latest question on it
        self._missed_beat = False  # as it was frozen
        self._frozen_until = 0.0
        self._deferred: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self.end: End
        self.threads = Threads(self)
        self.shuffling = Shuffling(self, self.threads.deprived)
        self.room = MemoryWatch(self, self.process, plan.room_bytes, plan.nthreads)

    # --- being there -------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to the scheduler, and say who this is."""
        if self.is_dead:
            return
        self._nreceived, self._heard = -1, 0
        end = self.end = self.stage.dial_scheduler(self.address)
        end.on_messages = lambda batch: self.when_awake(self._receive, end, batch)
        end.on_closed = lambda: self.when_awake(self._disconnected, end)
        registration: RegisterWorker = self.machine.register_message(self.stage.world.now)
        self.stage.say(end, [registration], FROM_WORKER)
        self.stage.occasion("register", self.address)

    def die(self) -> None:
        """The process is gone, in the middle of whatever it did."""
        self.is_dead = True
        self.end.drop()

    def leave(self) -> None:
        """Say that the worker closes by itself."""
        self.machine.leave("the plan says so", self.stage.world.now)
        self.perform()

    def ask_to_go(self) -> None:
        """Say that the worker's time is over; the scheduler sends it away."""
        if not self.end.is_closed:
            self.stage.say(self.end, [TimeIsOver("lifetime", PATIENCE_SECONDS)], FROM_WORKER)

    def break_connection(self) -> None:
        """The connection to the scheduler breaks."""
        self.end.connection.break_now()

    def deafen(self, until: float, breaks: bool) -> None:
        """What the scheduler says does not arrive until then; then it does, or never will."""
        end = self.end
        if not end.is_whole:
            return
        self.stage.network.deafen(end)
        self.stage.world.at(until, self._hear_again, end, breaks)

    def _hear_again(self, end: End, breaks: bool) -> None:
        if breaks and end.is_deaf:
            end.connection.break_now()
        else:
            self.stage.network.mend(end)

    def freeze(self, until: float) -> None:
        """Stand still: what arrives meanwhile is looked at then."""
        self._frozen_until = max(self._frozen_until, until)
        self.stage.world.at(until, self._thaw_if, until)

    def thaw(self) -> None:
        """Go on, with what has arrived meanwhile first."""
        self._frozen_until = 0.0
        if self._missed_beat:
            self._missed_beat = False
            if self.stage.streams.of(f"first after a pause {self.name}").random() < 0.5:
                self._say_beat(self.end)  # before it has read anything
        if self.room.judge is not None:
            self.room.judge.thawed()
        deferred, self._deferred = self._deferred, deque()
        for action, arguments in deferred:
            if not self.is_dead:
                action(*arguments)

    def when_awake(self, action: Callable[..., None], *arguments: object) -> None:
        """Do something in this process: now, or once it is no longer frozen; never if it died."""
        if self.is_dead:
            return
        if self._frozen_until > self.stage.world.now:
            self._deferred.append((action, arguments))
        else:
            action(*arguments)

    def _thaw_if(self, until: float) -> None:
        if self._frozen_until == until:
            self.thaw()

    # --- the scheduler -----------------------------------------------------------------------

    def _receive(self, end: End, batch: list[Message]) -> None:
        if end is not self.end or end.is_closed:
            return
        self._nreceived = max(self._nreceived, 0) + len(batch)
        self.stage.hear(self.name, batch)
        self.room.stir()
        for message in batch:
            if isinstance(message, FreeReplicas):
                self.stage.occasion("free", self.address)
            elif isinstance(message, RecallRuns):
                self.stage.occasion("recall", self.address)
            elif isinstance(message, AskHearing):
                self._heard = message.number
            elif isinstance(message, WorkerWelcome):
                self.inline_bytes_max = message.inline_bytes_max
                self._beat(end, message.heartbeat_seconds)
        heard = [
            message
            for message in batch
            if not isinstance(message, ActorsLost | AskHearing | LeavingChanged | Answer | Refusal)
        ]
        self.machine.receive(heard, self.stage.world.now)
        self.perform()
        for message in batch:
            self.shuffling.hear(message)

    def _disconnected(self, end: End) -> None:
        if end is not self.end:
            return
        self.stage.trace.note(self.stage.world.now, self.name, "lost its scheduler")
        self.machine.connection_lost(self.stage.world.now)
        self.perform()
        self.shuffling.connection_lost()
        self.has_reconnected = True
        self.stage.world.after(self.reconnect_seconds, self.when_awake, self.start)

    def _beat(self, end: End, seconds: float) -> None:
        """Say that the worker lives, for as long as the connection does.

        Every other time all its tasks seem to wait for others, so room comes and goes.
        """
        if self.is_dead or end is not self.end or end.is_closed:
            return
        if self._frozen_until <= self.stage.world.now:
            self._say_beat(end)
        else:
            self._missed_beat = True
        self.stage.world.after(seconds, self._beat, end, seconds, background=True)

    def _say_beat(self, end: End) -> None:
        self._nbeats += 1
        is_game = self._nbeats % 2 and not self.memory.limit
        self._say_alive(end, self.threads.nexecuting if is_game else self.threads.nwaiting)

    def beat_now(self) -> None:
        """Say how many runs wait."""
        self._say_alive(self.end, self.threads.nwaiting)

    def _say_alive(self, end: End, nwaiting: int) -> None:
        """A sign of life; `nwaiting`: runs of which it says that they wait for others."""
        if not end.is_closed:
            heartbeat = WorkerHeartbeat(
                nexecuting=self.threads.nexecuting,
                nwaiting=nwaiting,
                received_bytes=self._nreceived,
                heard=self._heard,
            )
            self.stage.say(end, [heartbeat], FROM_WORKER)

    # --- the shell's part --------------------------------------------------------------------

    def perform(self) -> None:
        """Do what the machine asks for, in order, and have room made for what waits for it."""
        self.room.perform(self._perform_all)
        if not self.is_dead:
            self.stage.after_worker_step(self.address)

    def _perform_all(self) -> None:
        while effects := self.room.take_effects():
            for effect in effects:
                self._perform_one(effect)
                if self.is_dead:
                    return

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Send(messages):
                self.stage.say(self.end, messages, FROM_WORKER)
            case StartRuns():
                self.threads.start(effect)
            case WithdrawRuns(runs):
                self.threads.withdraw(runs)
            case EndRuns(runs):
                self.threads.end(runs)
            case HoldRuns(runs):
                self.threads.hold(runs)
            case Fetch():
                self._fetch(effect)
            case LoadInline(inputs):
                epoch = self.machine.state.epoch
                self.stage.world.after(LOAD_SECONDS, self.when_awake, self._loaded, inputs, epoch)
            case Drop(tasks):
                for task in tasks:
                    was_on_disk = self.disk.drop(task)
                    if self.store.pop(task, None) is None and not was_on_disk:
                        self.fail("the store is what is held", f"drops {task}, which is not here")
            case Renumber(pairs=pairs):
                for values in (self.store, self.disk.files):
                    for before, task in pairs:
                        if before in values:
                            values[task] = values.pop(before)
            case TellAdopted(adopted):
                self._tell_adopted(adopted)
            case Write():
                self.disk.write(effect)
            case Evict():
                self.disk.evict(effect)
            case ReadBack():
                self.disk.read_back(effect)
            case Define(message):
                self.codes[message.code] = message.payload
            case ForgetCodes(codes):
                for code in codes:
                    self.codes.pop(code, None)
            case Close():
                self.stage.close_worker(self.address)
            case _:
                assert_never(effect)

    def _tell_adopted(self, adopted: list[tuple[Key, TaskId, int]]) -> None:
        values = [self.store.get(task) for _, task, _ in adopted]
        small_max = max(self.inline_bytes_max, NBYTES_MIN)
        small = [
            to_bytes(value) if value is not None and value.nbytes <= small_max else None
            for value in values
        ]
        keys, tasks, sizes = (list(column) for column in zip(*adopted, strict=True))
        message = ReplicasAdopted(keys, tasks, sizes, small, ["" for _ in adopted])
        self.stage.say(self.end, [message], FROM_WORKER)

    def code_of(self, run: Run) -> bytes:
        """What it is to call."""
        code = self.codes.get(run.message.code)
        if code is None:
            self.fail("codes are told", f"is to run {run.message!r}, of an unknown code", run.key)
            raise AssertionError
        return code

    def _fetch(self, fetch: Fetch) -> None:
        self.stage.trace.note(self.stage.world.now, self.name, "asks", f"{fetch!r}")
        self.stage.occasion("fetch", self.address, fetch.peer)
        self.process.coming[fetch] = fetch.nbytes
        self.stage.transfers.fetch(
            self.address,
            self.machine.state.epoch,
            fetch.peer,
            fetch.tasks,
            lambda found: self.when_awake(self._fetched, fetch, found),
        )

    def _fetched(self, fetch: Fetch, found: dict[TaskId, Value] | None) -> None:
        now = self.stage.world.now
        del self.process.coming[fetch]
        what = "can't reach" if found is None else f"got {list(found)} from"
        self.stage.trace.note(now, self.name, what, fetch.peer)
        if found is None:
            self.machine.peer_unreachable(fetch, now)
        else:
            good = {task: value for task, value in found.items() if not value.is_unsendable}
            arrived = [(task, value.nbytes) for task, value in good.items()]
            failure = Failure(b"", "TypeError: can't be serialised", "", Key(""), fetch.peer)
            failed = [(task, failure) for task in found if task not in good]
            for task in self.machine.replicas_arrived(fetch, arrived, failed, now):
                self._keep(task, found[task])
        self.perform()

    def _loaded(self, inputs: list[Input], epoch: Epoch) -> None:
        if self.machine.state.epoch != epoch:
            return
        for item in inputs:
            assert item.value is not None
            self._keep(item.task, from_bytes(item.value))
        loaded = [(item.task, item.key, item.nbytes) for item in inputs]
        self.machine.replicas_put(loaded, self.stage.world.now)
        self.perform()

    def sends(self, nbytes: Mapping[TaskId, int], until: float) -> None:
        """Values are on their way from here."""
        self.process.sends(nbytes, until)

    def put(self, task: TaskId, key: Key, value: Value, epoch: Epoch) -> bool:
        """A client gives a value; refused unless the two are in the same epoch."""
        state = self.machine.state
        if not state.connected or state.epoch != epoch:
            return False
        self.stage.occasion("put", self.address)
        if self.is_dead:
            return False
        self._keep(task, value)
        self.machine.replicas_put([(task, key, value.nbytes)], self.stage.world.now)
        self.perform()
        return True

    def serves(self, task: TaskId, epoch: Epoch) -> Value | None:
        """The value, if others may have it."""
        state = self.machine.state
        is_in = state.connected and state.epoch == epoch
        if not is_in or not self.machine.holds(task):
            return None
        self.machine.value_served(task)
        value = self.store.get(task)
        return self.disk.serve(task) if value is None else value

    def keep(self, run: Run, value: Value) -> None:
        """A run's result is in memory."""
        self._keep(run.task, value)

    def _keep(self, task: TaskId, value: Value) -> None:
        """It is in memory, in place of what was here."""
        self.store[task] = value
        self.disk.replaced(task)
        self.room.came(value.nbytes)

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something about this worker can't be."""
        self.stage.fail(invariant, f"{self.name} {sentence}", *words)
