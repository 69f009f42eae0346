"""A client in the simulation: its real machine, and a script in place of a user and a session."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from shoal.client.machine import CANCELLED, ERROR, FINISHED, UNRESOLVED, ClientMachine, Record
from shoal.client.machine.invariants import check as check_client
from shoal.ids import ClientTaskId, Epoch, Key, TaskId
from shoal.protocol.actors import ActorsLost, ExplainActor
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import answered
from shoal.protocol.holding import TaskRetried
from shoal.protocol.limits import PlacesHeld, TasksStranded
from shoal.protocol.membership import AwaitWorkers
from shoal.protocol.memory import AllPaused
from shoal.protocol.messages import (
    ClientHeartbeat,
    ClientWelcome,
    Message,
    RegisterClient,
    Replicas,
    Shutdown,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
    TaskOptions,
)
from shoal.protocol.questions import WhoHas
from shoal.protocol.transfers import PlaceScatter
from shoal.sim.journals import Publishing
from shoal.sim.locking import Locking
from shoal.sim.members import Members
from shoal.sim.network import End
from shoal.sim.plan import Act, Ask, Cancel, Release, Scatter, Submit, Want
from shoal.sim.returning import Heritage
from shoal.sim.scattering import Make, ScatterCall
from shoal.sim.shuffling import definitions
from shoal.sim.slicing import Graph, in_order, prefix_of
from shoal.sim.specs import TaskSpec, Value, from_bytes, function_payload
from shoal.sim.stage import Stage
from shoal.sim.trading import Trading
from shoal.sim.wire import FROM_CLIENT

_OF_NO_MATTER = Replicas | Shutdown | ActorsLost | TasksStranded | PlacesHeld | AllPaused

Resolved = ClientWelcome | TaskInMemory | TaskErred | TaskLost | TaskRetried | TaskCancelled


class Call(NamedTuple):
    """A call that is not answered yet."""

    act: Act  # of the script, that made it
    answered: Callable[[int, Answer], None]


class ClientActor:
    """One connection's life of a client; a client that lost its scheduler starts a new one."""

    def __init__(
        self, stage: Stage, name: str, place: str, known_workers: list[str] | None = None
    ) -> None:
        """`name`: never used before; `place`: its name in the network.

        `known_workers`: addresses that one before it knew; None: there was none.
        """
        self.stage = stage
        self._specs: dict[Key, TaskSpec] = {}  # all that was submitted
        self.name = name
        self.place = place
        self.machine = ClientMachine(functions_max=2)  # one less than the script uses
        self.held: dict[Key, Record] = {}  # one future for each
        self.is_over = False
        self.unanswered: dict[int, Call] = {}  # by request
        self.locking = Locking(self.call, self.machine.say, self.after, self._lock_is_held)
        self.trading = Trading(
            name,
            self.call,
            self.machine.say,
            self.after,
            self._value_is_given,
            self._values_are_taken,
        )
        self.members = Members(self.call, self.machine)
        self.publishing = Publishing(name, self.call, self.machine, stage.disk)
        self._trades = stage.trades  # of the scheduler that will answer
        self._placing: dict[int, tuple[ScatterCall, ClientTaskId]] = {}  # by request
        self._scattering: list[ScatterCall] = []
        self._next_request = 1
        self._is_flush_planned = False
        self.end: End = stage.dial_scheduler(place)
        self.end.on_messages = self._receive
        self.end.on_closed = self._disconnected
        is_returning = known_workers is not None
        self.end.send([RegisterClient(name, returning=is_returning, workers=known_workers or [])])

    # --- the user ----------------------------------------------------------------------------

    def submit(self, act: Submit) -> None:
        """Submit tasks that the script names, dependencies first."""
        if self.is_over:
            return
        tasks = self._complete(in_order(act.tasks))
        self._specs.update((task.key, task) for task in tasks)
        if not tasks:
            return
        if act.wanted is None:
            for task in tasks:
                self._submit_one(task, act.options)
        else:
            self._submit_graph(tasks, act)
        self._flush_soon()

    def _complete(self, tasks: list[TaskSpec]) -> list[TaskSpec]:
        """Those of them whose inputs are all known here, if a key means one thing in this run."""
        if self.stage.definite is None:
            return tasks
        there = dict.fromkeys(self.held)
        found: list[TaskSpec] = []
        for task in tasks:
            if all(key in there for key in task.inputs):
                there[task.key] = None
                found.append(task)
        return found

    def heritage(self) -> Heritage:
        """What the user asks for again, now that the scheduler is lost."""
        wanted = [
            key for key, record in self.held.items() if record.status not in (ERROR, CANCELLED)
        ]
        return Heritage(dict(self._specs), wanted)

    def ask_again(self, heritage: Heritage) -> None:
        """The user submits what he still wants; what is known by key alone he names."""
        for key in heritage.named():
            self._hold(self.machine.want(key))
        tasks = heritage.tasks()
        if tasks:
            keys = [task.key for task in tasks]
            wanted = tuple(key for key in heritage.wanted if key in keys)
            self.submit(Submit(self.stage.world.now, 0, tuple(tasks), wanted))
        self._specs.update(heritage.specs)
        self.machine.say(ClientHeartbeat())  # that was all
        self._flush_soon()

    def _submit_one(self, task: TaskSpec, options: TaskOptions | None) -> None:
        needs = [self.held[key] for key in task.inputs if key in self.held]
        payload = function_payload(task.function)
        [record] = self.machine.submit(
            (payload, payload),
            prefix_of(task.key),
            [task.key],
            [task.label.encode()],
            [needs],
            options,
        )
        self._hold(record)

    def _submit_graph(self, tasks: list[TaskSpec], act: Submit) -> None:
        machine = self.machine
        assert act.wanted is not None
        first = machine.reserve(len(tasks))
        numbers = {task.key: ClientTaskId(first + i) for i, task in enumerate(tasks)}
        # Futures from elsewhere go on living while the graph refers to them.
        outside = {
            key: self.held[key]
            for task in tasks
            for key in task.inputs
            if key not in numbers and key in self.held
        }
        for record in outside.values():
            machine.hold(record)
        numbers.update({key: record.number for key, record in outside.items()})
        graph = Graph(
            first,
            numbers,
            frozenset(act.wanted),
            list(outside.values()),
            act.options,
            act.bundle_size,
        )
        for definition in definitions(tasks):
            machine.say(definition)
        size = -(-len(tasks) // act.nslices)
        self._say_slice(graph, [tasks[i : i + size] for i in range(0, len(tasks), size)])

    def _say_slice(self, graph: Graph, slices: list[list[TaskSpec]]) -> None:
        """Say the first of the slices, and the others a little later each."""
        if self.is_over:
            return
        tasks = slices[0]
        later = [task for part in slices[1:] for task in part]
        bundles, message = graph.cut(self.machine.new_code, tasks, later)
        wanted = [key for key in message.keys if key in graph.wanted]
        for record in self.machine.submit_slice(bundles, message, wanted):
            self._hold(record)
        if later:
            pause = self.stage.streams.of(f"slices {self.place}").random() * 0.005
            self.stage.world.after(pause, self._say_slice, graph, slices[1:])
        else:
            self.machine.release(graph.outside)
        self._flush_soon()

    def release(self, act: Release) -> None:
        """Drop the futures of these keys."""
        if not self.is_over:
            self.machine.release(self._let_go(act.keys))
            self._flush_soon()

    def cancel(self, act: Cancel) -> None:
        """Cancel these keys, and drop their futures."""
        if not self.is_over:
            records = self._let_go(act.keys)
            self.machine.cancel(records, force=act.force, reason="the script says so")
            self.machine.release(records)
            self._flush_soon()

    def want(self, act: Want) -> None:
        """Want a key by its name."""
        if not self.is_over:
            self._hold(self.machine.want(act.key))
            self._flush_soon()

    def scatter(self, act: Scatter) -> None:
        """Scatter values; the user has futures of them once they are there."""
        if self.is_over:
            return
        records, new = self.machine.want_scattered([spec.key for spec in act.values])
        for record in records:
            if record not in new:
                self._hold(record)
        if new:
            fresh = {record.key for record in new}
            specs = [spec for spec in act.values if spec.key in fresh]
            call = ScatterCall(self, self.stage.transfers, new, specs, act)
            self._scattering.append(call)
            call.start()
        self._flush_soon()

    def ask_place(self, call: ScatterCall, specs: Sequence[TaskSpec], make: Make) -> None:
        """Say the PlaceScatter that `make` makes of a request's number."""
        request = self._next_request
        self._next_request += 1
        message = make(request)
        self._placing[request] = (call, message.first)
        self.stage.oracle.placed[self.name, request] = tuple(specs)
        self.machine.say(message)
        self._flush_soon()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, if the client still is there then."""
        self.stage.world.after(seconds, self._if_there, action)

    def _if_there(self, action: Callable[[], None]) -> None:
        if not self.is_over:
            action()
            self._flush_soon()

    def call(
        self, act: Act, make: Callable[[int], Message], answered: Callable[[int, Answer], None]
    ) -> None:
        """Call the scheduler, for the sake of `act`; it must answer once, sooner or later.

        `make` is given the number of the request, and `answered` that and the answer.
        """
        if not self.is_over:
            request = self._next_request
            self._next_request += 1
            self.unanswered[request] = Call(act, answered)
            self.machine.say(make(request))
            self._flush_soon()

    def ask(self, act: Ask) -> None:
        """Ask the scheduler something that is of no consequence."""

        def question(request: int) -> Message:
            if act.what == "workers":
                return AwaitWorkers(request, len(self.stage.plan.workers))
            if act.what == "actor":
                return ExplainActor(request, next(iter(self.held), Key("none")))
            return WhoHas(request)

        self.call(act, question, lambda request, answer: None)

    def _lock_is_held(self, name: str) -> None:
        self.stage.lock_is_held(self.name, name)

    def _value_is_given(self, value: str) -> None:
        self._trades.given[value] = None

    def _values_are_taken(self, values: Sequence[str]) -> None:
        self.stage.values_are_taken(self.name, values)

    def release_all(self) -> None:
        """Drop every future."""
        if not self.is_over:
            self.machine.release(self._let_go(tuple(self.held)))
            self._flush_soon()

    def leave(self) -> None:
        """Close in good order."""
        if not self.is_over:
            self.flush()
            self.is_over = True
            self.end.close()

    def die(self) -> None:
        """The process is gone."""
        self.is_over = True
        self.end.drop()

    def _hold(self, record: Record) -> None:
        """Keep one future of the record; of two for one key, one goes again."""
        old = self.held.get(record.key)
        if old is not None:
            self.machine.release([old])
        self.held[record.key] = record

    def _let_go(self, keys: Sequence[Key]) -> list[Record]:
        return [self.held.pop(key) for key in keys if key in self.held]

    # --- the session -------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        """Say at the end of the tick what the machine has to say by then, in one batch."""
        if not self._is_flush_planned:
            self._is_flush_planned = True
            self.stage.world.after(0.0, self.flush)

    def flush(self) -> None:
        """Say what the machine has to say."""
        self._is_flush_planned = False
        if self.is_over:
            return
        self._look_at_resolved()
        outgoing = self.machine.take_outgoing()
        if outgoing:
            self.stage.say(self.end, outgoing, FROM_CLIENT)
        for sentence in check_client(self.machine):
            self.stage.fail("client machine", sentence)

    def _receive(self, batch: list[Message]) -> None:
        if self.is_over:
            return
        self.stage.hear(self.name, batch)
        for message in batch:
            if isinstance(message, Resolved):
                self.machine.receive([message])
                self._judge(message)
            elif isinstance(message, Answer):
                self._answered(message)
            elif isinstance(message, Refusal):
                self._refused(message)
            elif not isinstance(message, _OF_NO_MATTER):
                self.stage.fail("vocabulary", f"a client is told {message!r}")
        self.flush()

    def _disconnected(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.stage.trace.note(self.stage.world.now, self.name, "lost its scheduler")
        self.machine.connection_lost()
        self.stage.client_is_over(self.name)

    def _judge(self, message: Resolved) -> None:
        """Compare what the scheduler says with what the oracle knows."""
        if isinstance(message, TaskInMemory) and message.value is not None:
            self.stage.judge_value(self.name, message.task, from_bytes(message.value))
        elif isinstance(message, TaskErred):
            self.stage.judge_failure(self.name, message.task, message.failure)

    def _look_at_resolved(self) -> None:
        for call in list(self._scattering):
            good = call.ended()
            if good is None:
                continue
            self._scattering.remove(call)
            for record in call.records:
                if good:
                    self._hold(record)
                else:
                    self.machine.release([record])  # the call raises instead,
                    if self.held.get(record.key) is record:
                        del self.held[record.key]  # and the user gives up on the key
                        self.machine.release([record])
        for record in self.machine.take_resolved():
            if record.status == FINISHED and record.value is None and record.holders:
                self.stage.world.after(0.0001, self._gather, record)

    def _gather(self, record: Record) -> None:
        """Fetch a large result, once: it may have moved on, but it must not be another's."""
        if self.is_over or record.status != FINISHED or not record.holders:
            return

        def arrived(found: dict[TaskId, Value] | None) -> None:
            value = (found or {}).get(task)
            if value is not None:
                self.stage.judge_value(self.name, record.number, value)

        task = record.task
        epoch = self.machine.epoch or Epoch(0)
        self.stage.transfers.fetch(self.place, epoch, record.holders[0], [task], arrived)

    # --- calls -------------------------------------------------------------------------------

    def _answered(self, message: Answer) -> None:
        if message.request in self._placing:
            call, first = self._placing.pop(message.request)
            call.placed(first, answered(PlaceScatter, message))
            return
        asked = self.unanswered.pop(message.request, None)
        if asked is None:
            self.stage.fail("calls are answered", f"{self.name} hears of call {message.request}")
        else:
            asked.answered(message.request, message)

    def _refused(self, message: Refusal) -> None:
        if message.request in self._placing:
            call, _ = self._placing.pop(message.request)
            call.refused(message.failure)
        elif self.unanswered.pop(message.request, None) is None:
            self.stage.fail("calls are answered", f"{self.name} hears of call {message.request}")

    @property
    def unresolved(self) -> list[Record]:
        """Futures that are still waiting, and those of calls that are."""
        waiting = [record for record in self.held.values() if record.status in UNRESOLVED]
        return waiting + [record for call in self._scattering for record in call.records]
