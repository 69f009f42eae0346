"""`WorkerState`: told what happened by the old names, it leaves what to do by the old names.

Between the two decides `shoal.worker.machine`, as in a worker.  Here keys get numbers, runs get
slots (which a worker's threads give them), and values are kept.  What the old machine showed
beside that is read off the new one after each stimulus.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Any, Final

from dask.sizeof import sizeof
from dask.utils import typename

from shoal.compat.pickling import dumps
from shoal.compat.worker_states import instructions as said
from shoal.compat.worker_states import stimuli
from shoal.compat.worker_states.errors import InvalidTransition, NotDecidedHere
from shoal.compat.worker_states.shown import Shown, whole
from shoal.compat.worker_states.threads import Threads
from shoal.ids import CodeId, Epoch, Key, RunId
from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import (
    AcquireReplicas,
    Failure,
    FreeReplicas,
    Input,
    InputsUnavailable,
    RecallRuns,
    ReplicasAdded,
    ReplicasGone,
    RunReturned,
    RunTask,
    TaskFailed,
    TaskFinished,
    WorkerWelcome,
)
from shoal.protocol.slots import LongRunning, RunRescheduled
from shoal.worker.machine.effects import (
    Drop,
    Effect,
    Fetch,
    HoldRuns,
    Send,
    StartRuns,
    WithdrawRuns,
)
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import (
    FAILED,
    FINISHED,
    RESCHEDULED,
    WITHDRAWN,
    MachineSettings,
    Run,
    RunEnded,
)

_ELSEWHERE: Final = {
    "GatherDepBusyEvent": "no peer says that it is busy; it answers when it can.",
    "RetryBusyWorkerEvent": "no peer says that it is busy; it answers when it can.",
    "RemoveWorkerEvent": "that a peer has gone shows when it is asked; other holders are tried.",
    "FindMissingEvent": "it is the scheduler that finds inputs which no holder gave.",
    "RefreshWhoHasEvent": "holders come with the run; if none gives an input the run goes back.",
}
"""Stimulus -> who decides that instead."""

Instructions = list[said.Instruction]


class WorkerState(Shown):
    """One worker's machine.  `handle_stimulus` is its only verb; all else is to be looked at."""

    __slots__ = (
        "_asked_back",
        "_events",
        "_sequence",
        "actors",
        "address",
        "busy_workers",
        "data",
        "executed_count",
        "missing_dep_flight",
        "nthreads",
        "plugins",
        "running",
        "threads",
        "transfer_incoming_bytes_limit",
        "transfer_incoming_count_total",
        "transition_counter_max",
        "validate",
    )

    def __init__(
        self,
        *,
        nthreads: int = 1,
        address: str | None = None,
        data: MutableMapping[Any, object] | None = None,
        threads: dict[Any, int] | None = None,
        plugins: dict[str, Any] | None = None,
        resources: Mapping[str, float] | None = None,
        transfer_incoming_count_limit: int = 9999,
        validate: bool = True,
        transition_counter_max: int | bool = False,
        transfer_incoming_bytes_limit: float = math.inf,
        transfer_message_bytes_limit: float = math.inf,
    ) -> None:
        """A worker that knows no task.

        Args:
            data: where values are kept.
            threads: key -> the thread that runs it, for messages.
            transfer_incoming_count_limit: fetches at once.
            validate: check every invariant after each stimulus.
            transition_counter_max: not needed, as every step ends.
            transfer_message_bytes_limit: bytes to ask of a peer at once.

        Raises:
            NotDecidedHere: plugins (a worker tells them), or a limit of all incoming bytes.
        """
        if plugins:
            raise NotDecidedHere("plugins", "plugins are told by the worker, after each step.")
        if transfer_incoming_bytes_limit != math.inf:
            raise NotDecidedHere(
                "transfer_incoming_bytes_limit", "what is limited is their number."
            )
        self.nthreads, self.address = nthreads, address or ""
        self.data: MutableMapping[Any, object] = {} if data is None else data
        self.threads = {} if threads is None else threads
        self.validate = validate
        self.running = True
        self.transition_counter_max = transition_counter_max
        self.transfer_incoming_bytes_limit = transfer_incoming_bytes_limit
        # What this machine never has: they are the worker's, or nobody's.
        self.actors: dict[Any, object] = {}
        self.plugins: dict[str, Any] = {}
        self.busy_workers: frozenset[str] = frozenset()
        self.missing_dep_flight: frozenset[Any] = frozenset()
        self.executed_count = self.transfer_incoming_count_total = 0
        settings = MachineSettings(
            address=self.address,
            nthreads=nthreads,
            transfers_max=transfer_incoming_count_limit,
            transfers_per_peer_max=1,
            transfer_bytes_max=whole(transfer_message_bytes_limit),
        )
        super().__init__(WorkerMachine(settings), Threads(nthreads, resources or {}))
        self._machine.receive([WorkerWelcome(Epoch(1), 1, 1.0)], time.monotonic())
        self._machine.take_effects()
        self._sequence = itertools.count(1)
        self._events: dict[Any, stimuli.StateMachineEvent] = {}  # how runs ended in this step
        self._asked_back: dict[Any, str] = {}  # steal requests of this step, and the state then

    # ---- the verb

    def handle_stimulus(self, *stims: stimuli.StateMachineEvent) -> Instructions:
        """What is to be done now that these have happened, in order.  Cost: O(tasks) for each.

        Raises:
            NotDecidedHere: the machine takes no such stimulus.
            InvalidTransition: a run ended, or seceded, that had not begun.
        """
        asked: Instructions = []
        for stimulus in stims:
            asked += self._handle(stimulus)
        return asked

    def _handle(self, stimulus: stimuli.StateMachineEvent) -> Instructions:
        name = type(stimulus).__name__
        if name in _ELSEWHERE:
            raise NotDecidedHere(name, _ELSEWHERE[name])
        handler: Callable[[Any], None] | None = getattr(self, f"_on_{name}", None)
        if handler is None:
            raise NotDecidedHere(name, "it is a kind of stimulus, and not one itself.")
        self.stimulus_log.append(stimulus.to_loggable(handled=time.time()))
        handler(stimulus)
        asked = self._perform(stimulus.stimulus_id)
        self._events.clear()
        self._asked_back.clear()
        self.look()
        if self.validate:
            self.validate_state()
        return asked

    # ---- stimuli

    def _on_ComputeTaskEvent(self, event: stimuli.ComputeTaskEvent) -> None:
        if event.actor:
            raise NotDecidedHere("actor", "actors are the worker's, beside its machine.")
        task = self.number(event.key)
        self._threads.unwanted.discard(event.key)
        self._threads.demands[event.key] = dict(event.resource_restrictions)
        self._threads.priorities[event.key] = tuple(event.priority)
        shown = self.show(event.key)
        shown.run_id, shown.run_spec, shown.exception = event.run_id, event.run_spec, None
        shown.priority, shown.resource_restrictions = event.priority, event.resource_restrictions
        shown.annotations, shown.span_id = event.annotations, event.span_id
        shown.dependencies = {self.show(key) for key in event.who_has}
        for dependency in shown.dependencies:
            dependency.dependents.add(shown)
        self._receive(
            RunTask(
                task,
                RunId(event.run_id),
                Key(event.key),
                CodeId(0),
                b"",
                0.0,
                next(self._sequence),
                list(self._inputs(event.who_has, event.nbytes)),
            )
        )

    def _on_AcquireReplicasEvent(self, event: stimuli.AcquireReplicasEvent) -> None:
        self._receive(AcquireReplicas(list(self._inputs(event.who_has, event.nbytes))))

    def _inputs(
        self, who_has: Mapping[Any, Collection[str]], nbytes: Mapping[Any, int]
    ) -> Iterable[Input]:
        for key, holders in who_has.items():
            shown = self.show(key)
            shown.who_has, shown.nbytes = set(holders), nbytes.get(key)
            yield Input(self.number(key), Key(key), nbytes.get(key, 0), _in_order(holders))

    def _on_RemoveReplicasEvent(self, event: stimuli.RemoveReplicasEvent) -> None:
        self._receive(FreeReplicas(self.numbers_of(event.keys)))

    def _on_FreeKeysEvent(self, event: stimuli.FreeKeysEvent) -> None:
        for key in event.keys:
            self._recall(key)
            self._threads.unwant(key)
            shown = self.tasks.get(key)
            if shown is not None:
                shown.exception = None
        self._receive(FreeReplicas(self.numbers_of(event.keys)))

    def _on_CancelComputeEvent(self, event: stimuli.CancelComputeEvent) -> None:
        self._recall(event.key)

    def _on_StealRequestEvent(self, event: stimuli.StealRequestEvent) -> None:
        shown = self.tasks.get(event.key)
        self._asked_back[event.key] = shown.state if shown is not None else ""
        self._recall(event.key)

    def _recall(self, key: Any) -> None:
        for task in self.numbers_of([key]):
            run = self._machine.state.runs.get(task)
            if run is not None:
                self._receive(RecallRuns([(run.task, run.number)]))

    def _on_UpdateDataEvent(self, event: stimuli.UpdateDataEvent) -> None:
        put = []
        for key, value in event.data.items():
            self.show(key)
            self.data[key] = value
            put.append((self.number(key), Key(key), int(sizeof(value))))
        self._machine.replicas_put(put, time.monotonic())

    def _on_GatherDepSuccessEvent(self, event: stimuli.GatherDepSuccessEvent) -> None:
        fetch = self._end_fetch(event)
        arrived = [(self.number(key), int(sizeof(value))) for key, value in event.data.items()]
        now = time.monotonic()
        for task in self._machine.replicas_arrived(fetch, arrived, [], now):
            key = self._key_by_number[task]
            self.data[key] = event.data[key]

    def _on_GatherDepNetworkFailureEvent(self, event: stimuli.GatherDepNetworkFailureEvent) -> None:
        self._machine.peer_unreachable(self._end_fetch(event), time.monotonic())

    def _on_GatherDepFailureEvent(self, event: stimuli.GatherDepFailureEvent) -> None:
        fetch = self._end_fetch(event)
        failure = Failure(b"", event.exception_text, event.traceback_text)
        for run in self._machine.state.runs.values():
            self._events.setdefault(run.key, event)
        failed = [(task, failure) for task in fetch.tasks]
        self._machine.replicas_arrived(fetch, [], failed, time.monotonic())

    def _end_fetch(self, event: stimuli.GatherDepDoneEvent) -> Fetch:
        fetch = self._fetches.pop(event.worker, None)
        if fetch is None:
            raise InvalidTransition(event.worker, "idle", "answered", [])
        return fetch

    def _on_ExecuteSuccessEvent(self, event: stimuli.ExecuteSuccessEvent) -> None:
        ended = RunEnded(self._end(event), FINISHED, event.nbytes, event.stop - event.start)
        self._machine.runs_ended([ended], time.monotonic())
        self.executed_count += 1
        if ended.kept:
            self.data[event.key] = event.value
            shown = self.show(event.key)
            shown.nbytes, shown.type = event.nbytes, event.type or type(event.value)

    def _on_ExecuteFailureEvent(self, event: stimuli.ExecuteFailureEvent) -> None:
        failure = Failure(b"", event.exception_text, event.traceback_text)
        ended = RunEnded(self._end(event), FAILED, failure=failure)
        self._machine.runs_ended([ended], time.monotonic())
        self.executed_count += 1

    def _on_RescheduleEvent(self, event: stimuli.RescheduleEvent) -> None:
        ended = RunEnded(self._end(event), RESCHEDULED)
        self._machine.runs_ended([ended], time.monotonic())

    def _end(self, event: stimuli.ExecuteDoneEvent) -> Run:
        run = self._threads.end(event.key)
        if run is None:
            shown = self.tasks.get(event.key)
            state = shown.state if shown is not None else "unknown"
            raise InvalidTransition(event.key, state, "memory", self.story(event.key))
        self._events[event.key] = event
        return run

    def _on_SecedeEvent(self, event: stimuli.SecedeEvent) -> None:
        run = self._threads.secede(event.key)
        if run is None:
            return  # it ended meanwhile
        self._machine.seceded(run, event.compute_duration, time.monotonic())

    def _on_PauseEvent(self, event: stimuli.PauseEvent) -> None:
        self.running = False
        self._machine.pause("it was told to", time.monotonic())

    def _on_UnpauseEvent(self, event: stimuli.UnpauseEvent) -> None:
        self.running = True
        self._machine.resume("it was told to", time.monotonic())

    # ---- from effects to instructions

    def _receive(self, message: object) -> None:
        self._machine.receive([message], time.monotonic())

    def _perform(self, stimulus_id: str) -> Instructions:
        """Do what the machine asks, as far as it is ours to do; the rest are instructions."""
        asked: Instructions = []
        messages: Instructions = []
        for effect in self._effects():
            if isinstance(effect, Send):
                for message in effect.messages:
                    messages += self._said(message, stimulus_id)
            elif isinstance(effect, Fetch):
                self._fetches[effect.peer] = effect
                self.transfer_incoming_count_total += 1
                keys = {self._key_by_number[task] for task in effect.tasks}
                asked.append(said.GatherDep(stimulus_id, effect.peer, keys, effect.nbytes))
            elif isinstance(effect, StartRuns):
                self._threads.take(effect.runs)
            elif isinstance(effect, Drop):
                for task in effect.tasks:
                    self.data.pop(self._key_by_number[task], None)
        for key, state in self._asked_back.items():
            messages.append(said.StealResponseMsg(stimulus_id, key, state or None))
        begun = [said.Execute(stimulus_id, run.key) for run in self._threads.begin()]
        return [*asked, *messages, *begun]

    def _effects(self) -> Iterable[Effect]:
        """All effects of the step, and of what taking runs back brings about."""
        while effects := self._machine.take_effects():
            for effect in effects:
                if isinstance(effect, WithdrawRuns):
                    taken = self._threads.withdraw(effect.runs)
                    ended = [RunEnded(run, WITHDRAWN) for run in taken]
                    self._machine.runs_ended(ended, time.monotonic())
                elif isinstance(effect, HoldRuns):
                    held = self._threads.withdraw(effect.runs)
                    self._machine.runs_held(held, time.monotonic())
                yield effect

    def _said(self, message: object, stimulus_id: str) -> Instructions:
        """What the machine says, in old messages."""
        if isinstance(message, TaskFinished):
            return [self._finished(message, stimulus_id)]
        if isinstance(message, TaskFailed):
            return [self._failed(message, stimulus_id)]
        if isinstance(message, RunRescheduled):
            return [said.RescheduleMsg(stimulus_id, self._key_by_number[message.task])]
        if isinstance(message, LongRunning):
            key = self._key_by_number[message.task]
            return [said.LongRunningMsg(stimulus_id, key, int(message.run), message.seconds)]
        if isinstance(message, ReplicasAdded):
            return [said.AddKeysMsg(stimulus_id, [self._key_by_number[t] for t in message.tasks])]
        if isinstance(message, ReplicasGone):
            keys = [self._key_by_number[task] for task in message.tasks]
            return [said.ReleaseWorkerDataMsg(stimulus_id, key) for key in keys]
        if isinstance(message, InputsUnavailable):
            keys = [self._key_by_number[task] for task in message.missing]
            key = self._key_by_number[message.task]
            return [
                said.RequestRefreshWhoHasMsg(stimulus_id, keys),
                said.RescheduleMsg(stimulus_id, key),
            ]
        assert isinstance(message, RunReturned | PauseChanged)
        return []  # who asked for it back is told by the answer to that

    def _finished(self, message: TaskFinished, stimulus_id: str) -> said.TaskFinishedMsg:
        key = self._key_by_number[message.task]
        event = self._events[key]
        assert isinstance(event, stimuli.ExecuteSuccessEvent)
        kind = event.type or type(event.value)
        startstops = [{"action": "compute", "start": event.start, "stop": event.stop}]
        return said.TaskFinishedMsg(
            stimulus_id=stimulus_id,
            key=key,
            run_id=event.run_id,
            nbytes=message.nbytes,
            type=dumps(kind),
            typename=typename(kind),
            metadata={},
            thread=self.threads.get(key),
            startstops=startstops,
        )

    def _failed(self, message: TaskFailed, stimulus_id: str) -> said.TaskErredMsg:
        key = self._key_by_number[message.task]
        event = self._events[key]
        assert isinstance(event, stimuli.ExecuteFailureEvent | stimuli.GatherDepFailureEvent)
        shown = self.show(key)
        shown.exception, shown.traceback = event.exception, event.traceback
        shown.exception_text, shown.traceback_text = event.exception_text, event.traceback_text
        return said.TaskErredMsg(
            stimulus_id=stimulus_id,
            key=key,
            run_id=int(message.run),
            exception=event.exception,
            traceback=event.traceback,
            exception_text=event.exception_text,
            traceback_text=event.traceback_text,
            thread=self.threads.get(key),
            startstops=[],
        )


def _in_order(holders: Collection[str]) -> list[str]:
    """As they were given, nearest first; a set says nothing of that."""
    return sorted(holders) if isinstance(holders, set | frozenset) else list(holders)
