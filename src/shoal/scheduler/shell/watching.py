"""What a step has done, told to the plugins that want to know: transitions, and new graphs.

There is a watcher only while some plugin has one of these hooks.  It notes what is heard before a
step, and each transition as it is recorded; afterwards it calls the hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from shoal.ids import ClientTaskId, Key
from shoal.observe.hooking import PluginTable
from shoal.protocol.keys import from_canonical
from shoal.protocol.membership import Closing, RestartWorkers, RetireWorkers
from shoal.protocol.messages import Message, SubmitTasks, TaskFinished, TaskOptions
from shoal.protocol.plain import load_plain
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.machine.story import Record
from shoal.scheduler.model.entities import ERRED, FORGOTTEN, MEMORY, Client, Task, Worker
from shoal.scheduler.model.shares import SEQUENCE_MASK


class Watcher:
    """Notes what a step does, and tells plugins of it once it is over."""

    def __init__(
        self, scheduler: Any, machine: SchedulerMachine, table: PluginTable, gone: dict[Key, Task]
    ) -> None:
        """Told of every transition from now on.

        Args:
            scheduler: what plugins are given.
            gone: is filled, while they look, with the tasks that the step has forgotten.
        """
        self._scheduler = scheduler
        self._machine = machine
        self._table = table
        self._gone = gone
        self._records: list[tuple[Record, Task | None]] = []
        self._finished: dict[Key, tuple[str, TaskFinished]] = {}
        self._submitted: list[tuple[Client, SubmitTasks]] = []
        self._arriving: dict[tuple[Client, ClientTaskId], Arriving] = {}
        self._restarting: list[Client] = []  # who has asked for it
        self._keeps_told = False
        self._is_telling = False
        self.look_again()

    def look_again(self) -> None:
        """Plugins have come or gone: have told what is wanted now, and nothing else."""
        self._machine.have_told(self._note if self._table.having("transition") else None)
        keeps_told = bool(self._table.having("log_event"))
        if keeps_told != self._keeps_told:  # else it would lose what it has kept
            self._keeps_told = keeps_told
            self._machine.keep_told(keeps_told)
        if not self._table.having("update_graph"):
            self._arriving.clear()

    def end(self) -> None:
        """Nobody wants to know any more."""
        self._machine.have_told(None)
        self._machine.keep_told(False)

    def _note(self, record: Record) -> None:
        self._records.append((record, self._machine.state.tasks.get(record[1])))

    def hear_worker(self, worker: Worker, messages: Sequence[Message]) -> None:
        """What a worker says, before the machine is told."""
        if not self._table.having("transition"):
            return
        task_by_id = self._machine.state.task_by_id
        for message in messages:
            if type(message) is TaskFinished:
                task = task_by_id.get(message.task)
                if task is not None and task.run == message.run and task.worker is worker:
                    self._finished[task.key] = worker.address, message

    def hear_client(self, client: Client, messages: Sequence[Message]) -> Sequence[Message]:
        """What a client says, before the machine is told; returns what that is told."""
        told: list[Message] = []
        for message in messages:
            if type(message) is SubmitTasks:
                self._submitted.append((client, message))
            elif type(message) is RestartWorkers and message.lets_go:
                self._restarting.append(client)
            elif type(message) is RetireWorkers and message.workers is None:
                told.append(self._without_kept(message))
                continue
            told.append(message)
        return told

    def _without_kept(self, message: RetireWorkers) -> RetireWorkers:
        """The same, without the workers that plugins don't let go."""
        views = list(self._scheduler.workers.values())
        valid = {view.address for view in self._scheduler.valid_workers_downscaling(views)}
        kept = [view.address for view in views if view.address not in valid]
        return replace(message, closing=replace(message.closing or Closing(), kept=kept))

    def unhear(self, speaker: Worker | Client) -> None:
        """What it has said was refused, and it is sent away: that is no event for anybody."""
        self._finished.clear()
        self._submitted = [said for said in self._submitted if said[0] is not speaker]
        self._restarting = [client for client in self._restarting if client is not speaker]

    def forget(self, client: Client) -> None:
        """A client has gone, and with it the graphs that it had not said to their end."""
        for place in [place for place in self._arriving if place[0] is client]:
            del self._arriving[place]

    def tell(self) -> None:
        """A step is over.  Steps that a hook brings about are told of after this one."""
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._records or self._submitted:
                self._tell_of_graphs()
                self._tell_of_transitions()
            self._tell_of_events()
            restarting, self._restarting = self._restarting, []
            for _ in restarting:
                self._table.call("restart", self._scheduler)
        finally:
            self._is_telling = False
            self._finished.clear()
            self._gone.clear()

    def _tell_of_graphs(self) -> None:
        """A graph in slices is looked at a slice at a time, and told of with the last."""
        submitted, self._submitted = self._submitted, []
        if not self._table.having("update_graph"):
            return
        tasks = self._machine.state.tasks
        for client, message in submitted:
            place = client, message.first if message.graph is None else message.graph
            arriving = self._arriving.setdefault(place, Arriving())
            arriving.add(message, tasks)
            if message.ntasks_ahead == 0:
                del self._arriving[place]
                stimulus = f"{SubmitTasks.__name__}-{self._machine.nsteps}"
                self._table.call(
                    "update_graph",
                    self._scheduler,
                    client=client.name,
                    keys=arriving.wanted,
                    tasks=list(arriving.keys),
                    annotations=arriving.annotations,
                    priority=arriving.priority,
                    stimulus_id=stimulus,
                )

    def _tell_of_transitions(self) -> None:
        records, self._records = self._records, []
        if not records:
            return
        calls = []
        for (_, key, start, finish, cause, step, _), task in records:
            known = self._known_of(key, task, finish)
            known["stimulus_id"] = f"{cause}-{step}"
            calls.append(((from_canonical(key), start, finish), known))
            if finish == FORGOTTEN and task is not None:
                self._gone[key] = task
        self._table.call_for_each("transition", calls)

    def _tell_of_events(self) -> None:
        """What was told under topics; values that are not plain are closed to us."""
        for topic, value in self._machine.take_told():
            self._table.call("log_event", topic, load_plain(value))

    def _known_of(self, key: Key, task: Task | None, finish: str) -> dict[str, Any]:
        """What is known of why a task has changed."""
        if finish == MEMORY and key in self._finished:
            worker, message = self._finished[key]
            return _result(worker, message)
        if finish == ERRED and task is not None and task.failure is not None:
            failure = task.failure
            return {
                "worker": failure.worker,
                "exception": failure.exception,
                "exception_text": failure.text,
                "traceback_text": failure.traceback_text,
            }
        return {}


