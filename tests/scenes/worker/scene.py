"""Who says what to one worker, in words: `take()` returns all that it said and did since."""

from typing import TypeVar

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.memory import PauseChanged, RunsGauged
from shoal.protocol.messages import (
    AcquireReplicas,
    DefineCode,
    Failure,
    ForgetCode,
    FreeReplicas,
    Input,
    InputsUnavailable,
    Message,
    RecallRuns,
    ReplicasAdded,
    ReplicasGone,
    RunReturned,
    RunTask,
    Shutdown,
    TaskFailed,
    TaskFinished,
    WorkerLeaving,
    WorkerWelcome,
)
from shoal.protocol.orphans import AdoptReplicas, FreeOrphans, OrphanFinished, OrphansGone
from shoal.protocol.slots import LongRunning, RunRejoined, RunRescheduled, RunTaskIn
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
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    RESCHEDULED,
    WITHDRAWN,
    MachineSettings,
    Run,
    RunEnded,
)
from shoal.worker.policies.room import Room

FAILURE = Failure(b"", "no")

Work = TypeVar("Work", Write, ReadBack)


class Scene:
    """One worker named `me`; tasks are letters, peers are capitals."""

    def __init__(self, **settings: int) -> None:
        self.machine = WorkerMachine(MachineSettings(address="me", **settings))
        self.now = 0.0
        self.runs: dict[str, Run] = {}  # handed to the threads, by "x#1"
        self.begun: set[str] = set()  # of those, what a thread has begun, if that matters
        self.fetches: list[Fetch] = []
        self.writes: list[Write] = []  # unanswered, as these are
        self.reads: list[ReadBack] = []
        self.sizes: dict[str, int] = {}  # of what others hold, where it is not ten bytes
        self.said: list[str] = []
        self.welcome()

    # --- what others do ----------------------------------------------------------------------

    def welcome(self, epoch: int = 1) -> None:
        self.tell(WorkerWelcome(Epoch(epoch), 1, 1.0))

    def run(self, *tasks: str, urgency: float = 0.0, **sources: str | None) -> None:
        """`run("y#1", x="A B")`: y needs x, which A and B hold; None: it is held here; "=": it
        comes along."""
        inputs = [self._input(name, holders) for name, holders in sources.items()]
        self.tell(
            *[
                RunTask(
                    number_of(task),
                    run_of(task),
                    Key(task[0]),
                    CodeId(1),
                    b"",
                    urgency,
                    run_of(task),
                    inputs,
                )
                for task in tasks
            ]
        )

    def run_in_order(self, *tasks: tuple[str, float, int]) -> None:
        """One frame of (task, urgency, sequence)."""
        self.tell(
            *[
                RunTask(number_of(t), run_of(t), Key(t[0]), CodeId(1), b"", urgency, sequence)
                for t, urgency, sequence in tasks
            ]
        )

    def recall(self, *tasks: str, unwanted: bool = False) -> None:
        runs = [(number_of(task), run_of(task)) for task in tasks]
        self.tell(RecallRuns(runs, unwanted=unwanted))

    def run_within(self, task: str, seconds: float) -> None:
        """It may take so long."""
        number, run = number_of(task), run_of(task)
        message = RunTaskIn(
            number, run, Key(task[0]), CodeId(1), b"", 0.0, run, timeout_seconds=seconds
        )
        self.tell(message)

    def free(self, *tasks: str) -> None:
        self.tell(FreeReplicas([number_of(task) for task in tasks]))

    def acquire(self, **sources: str | None) -> None:
        inputs = [self._input(name, holders) for name, holders in sources.items()]
        self.tell(AcquireReplicas([item for item in inputs if isinstance(item, Input)]))

    def define(self, code: int) -> None:
        self.tell(DefineCode(CodeId(code), b""))

    def forget(self, code: int) -> None:
        self.tell(ForgetCode([CodeId(code)]))

    def adopt(self, **tasks: str) -> None:
        """Keys, and the tasks that they are now."""
        numbers = [number_of(task) for task in tasks.values()]
        self.tell(AdoptReplicas([Key(key) for key in tasks], numbers))

    def free_orphans(self, *keys: str) -> None:
        self.tell(FreeOrphans([Key(key) for key in keys]))

    def shut_down(self, reason: str) -> None:
        self.tell(Shutdown(reason))

    def finish(self, *tasks: str, nbytes: int = 10) -> list[bool]:
        """The threads are through with these; returns whether each result is kept."""
        ended = [RunEnded(self.runs.pop(task), FINISHED, nbytes) for task in tasks]
        self.machine.runs_ended(ended, self.now)
        self._perform()
        return [end.kept for end in ended]

    def fail(self, task: str) -> None:
        self.machine.runs_ended([RunEnded(self.runs.pop(task), FAILED, failure=FAILURE)], self.now)
        self._perform()

    def secede(self, task: str) -> None:
        """The run goes on without a slot."""
        self.machine.seceded(self.runs[task], 0.5, self.now)
        self._perform()

    def rejoin(self, task: str) -> None:
        """The run has a slot again."""
        self.machine.rejoined(self.runs[task], self.now)
        self._perform()

    def send_back(self, task: str) -> None:
        """The run asks to be run elsewhere."""
        self.machine.runs_ended([RunEnded(self.runs.pop(task), RESCHEDULED)], self.now)
        self._perform()

    def withdraw(self, *tasks: str) -> None:
        """The threads give these back."""
        self.machine.runs_ended([RunEnded(self.runs.pop(t), WITHDRAWN) for t in tasks], self.now)
        self._perform()

    def arrive(self, peer: str, *tasks: str, failed: str = "", nbytes: int = 10) -> str:
        """`peer` answers its oldest request with these; returns what is kept of them."""
        kept = self.machine.replicas_arrived(
            self._pop_fetch(peer),
            [(number_of(task), nbytes) for task in tasks],
            [(number_of(task), FAILURE) for task in failed],
            self.now,
        )
        self._perform()
        return " ".join(name_of(task) for task in kept)

    def unreachable(self, peer: str) -> None:
        self.machine.peer_unreachable(self._pop_fetch(peer), self.now)
        self._perform()

    def pause(self, why: str = "memory is short", *, by_hand: bool = False) -> None:
        """Its memory is short, or somebody wants it so."""
        self.machine.pause(why, self.now, by_hand=by_hand)
        self._perform()

    def resume(self, why: str = "memory is free", *, by_hand: bool = False) -> None:
        """It is not any more."""
        self.machine.resume(why, self.now, by_hand=by_hand)
        self._perform()

    def gauge(self, **nbytes: int) -> None:
        """The process has grown so much for the runs of these tasks."""
        runs = {run.key: run for run in self.runs.values()}
        self.machine.runs_gauged([(runs[Key(k)], n) for k, n in nbytes.items()], self.now)
        self._perform()

    def spill(self, nbytes: int, *, may_write: bool = True) -> int:
        """Memory is short: so much is to leave it."""
        begun = self.machine.spill(nbytes, self.now, may_write=may_write)
        self._perform()
        return begun

    def written(self, task: str) -> bool:
        """The disk has it; returns whether memory is to let go of it."""
        is_evicted = self.machine.value_written(self._pop_work(self.writes, task), self.now)
        self._perform()
        return is_evicted

    def not_written(self, task: str, *, is_for_good: bool = False) -> None:
        """The disk has no room, or nobody can pickle it."""
        write = self._pop_work(self.writes, task)
        self.machine.value_not_written(write, self.now, is_for_good=is_for_good)
        self._perform()

    def read(self, task: str) -> bool:
        """It was read; returns whether it is kept in memory."""
        is_kept = self.machine.value_read(self._pop_work(self.reads, task), self.now)
        self._perform()
        return is_kept

    def not_read(self, task: str) -> None:
        """Its file is torn, say."""
        self.machine.value_not_read(self._pop_work(self.reads, task), self.now)
        self._perform()

    def serve(self, task: str) -> None:
        """A peer gets it."""
        self.machine.value_served(number_of(task))

    def lose_file(self, task: str) -> None:
        """A peer was to get it from disk, and it is not there."""
        self.machine.value_lost(number_of(task), self.now)
        self._perform()

    def limit(self, bound: int, **kinds: int) -> None:
        """Nothing is let in that would take the process above this; what runs are known to take."""
        room = Room(bound, self.machine.state.settings.nthreads, kinds, lambda run: run.key)
        self.machine.limit_memory(room)
        self.look(0)

    def look(self, process: int, grown: int = 0) -> None:
        """The process has so much, of which runs that go on have taken some."""
        self.machine.looked(process, grown, self.now)
        self._perform()

    @property
    def lacking(self) -> int:
        """What the first lacks that waits for room."""
        room = self.machine.state.room
        return 0 if room is None else room.lacking_bytes

    def let_in(self) -> None:
        """No more room can be made."""
        self.machine.let_in()
        self._perform()

    def hold(self) -> None:
        """Results come faster than they are written."""
        self.machine.hold(self.now)
        self._perform()

    def go_on(self) -> None:
        """They don't any more."""
        self.machine.go_on(self.now)
        self._perform()

    def forget_files(self) -> str:
        """The disk is full: files of what is in memory as well are removed; whose."""
        return names_of(self.machine.forget_files())

    def put(self, *tasks: str) -> None:
        """A client scatters these."""
        items = [(number_of(task), Key(task), 10) for task in tasks]
        self.machine.replicas_put(items, self.now)
        self._perform()

    def lose_scheduler(self) -> None:
        self.machine.connection_lost(self.now)
        self._perform()

    def leave(self, reason: str) -> None:
        self.machine.leave(reason, self.now)
        self._perform()

    def holds(self, task: str) -> bool:
        """Whether peers may have it."""
        return self.machine.holds(number_of(task))

    def story(self, task: str) -> list[tuple[str, int]]:
        """(what, number of the run or 0)."""
        return [(what, number) for _, what, number in self.machine.story(Key(task))]

    def inventory(self) -> str:
        """What the worker would say that it holds, and of which epoch."""
        message = self.machine.register_message(self.now)
        held = " ".join(item.key for item in message.inventory)
        executing = " ".join(item.key for item in message.executing)
        return f"{message.epoch}: {held}" + (f"; runs {executing}" if executing else "")

    # --- what it said ------------------------------------------------------------------------

    def take(self) -> list[str]:
        said, self.said = self.said, []
        return said

    def tell(self, *messages: Message) -> None:
        """One frame from the scheduler."""
        self.now += 1
        self.machine.receive(messages, self.now)
        self._perform()

    def _perform(self) -> None:
        while effects := self.machine.take_effects():
            for effect in effects:
                self.said += self._words(effect)
                if isinstance(effect, HoldRuns):
                    self._hold(effect.runs)
        assert list(self.machine.broken_invariants()) == []

    def _words(self, effect: Effect) -> list[str]:
        match effect:
            case Send(messages):
                return [f"say {words_of(message)}" for message in messages]
            case StartRuns(runs):
                self.runs |= {f"{run.key}#{run.number}": run for run in runs}
                return ["start " + " ".join(f"{run.key}#{run.number}" for run in runs)]
            case WithdrawRuns(runs):
                return ["withdraw " + " ".join(f"{run.key}#{run.number}" for run in runs)]
            case EndRuns(runs):
                return ["end " + " ".join(f"{run.key}#{run.number}" for run in runs)]
            case HoldRuns(runs):
                return ["hold " + " ".join(f"{run.key}#{run.number}" for run in runs)]
            case Fetch(peer, tasks):
                self.fetches.append(effect)
                return [f"ask {peer} for {names_of(tasks)}"]
            case Write(task):
                self.writes.append(effect)
                return [f"write {name_of(task)}"]
            case Evict(tasks):
                return [f"evict {names_of(tasks)}"]
            case ReadBack(task):
                self.reads.append(effect)
                return [f"read {name_of(task)}"]
            case Drop(tasks):
                return [f"drop {names_of(tasks)}"]
            case Renumber(pairs, runs):
                words = [f"{name_of(a)} to {name_of(b)}" for a, b in pairs]
                words += [f"run {name_of(a)} to {name_of(b)}" for a, b in runs]
                return ["renumber " + " ".join(words)]
            case TellAdopted(adopted):
                return ["say adopted " + " ".join(f"{key} {nbytes}" for key, _, nbytes in adopted)]
            case LoadInline(inputs):
                return [f"load {names_of([item.task for item in inputs])}"]
            case Define(message):
                return [f"define {message.code}"]
            case ForgetCodes(codes):
                return [f"forget {' '.join(map(str, codes))}"]
            case Close(reason):
                return [f"close: {reason}"]

    def _hold(self, runs: list[Run]) -> None:
        """The threads give back what they have not begun."""
        held = [run for run in runs if f"{run.key}#{run.number}" not in self.begun]
        for run in held:
            del self.runs[f"{run.key}#{run.number}"]
        if held:
            self.machine.runs_held(held, self.now)

    def _pop_work(self, under_way: list[Work], task: str) -> Work:
        work = next(work for work in under_way if name_of(work.task) == task)
        under_way.remove(work)
        return work

    def _pop_fetch(self, peer: str) -> Fetch:
        fetch = next(fetch for fetch in self.fetches if fetch.peer == peer)
        self.fetches.remove(fetch)
        return fetch

    def _input(self, name: str, holders: str | None) -> TaskId | Input:
        task = number_of(name)
        if holders is None:
            return task
        if holders == "=":
            return Input(task, Key(name), 10, [], b"value")
        return Input(task, Key(name), self.sizes.get(name, 10), holders.split())


