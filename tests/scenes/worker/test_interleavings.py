"""Whatever happens in whatever order, a worker's books stay in order and every run is answered."""

from random import Random

import pytest

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.messages import (
    AcquireReplicas,
    Failure,
    FreeReplicas,
    Input,
    InputsUnavailable,
    Message,
    RecallRuns,
    RunReturned,
    RunTask,
    TaskFailed,
    TaskFinished,
    WorkerWelcome,
)
from shoal.protocol.orphans import AdoptReplicas, FreeOrphans
from shoal.worker.machine.effects import (
    Drop,
    Fetch,
    LoadInline,
    Renumber,
    Send,
    StartRuns,
    WithdrawRuns,
)
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    WITHDRAWN,
    MachineSettings,
    Run,
    RunEnded,
)

NTASKS = 12
PEERS = ["tcp://a:1", "tcp://b:1", "tcp://c:1"]


class Storm:
    """Everybody around one worker, doing at random what they may do."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.machine = WorkerMachine(
            MachineSettings(
                address="tcp://me:1",
                transfers_max=3,
                transfers_per_peer_max=2,
                transfer_tasks_max=2,
                transfer_bytes_max=100,
            )
        )
        self.now = 0.0
        self.next_run = 1
        self.values: set[TaskId] = set()  # what the shell stores
        self.handed: list[Run] = []
        self.begun: list[Run] = []
        self.fetches: list[Fetch] = []
        self.owed: dict[tuple[TaskId, RunId], int] = {}  # answers that the scheduler waits for
        self.epoch = 1
        self.welcome()

    def welcome(self) -> None:
        self.machine.register_message(self.now)
        self.feed(WorkerWelcome(Epoch(self.epoch), 1, 1.0))

    def feed(self, *messages: Message) -> None:
        self.machine.receive(messages, self.now)
        self.perform()

    def perform(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case Send(messages):
                    for message in messages:
                        self.hear(message)
                case StartRuns(runs):
                    for run in runs:
                        for item in run.message.inputs:
                            if isinstance(item, int):
                                assert item in self.values
                            elif item.value is None:
                                assert item.task in self.values
                    self.handed += runs
                case WithdrawRuns(runs):
                    ended = [RunEnded(run, WITHDRAWN) for run in runs if run in self.handed]
                    self.handed = [run for run in self.handed if run not in runs]
                    self.machine.runs_ended(ended, self.now)
                    self.perform()
                case Fetch():
                    self.fetches.append(effect)
                case Drop(tasks):
                    for task in tasks:
                        self.values.remove(task)
                case Renumber(pairs=pairs):
                    for before, task in pairs:
                        self.values.remove(before)
                        self.values.add(task)
                case LoadInline(inputs):
                    self.values.update(item.task for item in inputs)
                    self.machine.replicas_put(
                        [(item.task, item.key, item.nbytes) for item in inputs], self.now
                    )
                    self.perform()

    def hear(self, message: Message) -> None:
        if isinstance(message, TaskFinished | TaskFailed | RunReturned | InputsUnavailable):
            assert self.owed.pop((message.task, message.run)) == self.epoch

    def check(self) -> None:
        assert list(self.machine.broken_invariants()) == []
        assert self.values == set(self.machine.state.held)

    def input(self) -> TaskId | Input:
        task = TaskId(self.random.randrange(NTASKS))
        how = self.random.random()
        if how < 0.3:
            return task
        value = b"x" if how > 0.9 else None
        holders = self.random.sample(PEERS, self.random.randrange(4))
        return Input(task, Key(f"k{task}"), self.random.randrange(80), holders, value)

    def act(self) -> None:
        self.now += 1
        choose = self.random.random()
        if choose < 0.3:
            self.run_some()
        elif choose < 0.4 and self.owed:
            pairs = self.random.sample(list(self.owed), min(3, len(self.owed)))
            self.feed(RecallRuns(pairs))
        elif choose < 0.5:
            self.feed(FreeReplicas([TaskId(self.random.randrange(NTASKS)) for _ in range(3)]))
        elif choose < 0.55:
            items = [self.input() for _ in range(2)]
            self.feed(AcquireReplicas([item for item in items if isinstance(item, Input)]))
        elif choose < 0.8:
            self.work()
        elif choose < 0.97 and self.fetches:
            self.answer(self.fetches.pop(self.random.randrange(len(self.fetches))))
        elif choose > 0.985 and self.machine.state.orphans:
            self.ask_for_orphans()
        elif choose > 0.98:
            self.machine.connection_lost(self.now)
            self.owed.clear()
            self.perform()
            self.check()
            self.epoch += self.random.randrange(2)
            self.welcome()
        self.check()

    def ask_for_orphans(self) -> None:
        keys = self.random.sample([Key(f"k{n}") for n in range(NTASKS)], 3)
        free = [n for n in range(NTASKS) if n not in self.machine.state.held]
        numbers = [TaskId(n) for n in self.random.sample(free, min(2, len(free)))]
        self.feed(AdoptReplicas(keys[: len(numbers)], numbers), FreeOrphans(keys[2:]))

    def run_some(self) -> None:
        messages = []
        for _ in range(self.random.randrange(1, 4)):
            task = TaskId(self.random.randrange(NTASKS))
            number = RunId(self.next_run)
            self.next_run += 1
            self.owed[task, number] = self.epoch
            inputs = [self.input() for _ in range(self.random.randrange(4))]
            messages.append(
                RunTask(task, number, Key(f"k{task}"), CodeId(1), b"", 0.0, number, inputs)
            )
        self.feed(*messages)

    def work(self) -> None:
        while self.handed and self.random.random() < 0.7:
            self.begun.append(self.handed.pop(0))
        ended = []
        while self.begun and self.random.random() < 0.7:
            run = self.begun.pop(self.random.randrange(len(self.begun)))
            if self.random.random() < 0.2:
                ended.append(RunEnded(run, FAILED, failure=Failure(b"", "no")))
            else:
                ended.append(RunEnded(run, FINISHED, nbytes=10))
        self.machine.runs_ended(ended, self.now)
        self.values.update(end.run.task for end in ended if end.kept)
        self.perform()

    def answer(self, fetch: Fetch) -> None:
        if self.random.random() < 0.2:
            self.machine.peer_unreachable(fetch, self.now)
        else:
            arrived, failed = [], []
            for task in fetch.tasks:
                how = self.random.random()
                if how < 0.7:
                    arrived.append((task, 10))
                elif how > 0.85:  # else the peer lacks it
                    failed.append((task, Failure(b"", "no")))
            self.values.update(self.machine.replicas_arrived(fetch, arrived, failed, self.now))
        self.perform()

    def calm(self) -> None:
        """Let all that is under way come to its end."""
        while self.fetches or self.handed or self.begun:
            self.now += 1
            if self.fetches:
                self.answer(self.fetches.pop())
            self.work()
            self.check()


@pytest.mark.parametrize("start", range(0, 300, 30))
def test_the_books_stay_in_order_and_every_run_is_answered_once(start: int) -> None:
    """Runs, recalls, frees, acquisitions, losses, new epochs: 30 seeds of 200 random acts."""
    for seed in range(start, start + 30):
        storm = Storm(seed)
        for _ in range(200):
            storm.act()
        storm.calm()
        assert storm.owed == {}
        storm.feed(FreeReplicas([TaskId(task) for task in range(NTASKS)]))
        storm.feed(FreeOrphans([Key(f"k{task}") for task in range(NTASKS)]))
        storm.check()
        assert storm.values == set()
        state = storm.machine.state
        tables = (state.runs, state.older_runs, state.wants, state.peers, state.fetches)
        tables += (state.orphans, state.orphan_runs)
        assert not any(tables)
