"""Read-only views of the scheduler with the attribute names that upstream's users know.

A view is made when it is asked for and holds a reference to an entity; nothing here is copied or
kept up to date, and nothing can be changed through it.  The scheduler serves these views, so they
stand below it and know its entities by their attributes only.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from shoal.ids import Key
from shoal.observe.details import TaskDetails, WorkerDetails
from shoal.observe.overview import Overview
from shoal.observe.shown import (
    ShownScheduler,
    ShownTask,
    ShownTransition,
    ShownWorker,
    shown_story,
)
from shoal.observe.status import Status
from shoal.observe.stimuli import read_stimuli
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.messages import TaskOptions
from shoal.protocol.questions import Transition

K = TypeVar("K")
V = TypeVar("V")

PROCESSING_SECONDS: Final = 1e-6
"""Microseconds, in which durations are kept, to seconds, in which they are shown."""


class MappingView(Mapping[K, V], Generic[K, V]):
    """A mapping over another, with its keys and values translated when they are looked at."""

    def __init__(
        self,
        source: Mapping[Any, Any],
        to_key: Callable[[K], Any],
        from_key: Callable[[Any], K],
        view: Callable[[Any], V],
    ) -> None:
        self._source = source
        self._to_key = to_key
        self._from_key = from_key
        self._view = view

    def __getitem__(self, key: K) -> V:
        try:
            return self._view(self._source[self._to_key(key)])
        except (KeyError, TypeError, ValueError):  # or no key at all
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[K]:
        return map(self._from_key, list(self._source))

    def __len__(self) -> int:
        return len(self._source)

    def __repr__(self) -> str:
        return repr(dict(self))


def _same(value: Any) -> Any:
    return value


def view_of_tasks(tasks: Mapping[Key, Any]) -> "MappingView[object, TaskView]":
    """Tasks by the user's key."""
    return MappingView(tasks, to_canonical, from_canonical, TaskView)


class _View:
    """Equal and hashed as the entity that it shows."""

    __slots__ = ("_entity",)

    def __init__(self, entity: Any) -> None:
        self._entity = entity

    def __eq__(self, other: object) -> bool:
        return bool(isinstance(other, _View) and self._entity is other._entity)

    def __hash__(self) -> int:
        return hash(self._entity)

    def __repr__(self) -> str:
        return str(repr(self._entity))


class PrefixView(_View):
    """All tasks of one function."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What their keys begin with."""
        return str(self._entity.name)

    @property
    def states(self) -> dict[str, int]:
        """How many of its tasks are in each state."""
        return dict(self._entity.ntasks)

    @property
    def duration_average(self) -> float:
        """Seconds; -1 if none has finished."""
        us: int = self._entity.duration_us
        return us if us < 0 else us * PROCESSING_SECONDS


