"""A scheduler in another process, seen over the wire, with the names that upstream's users know.

What never changes (address, id, services) is known here.  Everything else is asked for when it is
looked at, so each look costs a call and shows one moment; nothing can be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, Protocol, Self

from shoal.ids import Key
from shoal.observe.errors import NotInView, ReadOnlyView
from shoal.observe.facts import FactsOfScheduler, facts_of_identity, facts_of_worker
from shoal.observe.memory import MemoryState, memory_of
from shoal.observe.overview import OfWorkers
from shoal.observe.shown import (
    ShownScheduler,
    ShownTask,
    ShownTransition,
    ShownWorker,
    shown_story,
)
from shoal.observe.status import Status
from shoal.observe.stimuli import read_stimuli
from shoal.protocol import questions
from shoal.protocol.keys import from_canonical, to_canonical

Ask = Callable[[Callable[[int], Any]], Any]
"""Makes a call with the request's number, waits for the answer, and returns it."""


class Process(Protocol):
    """What is known of the scheduler's process without asking it."""

    address: str
    status: Status
    started_at: float
    words: Mapping[str, Any]

    @property
    def pid(self) -> int | None:
        """Its number; None if it was never started."""


class _View:
    """Can be looked at only; says so when something else is tried."""

    __slots__ = ("__weakref__",)

    _what = "a scheduler"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ReadOnlyView(self._what, name)

    def __delattr__(self, name: str) -> NoReturn:
        raise ReadOnlyView(self._what, name)

    def __getattr__(self, name: str) -> NoReturn:
        """What the class does not have."""
        if name.startswith("_"):  # what Python itself looks for
            raise AttributeError(name)
        raise NotInView(self._what, name)


def _made(kind: type[Any], **fields: Any) -> Any:
    """A view with its fields set, this once."""
    view = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(view, name, value)
    return view


class RemoteWorker(_View, ShownWorker):
    """A worker as the scheduler saw it when it was asked."""

    __slots__ = ("_ask", "_entity")

    _what = "a worker"
    _entity: questions.WorkerIdentity
    _ask: Ask

    @classmethod
    def of(cls, identity: questions.WorkerIdentity, ask: Ask) -> Self:
        """The view of a worker that was told of."""
        view: Self = _made(cls, _entity=identity, _ask=ask)
        return view

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteWorker) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return (
            f"<WorkerState {self.address!r}, name: {self.name}, status: {self.status}, "
            f"processing: {self.nprocessing}>"
        )

    @property
    def status(self) -> Status:
        """Running, or about to go."""
        return Status(self._entity.status)

    @property
    def nprocessing(self) -> int:
        """Tasks that were given to it."""
        return self._entity.nprocessing

    @property
    def last_seen(self) -> float:
        """When the scheduler had heard of it last (s, wall clock)."""
        return self._entity.heard_at

    @property
    def local_directory(self) -> str:
        """Where its tasks may leave files."""
        return self._entity.local_directory

    @property
    def services(self) -> dict[str, int]:
        """What else it serves -> the port."""
        return dict(self._entity.services)

    @property
    def nanny(self) -> str | None:
        """Address of who keeps its process, or a word for it; None if nobody does."""
        return self._entity.nanny or None

    @property
    def memory(self) -> MemoryState:
        """What its memory is used for, as it told last."""
        return memory_of(self._entity)

    @property
    def metrics(self) -> dict[str, Any]:
        """What it told last of its process."""
        metrics: dict[str, Any] = facts_of_worker(self._entity)["metrics"]
        return metrics

    def identity(self) -> dict[str, Any]:
        """What it is, as `client.scheduler_info()` has it."""
        return {"type": "Worker", **facts_of_worker(self._entity)}

    @property
    def processing(self) -> dict[RemoteTask, float]:
        """Tasks that are given to it now, and how long each is expected to take (s)."""
        given = self._ask(lambda n: questions.Processing(n, [self.address])).get(self.address, {})
        return {
            RemoteTask.of(key, "processing", self._ask): seconds for key, seconds in given.items()
        }

    @property
    def has_what(self) -> dict[RemoteTask, None]:
        """Tasks whose results it holds now."""
        held = self._ask(lambda n: questions.HasWhat(n, [self.address])).get(self.address, [])
        return {RemoteTask.of(key, "memory", self._ask): None for key in held}