def _result(worker: str, message: TaskFinished) -> dict[str, Any]:
    known: dict[str, Any] = {
        "worker": worker,
        "nbytes": message.nbytes,
        "startstops": [
            {
                "action": "compute",
                "start": message.started_at,
                "stop": message.started_at + message.seconds,
            }
        ],
        "metadata": {},
    }
    if message.kind:
        known["typename"] = message.kind
    return known


_SAID: Final[Mapping[str, Any]] = {
    "priority": 0.0,
    "retries": 0,
    "workers": [],
    "allow_other_workers": False,
    "resources": {},
}


class Arriving:
    """A graph as the hook is told of it, and as far as it has come."""

    __slots__ = ("annotations", "keys", "priority", "wanted")

    def __init__(self) -> None:
        self.wanted: set[Any] = set()
        self.keys: dict[Any, None] = {}
        self.annotations: dict[str, dict[Any, Any]] = {}
        self.priority: dict[Any, tuple[Any, ...]] = {}

    def add(self, message: SubmitTasks, tasks: Mapping[Key, Task]) -> None:
        """One more slice, of which the machine was told.  Cost: O(its tasks), 1 us each."""
        names = [from_canonical(key) for key in message.keys]
        self.keys.update(dict.fromkeys(names))
        if message.wanted is None:
            self.wanted.update(names)
        else:
            self.wanted.update([names[i] for i in message.wanted])
        options = [message.options or TaskOptions(), *message.other_options]
        said = [_said(each) for each in options]
        urgencies = [0 - each.priority for each in options]
        chosen = message.option_indices or [0] * len(names)
        for key, name, index in zip(message.keys, names, chosen, strict=True):
            task = tasks.get(key)
            place = task.priority & SEQUENCE_MASK if task is not None else 0
            self.priority[name] = (urgencies[index], place)
            for word, value in said[index]:
                self.annotations.setdefault(word, {})[name] = value


def _said(options: TaskOptions) -> list[tuple[str, Any]]:
    """What was said about the tasks that have these options."""
    values = [(name, getattr(options, name), unsaid) for name, unsaid in _SAID.items()]
    return [(name, value) for name, value, unsaid in values if value != unsaid]
