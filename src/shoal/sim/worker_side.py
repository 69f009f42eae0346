"""A worker in the simulation: its real machine, and threads that end when the plan says so."""

from collections import deque
from collections.abc import Callable
from typing import Final, assert_never

from shoal.ids import CodeId, Epoch, Key, TaskId
from shoal.protocol.actors import ActorsLost
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.membership import LeavingChanged, TimeIsOver
from shoal.protocol.messages import (
    Failure,
    FreeReplicas,
    Input,
    Message,
    RecallRuns,
    RegisterWorker,
    RunTask,
    WorkerHeartbeat,
    WorkerWelcome,
)
from shoal.sim.amounts import Amounts
from shoal.sim.footprints import Memory, Shortage
from shoal.sim.network import End
from shoal.sim.plan import WorkerPlan
from shoal.sim.shuffling import TRANSFER, Shuffling
from shoal.sim.specs import NBYTES_MIN, TaskSpec, Value, call_of, compute, from_bytes, to_bytes
from shoal.sim.spilling import Disk
from shoal.sim.stage import Stage
from shoal.sim.wire import FROM_WORKER
from shoal.worker.machine.effects import (
    Close,
    Define,
    Drop,
    Effect,
    Evict,
    Fetch,
    ForgetCodes,
    HoldRuns,
    LoadInline,
    ReadBack,
    Send,
    StartRuns,
    WithdrawRuns,
    Write,
)
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    RESCHEDULED,
    WITHDRAWN,
    MachineSettings,
    Run,
    RunEnded,
)

PATIENCE_SECONDS: Final = 1.0
"""Without progress, until a worker whose time is over goes all the same."""

LOAD_SECONDS: Final = 0.0001
"""What it takes to load small values that came inside a message."""

