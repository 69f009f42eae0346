"""What must come out: a second, very small scheduler that runs nothing.

It hears what clients say in the order in which the real scheduler hears it, and keeps who wants
what.  From that follow which keys must be known, which value belongs to each of a client's numbers,
and whether a failure may be blamed on anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

from shoal.ids import ClientTaskId, CodeId, JournalId, Key, TaskId
from shoal.protocol.datasets import PublishDatasets, UnpublishDatasets
from shoal.protocol.journal import FAILED, NO_CODE, OPEN
from shoal.protocol.membership import RestartWorkers
from shoal.protocol.messages import (
    CancelTasks,
    DefineClientCode,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    TaskOptions,
    WantKey,
)
from shoal.protocol.transfers import PlaceScatter
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.returning import Definite
from shoal.sim.specs import ALWAYS, TaskSpec, call_of, compute
from shoal.sim.violation import Violation


class Instance:
    """One life of a key: from when the scheduler first hears of it until nobody needs it."""

    __slots__ = (
        "dependencies",
        "fingerprint",
        "has_failed",
        "holds",
        "is_named",
        "is_orphan",
        "is_scattered",
        "key",
        "ndeaths",
        "ndependents",
        "nmade",
        "nunavailable",
        "options",
        "spec",
        "task",
        "wants",
    )

    def __init__(
        self, spec: TaskSpec, dependencies: tuple["Instance", ...], fingerprint: int
    ) -> None:
        self.key = spec.key
        self.spec = spec
        self.dependencies = dependencies
        self.fingerprint = fingerprint
        self.wants: dict[tuple[str, ClientTaskId], None] = {}
        self.holds: dict[tuple[str, ClientTaskId], None] = {}  # for later slices of graphs
        self.ndependents = 0
        self.ndeaths = 0  # workers that died or broke off while they had it
        self.nmade = 0  # runs of it that ended well
        self.nunavailable = 0  # runs of it that could not get their inputs
        self.is_scattered = False
        self.is_named = False  # it was wanted by key, before anybody said what makes it
        self.is_orphan = False  # what it needed was not known when it came
        self.has_failed = False  # in another life of the scheduler, which had a cause
        self.options = TaskOptions()
        self.task = TaskId(0)  # the scheduler's number of it

    @property
    def is_known(self) -> bool:
        """Whether anybody wants it, or anything that is known depends on it."""
        return bool(self.wants or self.holds) or self.ndependents > 0

    def closure(self) -> Iterator["Instance"]:
        """It and all that it depends on, each once."""
        seen = {self: None}
        stack = [self]
        while stack:
            instance = stack.pop()
            yield instance
            for dependency in instance.dependencies:
                if dependency not in seen:
                    seen[dependency] = None
                    stack.append(dependency)


class Oracle:
    """Knows what is wanted, and what every value must be."""

    def __init__(
        self,
        specs: Mapping[str, TaskSpec],
        memory_max: float = inf,
        definite: Definite | None = None,
    ) -> None:
        """`specs`: what each label does; `memory_max`: of any worker; `definite`: what each key
        means, where it means one thing."""
        self._definite = definite
        self._specs = specs
        self.memory_max = memory_max
        self.known: dict[Key, Instance] = {}
        self.by_number: dict[str, dict[ClientTaskId, Instance]] = {}  # by client
        self.held: dict[str, dict[ClientTaskId, Instance]] = {}  # by client: for later slices
        self.by_task: dict[TaskId, Instance] = {}  # in this epoch; forgotten ones too
        self.fresh: list[Instance] = []  # not yet in `by_task`
        self.placed: dict[tuple[str, int], tuple[TaskSpec, ...]] = {}  # scatters by request
        self.ever: dict[str, dict[ClientTaskId, Instance]] = {}  # as `by_number`, never forgotten
        self._codes: dict[tuple[str, CodeId], bytes] = {}
        self.datasets: dict[Key, str] = {}  # that are published -> in whose name that is wanted
        self._ndatasets = 0

    # --- what the scheduler hears ------------------------------------------------------------

    def client_joined(self, client: str) -> None:
        """A client registers under a name never used before."""
        self.by_number[client] = {}
        self.held[client] = {}
        self.ever[client] = {}

    def client_lost(self, client: str) -> None:
        """Whatever the client wanted, it no longer does."""
        self._drop(client, list(self.by_number.get(client, ())))
        held = self.held.pop(client, {})
        for number, instance in held.items():
            del instance.holds[client, number]
        self._forget_unneeded(list(held.values()))
        self.by_number.pop(client, None)

    def client_said(self, client: str, message: Message) -> None:
        """The scheduler hears one message of a client."""
        if client not in self.by_number:
            return
        match message:
            case DefineClientCode(code, payload):
                self._codes[client, code] = payload
            case ForgetClientCode(codes):
                for code in codes:
                    self._codes.pop((client, code), None)
            case SubmitTasks():
                self._submitted(client, message)
            case ReleaseTasks(tasks):
                self._drop(client, tasks)
            case WantKey(number, key):
                if key in self.known:
                    self._want(client, number, self.known[key])
            case CancelTasks(tasks, force):
                self._cancelled(client, tasks, force)
            case RestartWorkers(lets_go=True):
                self._end_all()
            case PublishDatasets(_, names, _, tasks, override):
                self._published(client, names, tasks, override)
            case UnpublishDatasets(_, names):
                for name in names:
                    self._let_go_of(self.datasets.pop(name, ""))
            case PlaceScatter(request, first, again=again):
                for i, spec in enumerate(self.placed[client, request]):
                    number = ClientTaskId(first + i)
                    if not again or number in self.by_number[client]:  # else it was let go of
                        self._placed(client, number, spec)
            case _:
                pass  # it changes nothing that is wanted

    def named(self, client: str, message: WantKey) -> None:
        """The scheduler is about to hear of a key that it may get from a worker, or hear of."""
        if client not in self.by_number or message.key in self.known or self._definite is None:
            return
        spec = self._definite.spec(message.key)
        instance = self._new(spec, (), self._definite.fingerprint(message.key))
        instance.is_named = True

    def adopted(self, task: TaskId) -> None:
        """A result has a number again that was made in another life of the scheduler."""
        instance = self.by_task.get(task)
        if instance is not None:
            instance.nmade += 1

    def restored(self, journaled: Journaled) -> None:
        """A scheduler begins with what the one before has left."""
        found: dict[JournalId, Instance] = {}
        if self._definite is None:
            return
        for number in journaled.ordered(journaled.tasks):
            task = journaled.tasks[number]
            needs = tuple(found[each] for each in task.dependencies)
            spec, mark = self._definite.spec(task.key), self._definite.fingerprint(task.key)
            instance = found[number] = self._new(spec, needs, mark)
            instance.options, instance.is_named = task.options, task.code == NO_CODE
            if task.stands is not None:
                instance.ndeaths = task.stands.blame
                instance.nmade = int(task.stands.how != OPEN)
                instance.has_failed = task.stands.how == FAILED
                instance.is_orphan = task.stands.is_incomplete
        for name, dataset in journaled.datasets.items():
            self._publish(name, [found[number] for number in dataset.kept])

    def _published(
        self, client: str, names: list[Key], tasks: list[list[ClientTaskId]], override: bool
    ) -> None:
        """A client publishes what it wants, all of it or nothing."""
        if not override and any(name in self.datasets for name in names):
            return
        mine = self.by_number[client]
        for name, numbers in zip(names, tasks, strict=True):
            self._publish(name, [mine[number] for number in numbers if number in mine])

    def _publish(self, name: Key, instances: Iterable[Instance]) -> None:
        """Want these in the name of a dataset, in place of what was wanted in it before."""
        before = self.datasets.pop(name, "")
        self._ndatasets += 1
        owner = self.datasets[name] = f"dataset {self._ndatasets}"
        self.by_number[owner], self.ever[owner] = {}, {}
        for index, instance in enumerate(dict.fromkeys(instances)):
            self._want(owner, ClientTaskId(index), instance)
        self._let_go_of(before)

    def _let_go_of(self, owner: str) -> None:
        """Nothing is wanted in the name of a dataset any more."""
        self._drop(owner, list(self.by_number.get(owner, ())))
        self.by_number.pop(owner, None)

    def _end_all(self) -> None:
        """Nobody wants anything any more."""
        for owner in self.datasets.values():
            self._drop(owner, list(self.by_number[owner]))
        for client, held in self.held.items():
            self._drop(client, list(self.by_number[client]))
            for number, instance in held.items():
                del instance.holds[client, number]
            instances = list(held.values())
            held.clear()
            self._forget_unneeded(instances)

    def bind(self, numbers: Mapping[Key, TaskId]) -> None:
        """Learn the scheduler's numbers of keys that it has just heard of."""
        for instance in self.fresh:
            if instance.key in numbers and self.known.get(instance.key) is instance:
                instance.task = numbers[instance.key]
                self.by_task[instance.task] = instance
        self.fresh.clear()

    def _submitted(self, client: str, message: SubmitTasks) -> None:
        instances: list[Instance] = []
        for i, key in enumerate(message.keys):
            known = self.known.get(key)
            if known is not None and known.is_named and not known.dependencies:
                self._define(known, client, message, i, instances)
            instances.append(known or self._submitted_one(client, message, i, instances))
        wanted = range(len(instances)) if message.wanted is None else message.wanted
        for i in wanted:
            self._want(client, ClientTaskId(message.first + i), instances[i])
        for i in message.held:
            number = ClientTaskId(message.first + i)
            instances[i].holds[client, number] = None
            self.held[client][number] = instances[i]
        for number in message.let_go:
            held = self.held[client].pop(number, None)
            if held is not None:
                del held.holds[client, number]
                instances.append(held)
        self._forget_unneeded(instances)

    def _submitted_one(
        self, client: str, message: SubmitTasks, index: int, before: list[Instance]
    ) -> Instance:
        """A new instance; `before`: those of the same message that come before it."""
        code = message.codes[index if len(message.codes) > 1 else 0]
        function, label = call_of(self._codes[client, code], message.arguments[index])
        spec = self._specs[label]
        dependencies = self._dependencies(client, message, index, before)
        if dependencies is None:  # one was cancelled before; the scheduler says so
            orphan = self._new(spec, (), 0)
            orphan.is_orphan = True
            return orphan
        inputs = [dependency.fingerprint for dependency in dependencies]
        new = self._new(spec, tuple(dependencies), compute(function, label, inputs))
        new.options = message.options or new.options
        return new

    def _dependencies(
        self, client: str, message: SubmitTasks, index: int, before: list[Instance]
    ) -> list[Instance] | None:
        """What a task of the message needs; None if not all of that is known."""
        dependencies: list[Instance] = []
        for number in message.dependencies[index] if message.dependencies else ():
            if number >= message.first:
                dependencies.append(before[number - message.first])
                continue
            found = self.by_number[client].get(number) or self.held[client].get(number)
            if found is None:
                return None
            dependencies.append(found)
        return dependencies

    def _define(
        self, known: Instance, client: str, message: SubmitTasks, index: int, before: list[Instance]
    ) -> None:
        """What makes it is said after it was wanted by key."""
        dependencies = self._dependencies(client, message, index, before)
        if dependencies is not None:
            known.dependencies = tuple(dependencies)
            for dependency in dict.fromkeys(dependencies):
                dependency.ndependents += 1
            known.options = message.options or known.options

    def _new(
        self, spec: TaskSpec, dependencies: tuple[Instance, ...], fingerprint: int
    ) -> Instance:
        instance = Instance(spec, dependencies, fingerprint)
        for dependency in dict.fromkeys(dependencies):
            dependency.ndependents += 1
        self.known[spec.key] = instance
        self.fresh.append(instance)
        return instance

    def _want(self, client: str, number: ClientTaskId, instance: Instance) -> None:
        for owner, other in instance.wants:
            # Futures of one key share a want, and releases come before what follows them.
            if owner == client and other != number:
                raise Violation(
                    "a client wants a key once",
                    f"{client} wants {instance.key!r} as {number} and still as {other}",
                    (instance.key,),
                )
        instance.wants[client, number] = None
        self.by_number[client][number] = self.ever[client][number] = instance

    def _placed(self, client: str, number: ClientTaskId, spec: TaskSpec) -> None:
        if number in self.by_number[client]:
            return  # it is placed again, since a worker could not take it
        instance = self.known.get(spec.key)
        if instance is None:
            instance = self._new(spec, (), scattered(spec))
            instance.is_scattered = True
        self._want(client, number, instance)

    def _cancelled(self, client: str, numbers: Iterable[ClientTaskId], force: bool) -> None:
        """End these and what depends on them; others' wants keep a task alive unless forced."""
        mine = self.by_number[client]
        doomed = self._with_dependents([mine[n] for n in numbers if n in mine])
        for instance in doomed:
            owners = list(instance.wants)
            self._drop(client, [number for owner, number in owners if owner == client])
            if force:
                for owner, number in owners:
                    self._drop(owner, [number])

    def _with_dependents(self, roots: Iterable[Instance]) -> list[Instance]:
        doomed = dict.fromkeys(roots)
        # Instances were entered after what they depend on, so one pass in that order is enough.
        for instance in self.known.values():
            if any(dependency in doomed for dependency in instance.dependencies):
                doomed[instance] = None
        return list(doomed)

    def _drop(self, client: str, numbers: Iterable[ClientTaskId]) -> None:
        mine = self.by_number.get(client, {})
        touched: list[Instance] = []
        for number in numbers:
            instance = mine.pop(number, None)
            if instance is not None:
                del instance.wants[client, number]
                touched.append(instance)
        self._forget_unneeded(touched)

    def _forget_unneeded(self, instances: list[Instance]) -> None:
        """Forget those of `instances` that nobody needs, and then what only they needed."""
        stack = list(instances)
        while stack:
            instance = stack.pop()
            if instance.is_known or self.known.get(instance.key) is not instance:
                continue
            del self.known[instance.key]
            for dependency in dict.fromkeys(instance.dependencies):
                dependency.ndependents -= 1
                stack.append(dependency)

    # --- what it says ------------------------------------------------------------------------

    def may_fail(self, instance: Instance, settings: SchedulerSettings) -> bool:
        """Whether there is a cause for the failure of `instance`, or of what it needs."""
        return any(
            part.spec.nfailures > 0
            or part.spec.is_unsendable
            or part.is_scattered
            or part.is_named
            or part.is_orphan
            or part.has_failed
            or part.ndeaths > settings.allowed_failures
            or (part.ndeaths > 1 and part.spec.peak_bytes > 0)  # its memory was full twice
            or sum(each.spec.nbytes for each in part.dependencies) > self.memory_max
            or part.nunavailable >= settings.fetch_attempts_max
            or (part.spec.is_fickle and part.nmade > 1)  # it has given rows of two kinds
            or (part.options.actor and part.nmade > 0)  # it is not made again, once it is gone
            for part in instance.closure()
        )

    def must_fail(self, instance: Instance) -> bool:
        """Whether it can't come out well: something that it needs raises every time."""
        return any(
            (part.spec.nfailures >= ALWAYS and not part.is_scattered) or part.is_orphan
            for part in instance.closure()
        )


def scattered(spec: TaskSpec) -> int:
    """The fingerprint of a value that a client scatters."""
    return compute("scatter", spec.label, ())