def number_of(task: str) -> TaskId:
    return TaskId(ord(task[0]))


def run_of(task: str) -> RunId:
    return RunId(int(task.partition("#")[2]))


def name_of(task: TaskId) -> str:
    """Its letter; a number of the worker's own as it is."""
    return chr(task) if task > 0 else str(task)


def names_of(tasks: list[TaskId]) -> str:
    return " ".join(map(name_of, tasks))


def words_of(message: Message) -> str:
    match message:
        case TaskFinished(task, run):
            return f"{name_of(task)}#{run} finished"
        case TaskFailed(task, run):
            return f"{name_of(task)}#{run} failed"
        case LongRunning(task, run, seconds):
            return f"{name_of(task)}#{run} is long-running after {seconds} s"
        case RunRejoined(task, run):
            return f"{name_of(task)}#{run} rejoined"
        case RunRescheduled(task, run):
            return f"{name_of(task)}#{run} is to run elsewhere"
        case RunReturned(task, run):
            return f"{name_of(task)}#{run} returned"
        case InputsUnavailable(task, run, missing, unreachable):
            where = f", {' '.join(unreachable)} out of reach" if unreachable else ""
            return f"{name_of(task)}#{run} lacks {names_of(missing)}{where}"
        case ReplicasAdded(tasks):
            return f"added {names_of(tasks)}"
        case OrphanFinished(key):
            return f"orphan {key} finished"
        case OrphansGone(keys):
            return f"orphans gone: {' '.join(keys)}"
        case ReplicasGone(tasks):
            return f"gone {names_of(tasks)}"
        case WorkerLeaving(reason):
            return f"leaving: {reason}"
        case PauseChanged(is_paused, why):
            return f"{'paused' if is_paused else 'not paused'}: {why}"
        case RunsGauged(tasks, runs, peak_bytes):
            rows = zip(tasks, runs, peak_bytes, strict=True)
            return "gauged " + " ".join(f"{name_of(t)}#{r} {nbytes}" for t, r, nbytes in rows)
        case _:
            return repr(message)
