"""What the actors of one run share: time, the network, the oracle, and who judges them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from shoal.ids import ClientTaskId, Epoch, RunId, TaskId
from shoal.protocol.answers import Answer
from shoal.protocol.codec import Decoder
from shoal.protocol.messages import Failure, Message, RunTask
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.awaiting import Awaited
from shoal.sim.journals import Disk
from shoal.sim.network import End, Network
from shoal.sim.oracle import Oracle
from shoal.sim.plan import Ambush, Plan, RestartScheduler, Scatter, Submit
from shoal.sim.returning import Definite
from shoal.sim.rows import Rows
from shoal.sim.specs import TaskSpec, Value
from shoal.sim.streams import Streams
from shoal.sim.trace import Trace
from shoal.sim.trading import Trades
from shoal.sim.transfers import Holder, Transfers
from shoal.sim.violation import Violation
from shoal.sim.wire import through
from shoal.sim.world import World


class Stage(ABC):
    """All but the actors themselves."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World()
        self.streams = Streams(plan.seed)
        self.network = Network(self.world, self.streams, plan.weather)
        self.trace = Trace()
        self.transfers = Transfers(self.network, self.worker_at, self.occasion)
        self.specs = _specs(plan)
        has_restarts = any(isinstance(fault, RestartScheduler) for fault in plan.faults)
        self.definite = Definite(plan.acts) if has_restarts else None
        self.oracle = Oracle(self.specs, plan.memory_max, self.definite)
        self.settings = SchedulerSettings(**dict(plan.settings))  # type: ignore[arg-type]
        self.epoch = Epoch(1)  # the scheduler's
        self.trades = Trades()
        self.disk = Disk()  # of the scheduler
        self.rows = Rows()
        self.awaited = Awaited(self.world, lambda: self.oracle.known)
        self.nwaits = 0  # steps of workers after which something waited for room
        self.nforced = [0, 0]  # times that it was let in without, and as nothing went on
        self.nended: dict[str, int] = {}  # runs by label, for tasks that fail a few times
        self.nmessages = 0
        self.is_calm = False  # faults are over
        self.ambushes: dict[tuple[str, int], list[Ambush]] = {}
        self._noccasions: dict[str, int] = {}
        self._runs_begun: dict[tuple[Epoch, RunId], None] = {}
        # Whoever runs the run says what these do.
        self.on_ambush: Callable[[Ambush, str, str], None]
        self.after_scheduler_step: Callable[[], None]
        self.after_worker_step: Callable[[str], None]  # is told the address

    # --- what the cluster does ---------------------------------------------------------------

    @abstractmethod
    def worker_at(self, address: str) -> Holder | None:
        """The process at an address, if one is there."""

    @abstractmethod
    def dial_scheduler(self, place: str) -> End:
        """A new connection to the scheduler."""

    @abstractmethod
    def client_is_over(self, name: str) -> None:
        """A client has lost its scheduler; its user starts another one."""

    @abstractmethod
    def lock_is_held(self, client: str, name: str) -> None:
        """A client has been granted a lock: nobody else may have it."""

    @abstractmethod
    def values_are_taken(self, client: str, values: Sequence[str]) -> None:
        """A client has taken values from a queue: nobody else may have them."""

    @abstractmethod
    def memory_is_full(self, address: str, nbytes: int) -> None:
        """A worker has so much more memory than it may have that its nanny ends it."""

    @abstractmethod
    def close_worker(self, address: str) -> None:
        """The scheduler has sent a worker away; its nanny starts another one."""

    # --- how they speak ----------------------------------------------------------------------

    def say(self, end: End, messages: Sequence[Message], decoder: Decoder) -> None:
        """Send messages, through the codec if the plan says so."""
        self.nmessages += len(messages)
        batch = list(messages)
        end.send(through(decoder, batch) if self.plan.is_encoded else batch)

    def hear(self, who: str, batch: Sequence[Message]) -> None:
        """Record what somebody is told."""
        for message in batch:
            about: object = message
            if isinstance(message, Answer):  # whose value has no repr that is worth its name
                about = (message.request, bytes(message.value))
            self.trace.note(self.world.now, who, "hears", about)

    def occasion(self, name: str, worker: str, other: str = "") -> None:
        """Something happens that an ambush may wait for, at `worker`, with `other` if any."""
        nth = self._noccasions.get(name, 0)
        self._noccasions[name] = nth + 1
        for ambush in self.ambushes.pop((name, nth), ()):
            self.on_ambush(ambush, worker, other if self.worker_at(other) else worker)

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
        if not self.oracle.may_fail(instance, self.settings):
            self.fail(
                "failures have causes",
                f"{client} hears that {instance.key!r} failed ({failure.text}), and nothing did",
                instance.key,
            )

    def run_begins(self, address: str, epoch: Epoch, message: RunTask, spec: TaskSpec) -> None:
        """A thread begins a run: for the first time, and where it may?"""
        if (epoch, message.run) in self._runs_begun:
            self.fail("runs begin once", f"run {message.run} of {message.key!r} begins twice")
        self._runs_begun[epoch, message.run] = None
        if spec.key != message.key:
            self.fail("codes are told", f"{message.key!r} calls {spec.label}", message.key)
        instance = self.oracle.by_task.get(message.task)
        if instance is None or epoch != self.epoch:
            return
        allowed = instance.options.workers
        if allowed and not instance.options.allow_other_workers and address not in allowed:
            self.fail(
                "restrictions hold",
                f"{message.key!r} runs on {address}, and may only on {allowed}",
                message.key,
            )

    def memory_of(self, task: TaskId, epoch: Epoch) -> int:
        """What was said about the memory that a task takes; 0: nothing."""
        instance = self.oracle.by_task.get(task) if epoch == self.epoch else None
        return 0 if instance is None else instance.options.memory

    def resources_of(self, task: TaskId, epoch: Epoch) -> dict[str, float]:
        """What a task needs while it runs."""
        instance = self.oracle.by_task.get(task) if epoch == self.epoch else None
        return {} if instance is None else instance.options.resources

    def is_actor(self, task: TaskId, epoch: Epoch) -> bool:
        """Whether the task makes an actor."""
        instance = self.oracle.by_task.get(task) if epoch == self.epoch else None
        return instance is not None and instance.options.actor

    def run_is_over(self, task: TaskId, epoch: Epoch) -> None:
        """A run has ended well somewhere."""
        instance = self.oracle.by_task.get(task) if epoch == self.epoch else None
        if instance is not None:
            instance.nmade += 1
            self.awaited.computed(instance.key)

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
