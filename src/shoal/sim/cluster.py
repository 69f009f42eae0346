"""One run's actors, how they reach each other, and what befalls them."""

from collections.abc import Sequence

from shoal.ids import ClientTaskId, Epoch, RunId
from shoal.protocol.codec import Decoder
from shoal.protocol.messages import Failure, Message, RunTask
from shoal.sim.client_side import ClientActor
from shoal.sim.faults import SCHEDULER, client_name, worker_name
from shoal.sim.network import End, Network
from shoal.sim.oracle import Oracle
from shoal.sim.plan import Plan, Scatter, Submit, WorkerPlan
from shoal.sim.scheduler_side import SchedulerActor
from shoal.sim.specs import TaskSpec, Value
from shoal.sim.streams import Streams
from shoal.sim.trace import Trace
from shoal.sim.transfers import Transfers
from shoal.sim.violation import Violation
from shoal.sim.wire import through
from shoal.sim.worker_side import WorkerActor
from shoal.sim.world import World


class Place:
    """Where a worker may be: an address, and the process that is there now, if any."""

    def __init__(self, cluster: "Cluster", index: int, plan: WorkerPlan) -> None:
        self.cluster = cluster
        self.index = index
        self.plan = plan
        self.address = worker_name(index)
        self.worker: WorkerActor | None = None
        self.nlives = 0

    def start(self) -> None:
        """A new process takes the place, unless one is there."""
        if self.worker is None:
            self.nlives += 1
            self.worker = WorkerActor(self.cluster, self.address, self.nlives, self.plan)
            self.worker.start()

    def crash(self) -> None:
        """The process is gone."""
        if self.worker is not None:
            self.worker.die()
            self.worker = None


