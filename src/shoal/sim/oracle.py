"""What must come out: a second, very small scheduler that runs nothing.

It hears what clients say in the order in which the real scheduler hears it, and keeps who wants
what.  From that follow which keys must be known, which value belongs to each of a client's numbers,
and whether a failure may be blamed on anything.
"""

from collections.abc import Iterable, Iterator, Mapping

from shoal.ids import ClientTaskId, CodeId, Key, TaskId
from shoal.protocol.calls import PlaceScatter
from shoal.protocol.messages import (
    CancelTasks,
    CompleteGraph,
    DefineClientCode,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    TaskOptions,
    WantKey,
)
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.specs import TaskSpec, call_of, compute


class Instance:
    """One life of a key: from when the scheduler first hears of it until nobody needs it."""

    __slots__ = ("dependencies", "fingerprint", "is_scattered", "key", "ndeaths", "ndependents",
                 "nunavailable", "options", "spec", "task", "wants")  # fmt: skip

    def __init__(
        self, spec: TaskSpec, dependencies: tuple["Instance", ...], fingerprint: int
    ) -> None:
        self.key = spec.key
        self.spec = spec
        self.dependencies = dependencies
        self.fingerprint = fingerprint
        self.wants: dict[tuple[str, ClientTaskId], None] = {}
        self.ndependents = 0
        self.ndeaths = 0  # workers that died or broke off while they had it
        self.is_scattered = False
        self.options = TaskOptions()
        self.task = TaskId(0)  # the scheduler's number of it

    @property
    def is_known(self) -> bool:
        """Whether anybody wants it, or anything that is known depends on it."""
        return bool(self.wants) or self.ndependents > 0

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

    def __init__(self, specs: Mapping[str, TaskSpec]) -> None:
        """`specs`: what each label does."""
        self._specs = specs
        self.known: dict[Key, Instance] = {}
        self.by_number: dict[str, dict[ClientTaskId, Instance]] = {}  # by client
        self.by_task: dict[TaskId, Instance] = {}  # in this epoch; forgotten ones too
        self.fresh: list[Instance] = []  # not yet in `by_task`
        self.placed: dict[tuple[str, int], tuple[TaskSpec, ...]] = {}  # scatters by request
        self.ever: dict[str, dict[ClientTaskId, Instance]] = {}  # as `by_number`, never forgotten
        self._codes: dict[tuple[str, CodeId], bytes] = {}

    # --- what the scheduler hears ------------------------------------------------------------

    def client_joined(self, client: str) -> None:
        """A client registers under a name never used before."""
        self.by_number[client] = {}
        self.ever[client] = {}

    def client_lost(self, client: str) -> None:
        """Whatever the client wanted, it no longer does."""
        self._drop(client, list(self.by_number.pop(client, ())))

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
            case CompleteGraph(first, stop, wanted):
                numbers = map(ClientTaskId, range(first, stop))
                keep = frozenset(wanted)
                self._drop(client, [number for number in numbers if number not in keep])
            case ReleaseTasks(tasks):
                self._drop(client, tasks)
            case WantKey(number, key):
                self._wanted(client, number, key)
            case CancelTasks(tasks, force):
                self._cancelled(client, tasks, force)
            case PlaceScatter(request, first):
                for i, spec in enumerate(self.placed[client, request]):
                    number = ClientTaskId(first + i)
                    if not self._wanted(client, number, spec.key):
                        self._new(client, number, spec, (), scattered(spec), is_scattered=True)
            case _:
                pass  # it changes nothing that is wanted

    def bind(self, numbers: Mapping[Key, TaskId]) -> None:
        """Learn the scheduler's numbers of keys that it has just heard of."""
        for instance in self.fresh:
            if instance.key in numbers and self.known.get(instance.key) is instance:
                instance.task = numbers[instance.key]
                self.by_task[instance.task] = instance
        self.fresh.clear()

    def _submitted(self, client: str, message: SubmitTasks) -> None:
        mine = self.by_number[client]
        for i, key in enumerate(message.keys):
            number = ClientTaskId(message.first + i)
            if self._wanted(client, number, key):
                continue
            code = message.codes[i if len(message.codes) > 1 else 0]
            function, label = call_of(self._codes[client, code], message.arguments[i])
            named = message.dependencies[i] if message.dependencies else []
            found = [mine.get(dependency) for dependency in named]
            dependencies = tuple(one for one in found if one is not None)
            if len(dependencies) < len(found):
                continue  # it needs what was cancelled before; the scheduler says so
            inputs = [dependency.fingerprint for dependency in dependencies]
            spec = self._specs[label]
            new = self._new(client, number, spec, dependencies, compute(function, label, inputs))
            new.options = message.options or new.options

    def _new(
        self,
        client: str,
        number: ClientTaskId,
        spec: TaskSpec,
        dependencies: tuple[Instance, ...],
        fingerprint: int,
        *,
        is_scattered: bool = False,
    ) -> Instance:
        instance = Instance(spec, dependencies, fingerprint)
        instance.is_scattered = is_scattered
        for dependency in dict.fromkeys(dependencies):
            dependency.ndependents += 1
        self.known[spec.key] = instance
        self.fresh.append(instance)
        self._wanted(client, number, spec.key)
        return instance

    def _wanted(self, client: str, number: ClientTaskId, key: Key) -> bool:
        instance = self.known.get(key)
        if instance is None:
            return False
        instance.wants[client, number] = None
        self.by_number[client][number] = self.ever[client][number] = instance
        return True

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
        stack: list[Instance] = []
        for number in numbers:
            instance = mine.pop(number, None) or self.ever[client].get(number)
            if instance is not None and (client, number) in instance.wants:
                del instance.wants[client, number]
                stack.append(instance)
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
            or part.is_scattered
            or part.ndeaths > settings.allowed_failures
            or part.nunavailable >= settings.fetch_attempts_max
            for part in instance.closure()
        )

    def must_fail(self, instance: Instance) -> bool:
        """Whether it can't come out well: something that it needs raises every time."""
        return any(part.spec.nfailures >= 1_000 for part in instance.closure())


def scattered(spec: TaskSpec) -> int:
    """The fingerprint of a value that a client scatters."""
    return compute("scatter", spec.label, ())