class RemoteTask(_View, ShownTask):
    """A task: its key and state when it was looked up, and the rest when that is asked for."""

    __slots__ = ("_ask", "_canonical", "state")

    _what = "a task"
    _canonical: Key
    _ask: Ask
    state: str
    """released, waiting, queued, no-worker, processing, memory or erred."""

    @classmethod
    def of(cls, canonical: Key, state: str, ask: Ask) -> Self:
        """The view of a task that was told of."""
        view: Self = _made(cls, _canonical=canonical, state=state, _ask=ask)
        return view

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteTask) and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __repr__(self) -> str:
        return f"<TaskState {self.key!r} {self.state}>"

    @property
    def _entity(self) -> questions.TaskDescription:
        """All about it, as it is now; once it is forgotten, only what its key says."""
        found = self._ask(lambda n: questions.DescribeTasks(n, [self._canonical]))
        if not found:
            return questions.TaskDescription(self._canonical)
        described: questions.TaskDescription = found[0]
        return described

    def _others(self, keys: list[Key]) -> set[RemoteTask]:
        states = self._ask(lambda n: questions.TaskStates(n, keys)) if keys else {}
        return {RemoteTask.of(key, state, self._ask) for key, state in states.items()}

    def _workers(self, addresses: list[str]) -> set[RemoteWorker]:
        found = self._ask(questions.SchedulerIdentity).workers
        return {RemoteWorker.of(w, self._ask) for w in found if w.address in addresses}

    @property
    def key(self) -> object:
        """The user's key."""
        return from_canonical(self._canonical)

    @property
    def exception_text(self) -> str:
        """The error it ended with; empty if it did not."""
        return self._entity.error

    @property
    def traceback_text(self) -> str:
        """The traceback of the error it ended with; empty if it did not."""
        return self._entity.traceback

    @property
    def dependencies(self) -> set[RemoteTask]:
        """What it needs."""
        return self._others(self._entity.dependencies)

    @property
    def dependents(self) -> set[RemoteTask]:
        """What needs it."""
        return self._others(self._entity.dependents)

    @property
    def who_has(self) -> set[RemoteWorker]:
        """Workers that hold its result."""
        return self._workers(self._entity.holders)

    @property
    def processing_on(self) -> RemoteWorker | None:
        """The worker on which it is placed."""
        address = self._entity.placed_on
        return next(iter(self._workers([address])), None) if address else None