RETURN_SECONDS: Final = 0.0001
"""What threads take to give back a run that they haven't begun."""


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
                writing_bytes_max=1000,
            )
        )
        self.store: dict[TaskId, Value] = {}
        self.disk = Disk(self)
        self.memory = Memory(self, plan.memory_limit)
        self.shortage = Shortage(self, PATIENCE_SECONDS)
        self.shuffling = Shuffling(self, self._deprived)
        self.amounts = Amounts(self)
        self.has_reconnected = False
        self.codes: dict[CodeId, bytes] = {}
        self.slowness = (1.0, 0.0)  # factor, until when
        self.reconnect_seconds = 0.01
        self.is_dead = False
        self._inline_bytes_max = 0
        self._queue: deque[tuple[Run, bytes]] = deque()  # handed to the threads, with its code
        self._nexecuting = 0  # with a slot
        self._seceded: dict[Run, None] = {}
        self._rejoining: deque[Callable[[], None]] = deque()
        self._nbeats = 0
        self._frozen_until = 0.0
        self._deferred: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self.end: End

    # --- being there -------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to the scheduler, and say who this is."""
        if self.is_dead:
            return
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

    def freeze(self, until: float) -> None:
        """Stand still: what arrives meanwhile is looked at then."""
        self._frozen_until = max(self._frozen_until, until)
        self.stage.world.at(until, self._thaw_if, until)

    def thaw(self) -> None:
        """Go on, with what has arrived meanwhile first."""
        self._frozen_until = 0.0
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
        self.stage.hear(self.name, batch)
        for message in batch:
            if isinstance(message, FreeReplicas):
                self.stage.occasion("free", self.address)
            elif isinstance(message, RecallRuns):
                self.stage.occasion("recall", self.address)
            elif isinstance(message, WorkerWelcome):
                self._inline_bytes_max = message.inline_bytes_max
                self._beat(end, message.heartbeat_seconds)
        heard = [
            message
            for message in batch
            if not isinstance(message, ActorsLost | LeavingChanged | Answer | Refusal)
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
            self._nbeats += 1
            is_game = self._nbeats % 2 and not self.memory.limit
            nwaiting = self._nexecuting if is_game else 0
            heartbeat = WorkerHeartbeat(nexecuting=self._nexecuting, nwaiting=nwaiting)
            self.stage.say(end, [heartbeat], FROM_WORKER)
        self.stage.world.after(seconds, self._beat, end, seconds, background=True)

    # --- the shell's part --------------------------------------------------------------------

    def perform(self) -> None:
        """Do what the machine asks for, in order."""
        for effect in self.machine.take_effects():
            self._perform_one(effect)
            if self.is_dead:
                return
        self.stage.after_worker_step(self.address)

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Send(messages):
                self.stage.say(self.end, messages, FROM_WORKER)
            case StartRuns(runs):
                for run in runs:
                    self._queue.append((run, self._code_of(run)))
                self._start_threads()
            case WithdrawRuns(runs):
                self._withdraw(runs)
            case HoldRuns(runs):
                self._hold(runs)
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

    def _code_of(self, run: Run) -> bytes:
        code = self.codes.get(run.message.code)
        if code is None:
            self.fail("codes are told", f"is to run {run.message!r}, of an unknown code", run.key)
            raise AssertionError
        return code

    def _fetch(self, fetch: Fetch) -> None:
        self.stage.trace.note(self.stage.world.now, self.name, "asks", f"{fetch!r}")
        self.stage.occasion("fetch", self.address, fetch.peer)
        self.stage.transfers.fetch(
            self.address,
            self.machine.state.epoch,
            fetch.peer,
            fetch.tasks,
            lambda found: self.when_awake(self._fetched, fetch, found),
        )

    def _fetched(self, fetch: Fetch, found: dict[TaskId, Value] | None) -> None:
        now = self.stage.world.now
        what = "can't reach" if found is None else f"got {list(found)} from"
        self.stage.trace.note(now, self.name, what, fetch.peer)
        if found is None:
            self.machine.peer_unreachable(fetch, now)
        else:
            good = {task: value for task, value in found.items() if not value.is_unsendable}
            arrived = [(task, value.nbytes) for task, value in good.items()]
            missing = [task for task in fetch.tasks if task not in found]
            failure = Failure(b"", "TypeError: can't be serialised", "", Key(""), fetch.peer)
            failed = [(task, failure) for task in found if task not in good]
            for task in self.machine.replicas_arrived(fetch, arrived, missing, failed, now):
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

    def _keep(self, task: TaskId, value: Value) -> None:
        """It is in memory, in place of what was here."""
        self.store[task] = value
        self.disk.replaced(task)

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something about this worker can't be."""
        self.stage.fail(invariant, f"{self.name} {sentence}", *words)

    # --- threads -----------------------------------------------------------------------------

    def _start_threads(self) -> None:
        while self._rejoining and self._nexecuting < self.nthreads:
            self._rejoining.popleft()()
        while self._queue and self._nexecuting < self.nthreads:
            run, code = self._queue.popleft()
            self._nexecuting += 1
            self._begin(run, code)

    def _withdraw(self, runs: list[Run]) -> None:
        """Give back what no thread has begun."""
        withdrawn = self._take_unbegun(runs)
        if withdrawn:
            ended = [RunEnded(run, WITHDRAWN) for run in withdrawn]
            self.stage.world.after(RETURN_SECONDS, self.when_awake, self._ended, ended)

    def _hold(self, runs: list[Run]) -> None:
        """Have what no thread has begun wait until the worker resumes."""
        held = self._take_unbegun(runs)
        if held:
            self.machine.runs_held(held, self.stage.world.now)

    def _take_unbegun(self, runs: list[Run]) -> list[Run]:
        waiting = {id(run) for run, _ in self._queue}
        taken = [run for run in runs if id(run) in waiting]
        gone = {id(run) for run in taken}
        self._queue = deque(item for item in self._queue if id(item[0]) not in gone)
        return taken

    def _begin(self, run: Run, code: bytes) -> None:
        """A thread takes the run: from here on its inputs are its own."""
        message = run.message
        state = self.machine.state
        if state.pause is not None and run is not state.excepted:
            self.fail("paused workers begin nothing", f"begins {run!r}", run.key)
        function, label = call_of(code, message.argument)
        spec = self.stage.specs[label]
        self.stage.run_begins(self.address, self.machine.state.epoch, message, spec)
        self.amounts.take(run)
        self.stage.occasion("begin", self.address)
        inputs = [self._input(message, i) for i in range(len(message.inputs))]
        value = Value(compute(function, label, inputs), spec.nbytes, spec.is_unsendable)
        if self.stage.is_actor(run.task, self.machine.state.epoch):
            value = Value(value.fingerprint, NBYTES_MIN)  # its proxy
        factor, until = self.slowness
        seconds = spec.seconds * (factor if until > self.stage.world.now else 1.0)
        self.stage.trace.note(self.stage.world.now, self.name, "begins", f"{run!r}")
        self.memory.begin(run, spec, seconds)
        if self.shuffling.joins(run, spec):
            call = (function, label)
            self.stage.world.after(seconds, self.when_awake, self._join, run, spec, call, seconds)
            return
        if not spec.secedes:
            self.stage.world.after(seconds, self.when_awake, self._end, run, spec, value, seconds)
            return
        self.stage.world.after(seconds / 3, self.when_awake, self._secede, run, spec, seconds)
        act = self._want_slot if spec.rejoins else self._end
        self.stage.world.after(seconds * 2 / 3, self.when_awake, act, run, spec, value, seconds)

    def _join(self, run: Run, spec: TaskSpec, call: tuple[str, str], seconds: float) -> None:
        """The run is an unpack: its value is made of the shards that it finds."""

        def joined(inputs: list[int]) -> None:
            self._end(run, spec, Value(compute(*call, inputs), spec.nbytes), seconds)

        self.shuffling.join(run, spec, lambda i: self._input(run.message, i), joined)

    def _deprived(self, ended: RunEnded) -> None:
        self._nexecuting -= 1
        self.amounts.give_back(ended.run)
        self.memory.end(ended.run)
        self._ended([ended])
        self._start_threads()

    def _secede(self, run: Run, spec: TaskSpec, seconds: float) -> None:
        """The run gives its slot to others."""
        self._nexecuting -= 1
        self._seceded[run] = None
        self.stage.occasion("secede", self.address)
        self.machine.seceded(run, seconds / 3, self.stage.world.now)
        self.perform()
        self._start_threads()

    def _want_slot(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        """It takes one again as soon as there is any, and before others."""

        def rejoin() -> None:
            self._nexecuting += 1
            del self._seceded[run]
            self.machine.rejoined(run, self.stage.world.now)
            self.perform()
            self.stage.world.after(
                seconds / 3, self.when_awake, self._end, run, spec, value, seconds
            )

        self._rejoining.append(rejoin)
        self._start_threads()

    def _input(self, message: RunTask, index: int) -> int:
        item = message.inputs[index]
        if not isinstance(item, int) and item.value is not None:
            return from_bytes(item.value).fingerprint
        task = item if isinstance(item, int) else item.task
        value = self.store.get(task)
        if value is None:
            self.fail(
                "runs have their inputs",
                f"begins {message.key!r} without its input {task}",
                message.key,
            )
            raise AssertionError
        return value.fingerprint

    def _end(self, run: Run, spec: TaskSpec, value: Value, seconds: float) -> None:
        if run in self._seceded:
            del self._seceded[run]
        else:
            self._nexecuting -= 1
        self.amounts.give_back(run)
        self.memory.end(run)
        label = spec.label
        nended = self.stage.nended[label] = self.stage.nended.get(label, 0) + 1
        if nended <= spec.nsent_back:
            ended = RunEnded(run, RESCHEDULED, seconds=seconds)
        elif nended <= spec.nsent_back + spec.nfailures:
            failure = Failure(b"", f"ValueError: {label}", "", run.key, self.address)
            ended = RunEnded(run, FAILED, seconds=seconds, failure=failure)
        else:
            is_small = value.nbytes <= max(self._inline_bytes_max, NBYTES_MIN)
            if spec.role == TRANSFER:
                is_small = False
                value = self.shuffling.cut(run, spec, value, nended)
            self.stage.run_is_over(run.task, self.machine.state.epoch)
            ended = RunEnded(
                run,
                FINISHED,
                nbytes=value.nbytes,
                seconds=seconds,
                value=to_bytes(value) if is_small else None,
            )
        self.machine.runs_ended([ended], self.stage.world.now)
        if ended.kept:
            self._keep(run.task, value)
        self.stage.occasion("end", self.address)
        self.perform()
        self._start_threads()

    def _ended(self, ended: list[RunEnded]) -> None:
        self.machine.runs_ended(ended, self.stage.world.now)
        self.perform()
