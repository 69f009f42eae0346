"""Everybody around one scheduler, doing at random what they may do; workers know what they hold.

Nothing is under way between two events but the runs themselves: a worker may answer any run that it
was ever sent, recalled or not, exactly once, and so says many things too late.
"""

from random import Random

from shoal.ids import Key, TaskId
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks, RetryTasks
from shoal.protocol.limits import SetLimits
from shoal.protocol.membership import RestartWorkers, RetireWorkers, SetResources
from shoal.protocol.messages import (
    AcquireReplicas,
    Failure,
    FreeReplicas,
    InputsUnavailable,
    Message,
    ReplicasAdded,
    ReplicasGone,
    RunReturned,
    RunTask,
    TaskFailed,
    TaskFinished,
    TaskOptions,
)
from shoal.scheduler.model.entities import ERRED, MEMORY, Worker
from tests.scenes.scheduler.scene import Scene

NAMES = ("a", "b", "d", "e")
CLIENTS = ("c", "f")
KEYS = [f"{letter}{index}" for letter in "pqr" for index in range(5)]


class Storm(Scene):
    """A scene that plays itself."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.limiting = Random(f"limits {seed}")
        super().__init__(
            allowed_failures=random.choice([0, 1, 3]),
            worker_saturation=random.choice([0.5, 1.1, 2.0]),
            fetch_attempts_max=random.choice([2, 10]),
            pipe_seconds=random.choice([0.0, 0.001]),
            worker_ttl_seconds=random.choice([5.0, 300.0]),
            no_workers_seconds=1.5 if seed % 4 == 0 else None,
            stranded_warning_seconds=3.0 if seed % 2 else None,
            moves_work=seed % 5 != 0,
        )
        self.stores: dict[Worker, dict[TaskId, None]] = {}
        self.open_runs: list[tuple[Worker, RunTask]] = []
        self.open_copies: list[tuple[Worker, TaskId]] = []  # to be got
        self.arriving: dict[TaskId, None] = {}  # what the next worker holds from before
        self.events = [
            (6, self.submit_some),
            (12, self.answer_a_run),
            (3, self.release_some),
            (1, self.cancel_some),
            (2, self.want_some),
            (2, self.scatter_some),
            (3, self.copy_some),
            (1, self.lose_some_copy),
            (2, self.connect),
            (1, self.disconnect),
            (1, self.say_that_it_leaves),
            (1, self.die_as_a_client),
            (3, self.answer_a_copy),
            (1, self.retry_some),
            (1, self.retire_some),
            (1, self.replicate_some),
            (1, self.rebalance_some),
            (1, self.offer_something),
            (0.3, self.restart_all),
            (3, self.let_time_go_by),
        ]

    def blow(self, nevents: int) -> None:
        """So many events."""
        weights = [weight for weight, _ in self.events]
        for _ in range(nevents):
            [(_, event)] = self.random.choices(self.events, weights)
            event()
            self.take()

    def calm(self) -> None:
        """From now on all goes well: every run ends with a result, wherever it is wanted."""
        for name in ("z0", "z1", *NAMES):
            self.join(name, nthreads=2, resources={"gpu": 1.0, "net": 1.0})
        while True:
            while self.open_runs:
                worker, run = self.open_runs.pop(0)
                if self._is_connected(worker):
                    self._finish(worker, run, seconds=0.1)
            while self.open_copies:
                worker, number = self.open_copies.pop(0)
                self._get(worker, number)
            state = self.machine.state
            for task, brought in list(state.scattering.items()):
                for worker in [worker for takers in brought.values() for worker in takers]:
                    self.stores[worker][task.id] = None
                    self._from_worker(worker, ReplicasAdded([task.id], [10]))
            self.advance(1.0)
            if not self.open_runs and not self.open_copies:
                return

    def unfinished(self) -> list[str]:
        """Wanted tasks that neither have a result nor failed."""
        return [
            repr(task)
            for task in self.machine.state.tasks.values()
            if task.wants and task.state not in (MEMORY, ERRED)
        ]

    def left_over(self) -> list[str]:
        """What workers hold though nobody knows of it."""
        return [
            f"{worker.name} holds {self.names.keys.get(number)} ({number})"
            for worker, store in self.stores.items()
            if self._is_connected(worker)
            for number in store
            if self.machine.state.task_by_id.get(number) not in worker.has_what
        ]

    # --- events ---

    def submit_some(self) -> None:
        random = self.random
        client = random.choice(CLIENTS)
        actor = self.actor(client)
        keys = random.sample(KEYS, random.randint(1, 5))
        others = [key for key in actor.numbers if key not in keys]
        tasks: dict[str, list[str]] = {}
        for key in keys:
            known = [*tasks, *others]
            tasks[key] = random.sample(known, min(random.choice([0, 0, 1, 2, 3]), len(known)))
        options = TaskOptions(
            priority=random.choice([0.0, 0.0, 1.0]),
            retries=random.choice([0, 1]),
            workers=random.choice([[], [], [], ["a"], ["z0", "b"]]),
            allow_other_workers=random.random() < 0.3,
            resources=random.choice([{}, {}, {}, {"gpu": 1.0}, {"gpu": 0.5, "net": 0.1}]),
            limits=self.limiting.choice([{}, {}, {}, {"db": 1}, {"db": 2, "web": 3}]),
        )
        wanted = [key for key in tasks if random.random() < 0.6]
        held = [key for key in tasks if random.random() < 0.2]
        let_go = [actor.keys[number] for number in actor.client.held if random.random() < 0.3]
        self.submit(client, options=options, wanted=wanted, held=held, let_go=let_go, **tasks)

    def answer_a_run(self) -> None:
        if not self.open_runs:
            return
        random = self.random
        worker, run = self.open_runs.pop(random.randrange(len(self.open_runs)))
        if not self._is_connected(worker):
            return
        kind = random.choice(["finish", "finish", "finish", "fail", "return", "unavailable"])
        if kind == "finish":
            self._finish(worker, run, seconds=random.choice([1e-6, 1e-4, 1.0]))
        elif kind == "fail":
            self._from_worker(worker, TaskFailed(run.task, run.run, Failure(b"", "boom")))
        elif kind == "return":
            self._from_worker(worker, RunReturned(run.task, run.run))
        else:
            self._miss_inputs(worker, run)

    def release_some(self) -> None:
        client = self.random.choice(CLIENTS)
        actor = self.actor(client)
        if actor.numbers:
            self.release(self.random.choice(list(actor.numbers)), client=client)

    def cancel_some(self) -> None:
        client = self.random.choice(CLIENTS)
        if numbers := self.actor(client).numbers:
            key = self.random.choice(list(numbers))
            self.cancel(key, client=client, force=self.random.random() < 0.5)

    def want_some(self) -> None:
        if tasks := self.machine.state.tasks:
            self.want(self.random.choice(list(tasks)), self.random.choice(CLIENTS))

    def scatter_some(self) -> None:
        client = self.random.choice(CLIENTS)
        ncopies = self.random.choice([0, 1, 2])
        self.scatter(f"s{self.random.randrange(3)}", client=client, ncopies=ncopies)

    def copy_some(self) -> None:
        """A worker fetched a copy, or got a scattered value."""
        tasks = [
            task
            for task in self.machine.state.tasks.values()
            if task.who_has is not None or task in self.machine.state.scattering
        ]
        if tasks and (worker := self._some_worker()) is not None:
            task = self.random.choice(tasks)
            if task.id not in self.stores[worker]:
                self.stores[worker][task.id] = None
                self._from_worker(worker, ReplicasAdded([task.id], [10]))

    def lose_some_copy(self) -> None:
        worker = self._some_worker()
        if worker is not None and self.stores[worker]:
            number = self.random.choice(list(self.stores[worker]))
            del self.stores[worker][number]
            self._from_worker(worker, ReplicasGone([number]))

    def connect(self) -> None:
        name = self.random.choice(NAMES)
        before = self.worker_by_name.get(name)
        holds: dict[str, TaskId] = {}
        if before is not None and self.random.random() < 0.7:
            holds = {self.names.keys[number]: number for number in self.stores[before]}
        self.arriving = dict.fromkeys(holds.values())
        self.join(name, nthreads=self.random.choice([1, 2]), holds=holds)
        self.arriving = {}

    def disconnect(self) -> None:
        worker = self._some_worker()
        if worker is not None:
            self.lose(worker.name, expected=self.random.random() < 0.2)

    def say_that_it_leaves(self) -> None:
        worker = self._some_worker()
        if worker is not None:
            self.leave(worker.name)

    def die_as_a_client(self) -> None:
        client = self.random.choice(CLIENTS)
        if client in self.actors and self.random.random() < 0.3:
            self.lose_client(client)
            del self.actors[client]

    def answer_a_copy(self) -> None:
        if not self.open_copies:
            return
        place = self.random.randrange(len(self.open_copies))
        worker, number = self.open_copies.pop(place)
        if self.random.random() < 0.7:
            self._get(worker, number)
        elif self._is_connected(worker) and number not in self.stores[worker]:
            self._from_worker(worker, ReplicasGone([number]))

    def retry_some(self) -> None:
        client = self.random.choice(CLIENTS)
        failed = [n for n, t in self.actor(client).client.tasks.items() if t.state == ERRED]
        if failed:
            self.from_client(client, RetryTasks(failed))

    def retire_some(self) -> None:
        names = self.random.choice([["a"], ["a", "b"], [*NAMES], None])
        removes = self.random.random() < 0.8
        client = self.random.choice(CLIENTS)
        self.call(RetireWorkers, client, workers=names, removes=removes, patience_seconds=3.0)

    def replicate_some(self) -> None:
        keys = [Key(key) for key in self.random.sample(KEYS, 3)]
        ncopies = self.random.choice([0, 1, 2])
        workers = self.random.choice([[], ["a", "b"]])
        client = self.random.choice(CLIENTS)
        self.call(ReplicateTasks, client, keys=keys, ncopies=ncopies, workers=workers)

    def rebalance_some(self) -> None:
        self.call(RebalanceTasks, self.random.choice(CLIENTS))

    def offer_something(self) -> None:
        amounts = {"gpu": self.random.choice([0.0, 1.0, 2.0]), "net": 0.3}
        name = self.random.choice(NAMES)
        self.call(SetResources, self.random.choice(CLIENTS), worker=name, resources=amounts)
        self.call(SetLimits, limits={"db": self.limiting.choice([None, 1, 3])})

    def restart_all(self) -> None:
        client = self.random.choice(CLIENTS)
        self.call(RestartWorkers, client, timeout_seconds=5.0, lets_go=True)

    def let_time_go_by(self) -> None:
        self.advance(self.random.choice([0.001, 0.01, 2.0]))

    # --- parts ---

    def _some_worker(self) -> Worker | None:
        workers = list(self.machine.state.workers.values())
        return self.random.choice(workers) if workers else None

    def _is_connected(self, worker: Worker) -> bool:
        return self.machine.state.worker_by_id.get(worker.id) is worker

    def _get(self, worker: Worker, number: TaskId) -> None:
        """A worker has got a copy, if that can be."""
        task = self.machine.state.task_by_id.get(number)
        if self._is_connected(worker) and number not in self.stores[worker]:
            if task is not None and task.state == MEMORY:
                self.stores[worker][number] = None
                self._from_worker(worker, ReplicasAdded([number], [10]))
            else:
                self._from_worker(worker, ReplicasGone([number]))

    def _finish(self, worker: Worker, run: RunTask, seconds: float) -> None:
        self.stores[worker][run.task] = None
        value = self.random.choice([None, None, b"1"])
        self._from_worker(worker, TaskFinished(run.task, run.run, 10, seconds, value))

    def _miss_inputs(self, worker: Worker, run: RunTask) -> None:
        missing = [item if isinstance(item, int) else item.task for item in run.inputs]
        if not missing:
            return
        for number in missing:
            self.stores[worker].pop(number, None)
        peers = list(self.machine.state.workers)
        unreachable = self.random.sample(peers, self.random.randint(0, len(peers)))
        said = InputsUnavailable(run.task, run.run, missing, unreachable)
        self._from_worker(worker, ReplicasGone(missing), said)

    def _note_worker(self, worker: Worker, message: Message) -> None:
        store = self.stores.setdefault(worker, dict(self.arriving))
        if isinstance(message, RunTask):
            self.open_runs.append((worker, message))
            for item in message.inputs:
                assert not isinstance(item, int) or item in store, "an input that isn't there"
        elif isinstance(message, AcquireReplicas):
            self.open_copies += [(worker, item.task) for item in message.inputs]
        elif isinstance(message, FreeReplicas):
            for number in message.tasks:
                store.pop(number, None)
        super()._note_worker(worker, message)