class RemoteTasks(Mapping[object, RemoteTask]):
    """Tasks by the user's key, with their states: of one that is looked up, then; else of all, when
    first all are looked at.

    Cost: O(1) for one task; O(tasks) for all of them, once.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._all: dict[Key, str] | None = None

    @property
    def _states(self) -> dict[Key, str]:
        if self._all is None:
            self._all = self._ask(questions.TaskStates)
        return self._all

    def __getitem__(self, key: object) -> RemoteTask:
        try:
            canonical = to_canonical(key)
        except (TypeError, ValueError):  # no key at all
            raise KeyError(key) from None
        states = self._all
        if states is None:
            states = self._ask(lambda n: questions.TaskStates(n, [canonical]))
        if canonical not in states:
            raise KeyError(key)
        return RemoteTask.of(canonical, states[canonical], self._ask)

    def __iter__(self) -> Iterator[object]:
        return map(from_canonical, list(self._states))

    def __len__(self) -> int:
        return len(self._states)

    def __repr__(self) -> str:
        return repr(dict(self))


class RemoteScheduler(_View, OfWorkers, ShownScheduler[RemoteWorker]):
    """A scheduler in a process of its own; what `cluster.scheduler` is then."""

    __slots__ = ("_ask", "_process")

    _what = "the scheduler"
    _process: Callable[[], Process]
    _ask: Ask

    @classmethod
    def of(cls, process: Callable[[], Process], ask: Ask) -> Self:
        """The view.

        Args:
            process: finds the handle of its process.
            ask: asks it, and waits; raises if it can't.
        """
        view: Self = _made(cls, _process=process, _ask=ask)
        return view

    def __repr__(self) -> str:
        return f"<Scheduler {self.address!r}, {self.status}, seen from another process>"

    # --- what is known here ------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where clients and workers find it; empty before it serves."""
        return self._process().address

    listen_address = contact_address = address

    ip = ShownScheduler.host

    @property
    def id(self) -> str:
        """What it is called."""
        return str(self._process().words.get("id", ""))

    @property
    def pid(self) -> int | None:
        """Its process."""
        return self._process().pid

    @property
    def status(self) -> Status:
        """What its process is doing."""
        return self._process().status

    @property
    def time_started(self) -> float:
        """When it was started (s, wall clock)."""
        return self._process().started_at

    @property
    def services(self) -> dict[str, int]:
        """What else its process serves -> the port."""
        return dict(self._process().words.get("services", {}))

    # --- what is asked for -------------------------------------------------------------------

    def identity(self, n_workers: int = -1) -> FactsOfScheduler:
        """What it and so many of its workers are, as plain values; -1: all."""
        asked = self._ask(lambda n: questions.SchedulerIdentity(n, n_workers))
        return facts_of_identity(asked)

    @property
    def workers(self) -> dict[str, RemoteWorker]:
        """Workers by address."""
        identity = self._ask(questions.SchedulerIdentity)
        return {worker.address: RemoteWorker.of(worker, self._ask) for worker in identity.workers}

    @property
    def addresses(self) -> list[str]:
        """Of the workers."""
        return list(self.workers)

    @property
    def tasks(self) -> RemoteTasks:
        """Tasks by the user's key; see there for what a look costs."""
        return RemoteTasks(self._ask)

    @property
    def unrunnable(self) -> set[RemoteTask]:
        """Tasks that no connected worker may run.  Cost: O(tasks)."""
        return {task for task in self.tasks.values() if task.state == "no-worker"}

    @property
    def queued(self) -> list[RemoteTask]:
        """Ready tasks that are kept until some worker has room.  Cost: O(tasks)."""
        return [task for task in self.tasks.values() if task.state == "queued"]

    def get_task_status(self, keys: Iterable[object]) -> dict[object, str | None]:
        """The state of each; None of what is not known."""
        asked = list(keys)
        states = self._ask(lambda n: questions.TaskStates(n, [to_canonical(key) for key in asked]))
        return {key: states.get(to_canonical(key)) for key in asked}

    def get_who_has(self, keys: Iterable[object] | None = None) -> dict[object, list[str]]:
        """Addresses of the holders of each key; of all that are in memory if none is named."""
        asked = None if keys is None else [to_canonical(key) for key in keys]
        found = self._ask(lambda n: questions.WhoHas(n, asked))
        return {from_canonical(key): holders for key, holders in found.items()}

    def get_has_what(self, workers: Iterable[str] | None = None) -> dict[str, list[object]]:
        """Keys that each worker holds; of all workers if none is named."""
        asked = None if workers is None else list(workers)
        found = self._ask(lambda n: questions.HasWhat(n, asked))
        return {address: [from_canonical(key) for key in held] for address, held in found.items()}

    def get_processing(self, workers: Iterable[str] | None = None) -> dict[str, list[object]]:
        """Keys of the tasks that were given to each worker; of all workers if none is named."""
        asked = None if workers is None else list(workers)
        found = self._ask(lambda n: questions.Processing(n, asked))
        return {address: [from_canonical(key) for key in given] for address, given in found.items()}

    def get_ncores(self, workers: Iterable[str] | None = None) -> dict[str, int]:
        """Threads of each worker; of all workers if none is named."""
        asked = None if workers is None else list(workers)
        return dict(self._ask(lambda n: questions.NThreads(n, asked)))

    def story(self, *keys_or_stimuli: object) -> list[ShownTransition]:
        """The recorded transitions of keys or tasks, or by stimuli, oldest first."""
        words = [getattr(asked, "key", asked) for asked in keys_or_stimuli]
        keys, steps = [to_canonical(word) for word in words], read_stimuli(words).steps
        return shown_story(self._ask(lambda n: questions.Story(n, keys, steps)))