class Cluster:
    """Everything that takes part in one run."""

    def __init__(self, plan: Plan, *, checks_all: bool = False) -> None:
        self.plan = plan
        self.checks_all = checks_all
        self.world = World()
        self.streams = Streams(plan.seed)
        self.network = Network(self.world, self.streams, plan.weather)
        self.trace = Trace()
        self.transfers = Transfers(self)
        self.specs = _specs(plan)
        self.oracle = Oracle(self.specs)
        self.nended: dict[str, int] = {}  # runs by label, for tasks that fail a few times
        self.nmessages = 0
        self._runs_begun: dict[tuple[Epoch, RunId], None] = {}
        self.scheduler = SchedulerActor(self, Epoch(1))
        self.places = [Place(self, i, worker) for i, worker in enumerate(plan.workers)]
        self.clients: list[ClientActor | None] = []
        self._nclients_ever = 0

    def start(self) -> None:
        """Let the clients come, and the workers when the plan says so."""
        for place in self.places:
            self.world.at(place.plan.joins_at, place.start)
        for index in range(self.plan.nclients):
            self.clients.append(None)
            self.start_client(index)

    # --- who is where ------------------------------------------------------------------------

    def worker_at(self, address: str) -> WorkerActor | None:
        """The process at an address, if one is there."""
        for place in self.places:
            if place.address == address:
                return place.worker
        return None

    def live_workers(self) -> list[WorkerActor]:
        """Every process that is there now."""
        return [place.worker for place in self.places if place.worker is not None]

    def live_clients(self) -> list[ClientActor]:
        """Every client that is connected, as far as it knows."""
        return [client for client in self.clients if client is not None and not client.is_over]

    def start_client(self, index: int) -> None:
        """A new client takes the place; its name was never used before."""
        self._nclients_ever += 1
        name = f"{client_name(index)}.{self._nclients_ever}"
        self.clients[index] = ClientActor(self, name, client_name(index))

    def client_is_over(self, client: ClientActor) -> None:
        """A client has lost its scheduler; its user starts another one."""
        index = self.clients.index(client)
        self.world.after(0.001, self._restart_client, index, client)

    def _restart_client(self, index: int, client: ClientActor) -> None:
        if self.clients[index] is client:
            self.start_client(index)

    def restart_scheduler(self) -> None:
        """The scheduler's process dies; one that knows nothing takes its place."""
        old = self.scheduler
        self.oracle = Oracle(self.specs)
        self.scheduler = SchedulerActor(self, Epoch(old.epoch + 1))
        old.die()

    # --- how they speak ----------------------------------------------------------------------

    def dial_scheduler(self, place: str) -> End:
        """A new connection to the scheduler."""
        connection = self.network.connect(place, SCHEDULER)
        self.scheduler.accept(connection.b)
        return connection.a

    def say(self, end: End, messages: Sequence[Message], decoder: Decoder) -> None:
        """Send messages, through the codec if the plan says so."""
        self.nmessages += len(messages)
        batch = list(messages)
        end.send(through(decoder, batch) if self.plan.is_encoded else batch)

    def hear(self, who: str, batch: Sequence[Message]) -> None:
        """Record what somebody is told."""
        for message in batch:
            self.trace.note(self.world.now, who, "hears", message)

    def close_worker(self, worker: WorkerActor) -> None:
        """The scheduler has sent a worker away; its nanny starts another one."""
        for place in self.places:
            if place.worker is worker:
                place.crash()
                self.world.after(0.05, place.start)

    # --- what is right -----------------------------------------------------------------------

    def fail(self, invariant: str, sentence: str, *words: str) -> None:
        """Something is wrong: end the run."""
        raise Violation(invariant, sentence, words)

    def judge_value(self, client: str, number: ClientTaskId, value: Value) -> None:
        """A client has got a value under one of its numbers: is it the right one?"""
        instance = self.oracle.ever.get(client, {}).get(number)
        if instance is None:
            if client in self.oracle.ever:
                self.fail("right values", f"{client} got a value under number {number}, unknown")
        elif value.fingerprint != instance.fingerprint:
            whose = self._whose(value.fingerprint)
            self.fail(
                "right values",
                f"{client} got {whose} as the value of {instance.spec.label}",
                instance.key,
            )

    def judge_failure(self, client: str, number: ClientTaskId, failure: Failure) -> None:
        """A client hears of a failure: is there a cause?"""
        instance = self.oracle.ever.get(client, {}).get(number)
        if instance is None:
            return
        if not self.oracle.may_fail(instance, self.scheduler.settings):
            self.fail(
                "failures have causes",
                f"{client} hears that {instance.key!r} failed ({failure.text}), and nothing did",
                instance.key,
            )

    def run_begins(self, worker: WorkerActor, message: RunTask, spec: TaskSpec) -> None:
        """A thread begins a run: for the first time, and where it may?"""
        epoch = worker.machine.state.epoch
        if (epoch, message.run) in self._runs_begun:
            self.fail("runs begin once", f"run {message.run} of {message.key!r} begins twice")
        self._runs_begun[epoch, message.run] = None
        if spec.key != message.key:
            self.fail("codes are told", f"{message.key!r} calls {spec.label}", message.key)
        instance = self.oracle.by_task.get(message.task)
        if instance is None or epoch != self.scheduler.epoch:
            return
        allowed = instance.options.workers
        if allowed and not instance.options.allow_other_workers and worker.address not in allowed:
            self.fail(
                "restrictions hold",
                f"{message.key!r} runs on {worker.address}, and may only on {allowed}",
                message.key,
            )

    def look_at_worker(self, worker: WorkerActor) -> None:
        """A worker has just done something: is it as it should be?"""
        if worker.store.keys() != worker.machine.state.held.keys():
            stored, held = list(worker.store), list(worker.machine.state.held)
            self.fail(
                "the store is what is held", f"{worker.name} stores {stored} and holds {held}"
            )
        if self.checks_all:
            for sentence in worker.machine.broken_invariants():
                self.fail("worker machine", f"{worker.name}: {sentence}")

    def _whose(self, fingerprint: int) -> str:
        for instance in self.oracle.by_task.values():
            if instance.fingerprint == fingerprint:
                return f"the value of {instance.spec.label}"
        return "a value of nothing that is known"


def _specs(plan: Plan) -> dict[str, TaskSpec]:
    """All task specs of the plan by label."""
    specs: dict[str, TaskSpec] = {}
    for act in plan.acts:
        if isinstance(act, Submit):
            specs.update((task.label, task) for task in act.tasks)
        elif isinstance(act, Scatter):
            specs.update((value.label, value) for value in act.values)
    return specs
