"""What `WorkerState` shows by the old names: read off the machine, never written to it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from shoal.compat.worker_states import stimuli
from shoal.compat.worker_states.errors import InvalidTaskState
from shoal.compat.worker_states.tasks import TaskState
from shoal.compat.worker_states.threads import Threads
from shoal.ids import TaskId
from shoal.worker.machine.effects import Fetch
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import LONG_RUNNING, WAITING

REMEMBERED_MAX: Final = 1000
"""Stimuli that are kept to be looked at."""


class Shown:
    """All of a worker's state that can be looked at."""

    __slots__ = (
        "_fetches",
        "_key_by_number",
        "_machine",
        "_number_by_key",
        "_numbers",
        "_threads",
        "stimulus_log",
        "tasks",
    )

    def __init__(self, machine: WorkerMachine, threads: Threads) -> None:
        self.tasks: dict[Any, TaskState] = {}
        self.stimulus_log: deque[stimuli.StateMachineEvent] = deque(maxlen=REMEMBERED_MAX)
        self._threads = threads
        self._machine = machine
        self._numbers: Iterator[int] = itertools.count(1)
        self._number_by_key: dict[Any, TaskId] = {}
        self._key_by_number: dict[TaskId, Any] = {}
        self._fetches: dict[str, Fetch] = {}

    def number(self, key: Any) -> TaskId:
        number = self._number_by_key.get(key)
        if number is None:
            number = self._number_by_key[key] = TaskId(next(self._numbers))
            self._key_by_number[number] = key
        return number

    def numbers_of(self, keys: Iterable[Any]) -> list[TaskId]:
        """Those of the keys that have one: the machine knows nothing of the others."""
        known = self._number_by_key
        return [known[key] for key in keys if key in known]

    def show(self, key: Any) -> TaskState:
        shown = self.tasks.get(key)
        if shown is None:
            shown = self.tasks[key] = TaskState(key)
        return shown

    def look(self) -> None:
        """Read each task's state off the machine; let go of those that it does not know."""
        for key, shown in list(self.tasks.items()):
            state = self._state_of(key)
            if state is None and shown.exception is not None:
                state = "error"
            if state is None:
                del self.tasks[key]
                number = self._number_by_key.pop(key, None)
                if number is not None:
                    del self._key_by_number[number]
                self._threads.forget(key)
                for other in shown.dependencies:
                    other.dependents.discard(shown)
                continue
            self._enter(shown, state)

    def _enter(self, shown: TaskState, state: str) -> None:
        before, shown.state = shown.state, state
        shown.previous = before if state == "cancelled" and before != state else shown.previous
        shown.done = state in ("memory", "error")
        want = self._machine.state.wants.get(self.number(shown.key))
        shown.coming_from = want.peer.address if want is not None and want.peer else None
        shown.waiting_for_data = {
            each for each in shown.dependencies if state == "waiting" and each.state != "memory"
        }

    def _state_of(self, key: Any) -> str | None:
        """The old word for how a task stands; None: the machine does not know it."""
        machine, task, threads = self._machine.state, self.number(key), self._threads
        run = machine.runs.get(task)
        if key in threads.unwanted:
            return "cancelled"
        if run is not None and run.state == WAITING and run.wants:
            return "waiting"
        if run is not None and run.state == LONG_RUNNING:
            return "long-running"
        if run is not None:
            if threads.executing.get(key) is run:
                return "executing"
            return "constrained" if threads.demands[key] else "ready"
        if key in threads.executing or key in threads.long_running:
            return "cancelled"
        if task in machine.held:
            return "memory"
        want = machine.wants.get(task)
        if want is not None:
            if not want.in_flight:
                return "fetch"
            return "flight" if want.waiters or want.acquire else "cancelled"
        return None

    def _in(self, *states: str) -> set[TaskState]:
        return {shown for shown in self.tasks.values() if shown.state in states}

    @property
    def executing(self) -> set[TaskState]:
        """Tasks that have begun, and have a slot."""
        return {self.tasks[key] for key in self._threads.executing if key in self.tasks}

    @property
    def long_running(self) -> set[TaskState]:
        """Tasks that have begun, and gave their slot to others."""
        return {self.tasks[key] for key in self._threads.long_running if key in self.tasks}

    @property
    def all_running_tasks(self) -> set[TaskState]:
        """Tasks that have begun, and not ended, whether anybody waits for that or not."""
        return self.executing | self.long_running

    @property
    def executing_count(self) -> int:
        """How many slots are taken."""
        return len(self._threads.executing)

    @property
    def ready(self) -> list[TaskState]:
        """Tasks whose inputs are here, the most urgent first."""
        return [self.tasks[run.key] for run in self._threads.waiting if run.key in self.tasks]

    @property
    def constrained(self) -> list[TaskState]:
        """Those of them that demand amounts."""
        return [shown for shown in self.ready if shown.state == "constrained"]

    @property
    def waiting(self) -> set[TaskState]:
        """Tasks that wait for inputs."""
        return self._in("waiting")

    @property
    def in_flight_tasks(self) -> set[TaskState]:
        """Results that are on their way."""
        return {
            self.tasks[key]
            for fetch in self._fetches.values()
            for key in map(self._key_by_number.get, fetch.tasks)
            if key in self.tasks
        }

    @property
    def in_flight_tasks_count(self) -> int:
        """How many those are."""
        return len(self.in_flight_tasks)

    @property
    def in_flight_workers(self) -> dict[str, set[Any]]:
        """Peer -> keys that are on their way from it."""
        return {
            peer: {self._key_by_number[task] for task in fetch.tasks}
            for peer, fetch in self._fetches.items()
        }

    @property
    def data_needed(self) -> dict[str, list[TaskState]]:
        """Peer -> results that it is to be asked for."""
        return {
            address: [self.tasks[self._key_by_number[want.task]] for want in peer.queue]
            for address, peer in self._machine.state.peers.items()
        }

    @property
    def has_what(self) -> dict[str, set[Any]]:
        """Peer -> keys that it was said to hold, of those that are known here."""
        found: dict[str, set[Any]] = {}
        for key, shown in self.tasks.items():
            for holder in shown.who_has:
                found.setdefault(holder, set()).add(key)
        return found

    @property
    def fetch_count(self) -> int:
        """Results that are to be asked for."""
        return len(self._in("fetch"))

    @property
    def transfer_incoming_count(self) -> int:
        """Fetches under way."""
        return len(self._fetches)

    @property
    def transfer_incoming_bytes(self) -> int:
        """Bytes that they are expected to bring."""
        return sum([fetch.nbytes for fetch in self._fetches.values()])

    @property
    def transfer_incoming_count_limit(self) -> int:
        """Fetches at once."""
        return self._machine.state.settings.transfers_max

    @transfer_incoming_count_limit.setter
    def transfer_incoming_count_limit(self, limit: int) -> None:
        self._set(transfers_max=limit)

    @property
    def transfer_message_bytes_limit(self) -> float:
        """Bytes to ask of a peer at once."""
        return self._machine.state.settings.transfer_bytes_max

    @transfer_message_bytes_limit.setter
    def transfer_message_bytes_limit(self, limit: float) -> None:
        self._set(transfer_bytes_max=whole(limit))

    def _set(self, **changed: Any) -> None:
        state = self._machine.state
        state.settings = dataclasses.replace(state.settings, **changed)

    @property
    def total_resources(self) -> dict[str, float]:
        """What tasks may demand."""
        return self._threads.total

    @total_resources.setter
    def total_resources(self, amounts: Mapping[str, float]) -> None:
        self._threads.total = dict(amounts)

    @property
    def available_resources(self) -> dict[str, float]:
        """What of it is not in use."""
        return self._threads.available

    @available_resources.setter
    def available_resources(self, amounts: Mapping[str, float]) -> None:
        self._threads.available = dict(amounts)

    @property
    def transition_counter(self) -> int:
        """How much the machine has put down of what it did."""
        return len(self._machine.state.story)

    @property
    def nbytes(self) -> int:
        """Bytes of the results that are here."""
        return sum([replica.nbytes for replica in self._machine.state.held.values()])

    @property
    def log(self) -> list[tuple[Any, ...]]:
        """What the machine did: (key, what, number of the run or 0, monotonic time)."""
        return [(key, what, run, at) for at, key, what, run in self._machine.state.story]

    def story(self, *keys_or_tasks_or_stimuli: Any) -> list[tuple[Any, ...]]:
        """That of it which is about these keys."""
        keys = [getattr(each, "key", each) for each in keys_or_tasks_or_stimuli]
        return [record for record in self.log if record[0] in keys]

    def stimulus_story(self, *keys_or_tasks: Any) -> list[stimuli.StateMachineEvent]:
        """The stimuli that are about one of these keys, oldest first."""
        keys = [getattr(each, "key", each) for each in keys_or_tasks]
        return [event for event in self.stimulus_log if any(key in _keys_of(event) for key in keys)]

    def _to_dict(self, *, exclude: Any = ()) -> dict[str, Any]:
        """What JSON can say of it, without values."""
        told = {
            "tasks": self.tasks,
            "data": dict.fromkeys(self._key_by_number[task] for task in self._machine.state.held),
            "ready": [shown.key for shown in self.ready],
            "executing": sorted(map(str, self._threads.executing)),
            "long_running": sorted(map(str, self._threads.long_running)),
            "in_flight_workers": {
                p: sorted(map(str, k)) for p, k in self.in_flight_workers.items()
            },
            "has_what": {holder: sorted(map(str, keys)) for holder, keys in self.has_what.items()},
            "log": [list(record) for record in self.log],
            "stimulus_log": list(self.stimulus_log),
        }
        return {name: value for name, value in told.items() if name not in exclude}

    def validate_task(self, ts: TaskState) -> None:
        """Check one task; raises InvalidTaskState."""
        if self._state_of(ts.key) not in (ts.state, None):
            raise InvalidTaskState(ts.key, ts.state, self.story(ts.key))

    def validate_state(self) -> None:
        """Check everything; raises AssertionError with a sentence for what can't be."""
        broken = list(self._machine.broken_invariants())
        if broken:
            raise AssertionError("\n".join(broken))
        for shown in self.tasks.values():
            self.validate_task(shown)


def whole(limit: float) -> int:
    """A limit of bytes as a whole number, which no limit is as well."""
    return 1 << 62 if math.isinf(limit) else int(limit)


def _keys_of(event: stimuli.StateMachineEvent) -> Collection[Any]:
    """All keys that a stimulus names."""
    keys: list[Any] = []
    for name in ("keys", "who_has", "data"):
        keys += getattr(event, name, ())
    if hasattr(event, "key"):
        keys.append(event.key)
    return keys