class TaskView(_View, TaskDetails, ShownTask):
    """A task as the scheduler sees it."""

    __slots__ = ()

    @property
    def key(self) -> object:
        """The user's key."""
        return from_canonical(self._entity.key)

    @property
    def state(self) -> str:
        """released, waiting, queued, no-worker, processing, memory, erred or forgotten."""
        return str(self._entity.state)

    @property
    def prefix(self) -> PrefixView:
        """All tasks of its function."""
        return PrefixView(self._entity.prefix)

    @property
    def dependencies(self) -> "set[TaskView]":
        """What it needs."""
        return {TaskView(task) for task in self._entity.dependencies}

    @property
    def dependents(self) -> "set[TaskView]":
        """What needs it."""
        return {TaskView(task) for task in self._entity.dependents or ()}

    @property
    def waiting_on(self) -> "set[TaskView]":
        """Dependencies that are not in memory, if it is waiting."""
        if self.state != "waiting":
            return set()
        return {view for view in self.dependencies if view.state != "memory"}

    @property
    def waiters(self) -> "set[TaskView]":
        """Dependents that still need its result."""
        needing = ("waiting", "queued", "no-worker", "processing")
        return {view for view in self.dependents if view.state in needing}

    @property
    def who_has(self) -> "set[WorkerView]":
        """Workers that hold its result."""
        return {WorkerView(worker) for worker in self._entity.who_has or ()}

    @property
    def processing_on(self) -> "WorkerView | None":
        """The worker on which it is placed."""
        worker = self._entity.worker
        return None if worker is None else WorkerView(worker)

    @property
    def who_wants(self) -> "set[ClientView]":
        """Clients that hold a future of it."""
        return {ClientView(client) for client, _ in self._entity.wants}

    def get_nbytes(self) -> int:
        """Size of its result in memory; 1024 if it is not known."""
        return int(self._entity.nbytes if self._entity.nbytes >= 0 else 1024)

    @property
    def priority(self) -> int:
        """Smaller is sooner."""
        return int(self._entity.priority)

    @property
    def exception_text(self) -> str:
        """The error it ended with; empty if it did not."""
        failure = self._entity.failure
        return "" if failure is None else failure.text

    @property
    def traceback_text(self) -> str:
        """The traceback of the error it ended with; empty if it did not."""
        failure = self._entity.failure
        return "" if failure is None else failure.traceback_text

    @property
    def host_restrictions(self) -> set[str] | None:
        """Workers or hosts that alone may run it; None if any may."""
        return set(self._entity.options.workers) or None

    worker_restrictions = host_restrictions

    @property
    def resource_restrictions(self) -> dict[str, float] | None:
        """What it has of its worker while it runs; None: nothing."""
        return dict(self._entity.options.resources) or None

    @property
    def annotations(self) -> dict[str, Any]:
        """What was said about it, where that is not as usual."""
        options, usual = self._entity.options, TaskOptions()
        names = ("priority", "retries", "workers", "allow_other_workers", "resources", "executor")
        said = {name: getattr(options, name) for name in names}
        return {name: value for name, value in said.items() if value != getattr(usual, name)}

    @property
    def loose_restrictions(self) -> bool:
        """Whether restrictions are a preference only."""
        return bool(self._entity.options.allow_other_workers)


class WorkerView(_View, WorkerDetails, ShownWorker):
    """A worker as the scheduler sees it."""

    __slots__ = ()

    @property
    def status(self) -> Status:
        """Running, paused, or about to go."""
        return Status(self._entity.status)

    @property
    def nprocessing(self) -> int:
        """Tasks that were given to it."""
        return len(self._entity.processing)

    @property
    def versions(self) -> dict[str, dict[str, str]]:
        """What is installed there, as it has told: `packages`, name -> version."""
        return {"packages": dict(self._entity.versions)}

    @property
    def occupancy(self) -> float:
        """Seconds of expected work that was given to it."""
        return float(self._entity.occupancy_us * PROCESSING_SECONDS)

    @property
    def processing(self) -> "dict[TaskView, float]":
        """Tasks placed on it, and how long each is expected to take (s)."""
        processing = self._entity.processing.items()
        return {TaskView(task): us * PROCESSING_SECONDS for task, us in processing}

    @property
    def has_what(self) -> "dict[TaskView, None]":
        """Tasks whose results it holds."""
        return {TaskView(task): None for task in self._entity.has_what}

    @property
    def needs_what(self) -> "dict[TaskView, int]":
        """Results that it does not hold, and how many of its tasks need each.  Cost: O(inputs)."""
        held, found = self._entity.has_what, Counter[TaskView]()
        for task in self._entity.processing:
            found.update(TaskView(one) for one in task.dependencies if one not in held)
        return dict(found)

    @property
    def actors(self) -> set[TaskView]:
        """Tasks whose results are actors that live there."""
        return {TaskView(task) for task in self._entity.actors}

    @property
    def long_running(self) -> set[TaskView]:
        """Tasks that run there in no thread of its own, as they have seceded."""
        return {TaskView(task) for task, is_away in self._entity.seceded.items() if is_away}


class ClientView(_View):
    """A client as the scheduler sees it."""

    __slots__ = ()

    @property
    def client_key(self) -> str:
        """What it is called."""
        return str(self._entity.name)

    @property
    def wants_what(self) -> set[TaskView]:
        """Tasks of which it holds futures."""
        return {TaskView(task) for task in self._entity.tasks.values()}


