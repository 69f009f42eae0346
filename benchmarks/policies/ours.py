"""The scheduler's real machine as the brain of the modelled cluster, timed step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import process_time_ns

from benchmarks.policies.cluster import (
    ARRIVED,
    BEAT,
    FINISHED,
    RETURNED,
    UNAVAILABLE,
    Cluster,
    Event,
    Run,
)
from benchmarks.policies.graph import Graph
from shoal.ids import ClientTaskId, CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.messages import (
    AcquireReplicas,
    DefineClientCode,
    FreeReplicas,
    Input,
    InputsUnavailable,
    Message,
    RecallRuns,
    RegisterClient,
    RegisterWorker,
    ReplicasAdded,
    RunReturned,
    RunTask,
    SubmitTasks,
    TaskFinished,
    WorkerHeartbeat,
)
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.shell.collecting import Collecting
from shoal.worker.shell.rates import TransferRates

SLICE = 1000
"""Tasks in a message of the client."""

BEAT_SECONDS = 5.0


class Ours:
    """Translates between the machine's messages and the model's events."""

    def __init__(self, cluster: Cluster, settings: SchedulerSettings | None = None) -> None:
        self.cluster = cluster
        self.spent_ns = 0
        self.longest_ns = 0
        self.steps_ns: list[int] | None = None  # of each step, if somebody asks
        self.longest_in = ""
        self.nsteps = 0
        self.nreturned = 0
        graph = cluster.graph
        self._collecting = Collecting()
        self._settings = settings or SchedulerSettings()
        self._machine = SchedulerMachine(self._settings, Epoch(1))
        self._peers: list[Worker] = []
        self._index_of: dict[Worker, int] = {}
        self._index_at: dict[str, int] = {}
        self._ids: list[TaskId] = [TaskId(0)] * len(graph)
        self._place_of: dict[TaskId, int] = {}
        self._planned_at = float("inf")
        self._rates = [TransferRates() for _ in range(cluster.shape.nworkers)]
        for index in range(cluster.shape.nworkers):
            address = f"tcp://10.{index >> 16}.{index >> 8 & 255}.{index & 255}:4000"
            hello = RegisterWorker(address, f"w{index}", cluster.shape.nthreads, 0)
            worker = self._machine.worker_joined(hello, 0.0)
            self._peers.append(worker)
            self._index_of[worker] = index
            self._index_at[address] = index
        self._client = self._machine.client_joined(RegisterClient("client"), 0.0)
        self._machine.receive_from_client(self._client, [DefineClientCode(CodeId(1), b"code")], 0.0)
        self._machine.take_outgoing()

    @property
    def machine(self) -> SchedulerMachine:
        """To be read only."""
        return self._machine

    def start(self) -> None:
        """The client submits the graph, slice after slice."""
        for message in slices(self.cluster.graph):
            first = message.first
            self._step("submit", self._machine.receive_from_client, self._client, [message])
            tasks = self._machine.state.tasks
            for offset, key in enumerate(message.keys):
                number = tasks[key].id
                self._place_of[number] = first - 1 + offset
        while self._machine.is_forgetting:
            self._step("forget", self._machine.wake)

    def receive(self, worker: int, events: list[Event]) -> None:
        """A worker's frame."""
        frame: list[Message] = []
        ids = self._ids
        for event in events:
            kind = event[0]
            if kind is FINISHED:
                frame.append(self._finished(event[1]))
            elif kind is ARRIVED:
                _, task, seconds, peer = event
                nbytes = self.cluster.graph.nbytes[task]
                frame.append(ReplicasAdded([ids[task]], [nbytes]))
                if self._rates[worker].note(self._peers[peer].address, nbytes, seconds):
                    frame += self._gauged(worker)
            elif kind is BEAT:
                frame += self._gauged(worker)
                frame.append(WorkerHeartbeat())
            elif kind is RETURNED:
                run = event[1]
                self.nreturned += 1
                frame.append(RunReturned(ids[run.task], run.number))
            elif kind is UNAVAILABLE:
                run = event[1]
                lacking = [ids[task] for task in event[2]]
                frame.append(InputsUnavailable(ids[run.task], run.number, lacking))
        if frame:
            self._step("worker", self._machine.receive_from_worker, self._peers[worker], frame)

    def wake(self) -> None:
        """What the machine asked to be woken for."""
        now = self.cluster.now
        if now >= self._planned_at:
            self._planned_at = float("inf")
        due = self._machine.wake_at
        if due is not None and due <= now:
            self._step("wake", self._machine.wake)
        else:
            self._plan_wake()

    def _gauged(self, worker: int) -> list[Message]:
        """What there is to tell of how fast results came, as real workers do."""
        gauged = self._rates[worker].take()
        return [] if gauged is None else [gauged]

    def _finished(self, run: Run) -> TaskFinished:
        nbytes = self.cluster.graph.nbytes[run.task]
        value = b"v" if nbytes <= self._settings.inline_bytes_max else None
        return TaskFinished(self._ids[run.task], RunId(run.number), nbytes, run.seconds, value)

    def _step(self, what: str, step: Callable[..., object], *arguments: object) -> None:
        before = process_time_ns()
        step(*arguments, self.cluster.now)
        outgoing = self._machine.take_outgoing()
        self._collecting.note_step()
        spent = process_time_ns() - before
        self.spent_ns += spent
        self.nsteps += 1
        if self.steps_ns is not None:
            self.steps_ns.append(spent)
        if spent > self.longest_ns:
            self.longest_ns, self.longest_in = spent, what
        for peer, said in outgoing:
            if type(peer) is Worker:
                self._say(peer, said)
        self._plan_wake()

    def _plan_wake(self) -> None:
        due = self._machine.wake_at
        if due is not None and due < self._planned_at:
            self._planned_at = due
            self.cluster.wake_at(due)

    def _say(self, peer: Worker, said: Sequence[Message]) -> None:
        orders: list[Event] = []
        place_of = self._place_of
        for message in said:
            if isinstance(message, FreeReplicas):
                for number in message.tasks:
                    if number in place_of:
                        orders.append(("free", place_of[number]))
            elif isinstance(message, RunTask):
                orders.append(("run", self._run(message)))
            elif isinstance(message, RecallRuns):
                for number, run in message.runs:
                    orders.append(("recall", place_of[number], run))
            elif isinstance(message, AcquireReplicas):
                for item in message.inputs:
                    holders = [self._index_at[address] for address in item.holders]
                    orders.append(("fetch", place_of[item.task], holders))
        if orders:
            self.cluster.tell(self._index_of[peer], orders)

    def _run(self, message: RunTask) -> Run:
        key = int(message.key.rpartition("-")[2])
        self._ids[key] = message.task
        self._place_of[message.task] = key
        index_at = self._index_at
        place_of = self._place_of
        inputs: list[tuple[int, Sequence[int]]] = []
        for item in message.inputs:
            if isinstance(item, Input):
                if item.value is None:
                    holders = [index_at[address] for address in item.holders]
                    inputs.append((place_of[item.task], holders))
            else:
                inputs.append((place_of[item], ()))  # it is there; else the model objects
        return Run(key, message.run, 0, inputs)