class SchedulerView(Overview, ShownScheduler[WorkerView]):
    """What upstream's scheduler shows of its state."""

    address: str = ""
    """Where clients and workers find it."""

    def __init__(self, state: Any, story: Any) -> None:
        self._state = state
        self._story = story
        self._gone: Mapping[Key, Any] = {}  # tasks that plugins are just told the end of

    @property
    def tasks(self) -> MappingView[object, TaskView]:
        """Tasks by the user's key."""
        if self._gone:
            return view_of_tasks(ChainMap(self._state.tasks, dict(self._gone)))
        return view_of_tasks(self._state.tasks)

    @property
    def workers(self) -> MappingView[str, WorkerView]:
        """Workers by address."""
        return MappingView(self._state.workers, _same, _same, WorkerView)

    @property
    def clients(self) -> dict[str, ClientView]:
        """Clients by name, and those that only stand for what results are kept for."""
        clients = (*self._state.clients.values(), *self._state.keepers.values())
        return {client.name: ClientView(client) for client in clients}

    @property
    def task_prefixes(self) -> MappingView[str, PrefixView]:
        """Prefixes by name."""
        return MappingView(self._state.prefixes, _same, _same, PrefixView)

    @property
    def unrunnable(self) -> set[TaskView]:
        """Tasks that no connected worker may run."""
        return {TaskView(task) for task in self._state.unrunnable}

    @property
    def queued(self) -> list[TaskView]:
        """Ready tasks that are kept until some worker has room.  Cost: O(tasks)."""
        return [TaskView(task) for task in self._state.tasks.values() if task.state == "queued"]

    @property
    def total_occupancy(self) -> float:
        """Seconds of expected work that was given to workers."""
        occupied: int = sum(worker.occupancy_us for worker in self._state.workers.values())
        return occupied * PROCESSING_SECONDS

    @property
    def transition_log(self) -> list[ShownTransition]:
        """All recorded transitions, oldest first."""
        return shown_story(Transition(*record) for record in self._story)

    def get_who_has(self, keys: Iterable[object] | None = None) -> dict[object, list[str]]:
        """Addresses of the holders of each key; of all keys if none is named."""
        tasks = self.tasks
        asked = list(tasks) if keys is None else list(keys)
        found = ((key, tasks.get(key)) for key in asked)
        return {key: sorted(w.address for w in task.who_has) if task else [] for key, task in found}

    def get_has_what(self, workers: Iterable[str] | None = None) -> dict[str, list[object]]:
        """Keys that each worker holds; of all workers if none is named."""
        asked = list(self.workers) if workers is None else list(workers)
        return {w: [task.key for task in self.workers[w].has_what] for w in asked}

    def get_nbytes(
        self, keys: Iterable[object] | None = None, summary: bool = True
    ) -> dict[object, int]:
        """Bytes in memory by prefix, or of each result; of all that are known if none is named."""
        asked = list(self.tasks) if keys is None else list(keys)
        sizes: dict[object, int] = {}
        for task in (self.tasks[key] for key in asked):
            if task.nbytes >= 0:
                name = task.prefix.name if summary else task.key
                sizes[name] = sizes.get(name, 0) + task.nbytes
        return sizes

    def get_task_status(self, keys: Iterable[object]) -> dict[object, str | None]:
        """The state of each; None of what is not known."""
        tasks = self.tasks
        return {key: tasks[key].state if key in tasks else None for key in keys}

    def get_processing(self, workers: Iterable[str] | None = None) -> dict[str, list[object]]:
        """Keys of the tasks that were given to each worker; of all workers if none is named."""
        asked = list(self.workers) if workers is None else list(workers)
        return {w: [task.key for task in self.workers[w].processing] for w in asked}

    def get_ncores(self, workers: Iterable[str] | None = None) -> dict[str, int]:
        """Threads of each worker; of all workers if none is named."""
        asked = list(self.workers) if workers is None else list(workers)
        return {w: self.workers[w].nthreads for w in asked}

    def story(self, *keys_or_stimuli: object) -> list[ShownTransition]:
        """The recorded transitions of keys or tasks, or by stimuli, oldest first.

        Cost: O(records).
        """
        keys = [getattr(asked, "key", asked) for asked in keys_or_stimuli]
        steps = read_stimuli(keys).steps
        found = self._story.where(frozenset(map(to_canonical, keys)), frozenset(steps))
        return shown_story(found)