def slices(graph: Graph) -> Iterator[SubmitTasks]:
    """What a client says of the graph: wanted is what nothing depends on."""
    ntasks = len(graph)
    keys = [Key(f"{graph.prefixes[layer]}-{task}") for task, layer in enumerate(graph.layers)]
    last_use = [0] * ntasks  # the last slice that refers to each task
    for task, needs in enumerate(graph.inputs):
        for i in needs:
            last_use[i] = task // SLICE
    let_go: dict[int, list[ClientTaskId]] = {}
    for task, last in enumerate(last_use):
        if last > task // SLICE:
            let_go.setdefault(last, []).append(ClientTaskId(task + 1))
    for number, start in enumerate(range(0, ntasks, SLICE)):
        tasks = range(start, min(start + SLICE, ntasks))
        yield SubmitTasks(
            first=ClientTaskId(start + 1),
            keys=keys[start : start + SLICE],
            codes=[CodeId(1)],
            arguments=list(range(len(tasks))),
            dependencies=[[ClientTaskId(i + 1) for i in graph.inputs[task]] for task in tasks],
            prefixes=graph.prefixes,
            prefix_indices=[graph.layers[task] for task in tasks],
            wanted=[i for i, task in enumerate(tasks) if not graph.dependents[task]],
            held=[i for i, task in enumerate(tasks) if last_use[task] > number],
            let_go=let_go.get(number, []),
            graph=ClientTaskId(1),
            ntasks_ahead=ntasks - tasks.stop,
        )
