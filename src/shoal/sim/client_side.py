"""A client in the simulation: its real machine, and a script in place of a user and a session."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.client.machine import ERROR, FINISHED, ClientMachine, Record
from shoal.client.machine import check as check_client
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.calls import Answer, Placement, PlaceScatter, Refusal, answered
from shoal.protocol.messages import (
    ClientWelcome,
    Message,
    RegisterClient,
    Replicas,
    Shutdown,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
    TaskOptions,
)
from shoal.sim.network import End
from shoal.sim.wire import FROM_CLIENT
from shoal.sim.oracle import scattered
from shoal.sim.plan import Cancel, Release, Scatter, Submit, Want
from shoal.sim.specs import TaskSpec, Value, bundle_payload, from_bytes, function_payload

if TYPE_CHECKING:
    from shoal.sim.cluster import Cluster

Resolved = ClientWelcome | TaskInMemory | TaskErred | TaskLost | TaskCancelled


class ClientActor:
    """One connection's life of a client; a client that lost its scheduler starts a new one."""

    def __init__(self, cluster: "Cluster", name: str, place: str) -> None:
        """`name`: never used before; `place`: its name in the network."""
        self.cluster = cluster
        self.name = name
        self.place = place
        self.machine = ClientMachine()
        self.held: dict[Key, Record] = {}  # one future for each
        self.is_over = False
        self._scatters: dict[int, tuple[Scatter, list[Record], list[TaskSpec]]] = {}
        self._next_request = 1
        self._nslices = 0  # slices of graphs still to be said
        self.end: End = cluster.dial_scheduler(place)
        self.end.on_messages = self._receive
        self.end.on_closed = self._disconnected
        self.end.send([RegisterClient(name)])

    # --- the user ----------------------------------------------------------------------------

    def submit(self, act: Submit) -> None:
        """Submit tasks that the script names, dependencies first."""
        if self.is_over:
            return
        tasks = _in_order([task for task in act.tasks])
        if act.wanted is None:
            for task in tasks:
                self._submit_one(task, act.options)
        else:
            self._submit_graph(tasks, act)
        self.flush()

    def _submit_one(self, task: TaskSpec, options: TaskOptions | None) -> None:
        needs = [self.held[key] for key in task.inputs if key in self.held]
        payload = function_payload(task.function)
        [record] = self.machine.submit(
            (payload, payload),
            _prefix(task.key),
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
        wanted = [key for key in act.wanted if key in numbers]
        records = machine.want_from_graph(wanted, [numbers[key] for key in wanted])
        # Futures from elsewhere go on living while the graph refers to them.
        outside = {
            key: self.held[key]
            for task in tasks
            for key in task.inputs
            if key not in numbers and key in self.held
        }
        for record in outside.values():
            machine.hold(record)
        for record in records:
            self._hold(record)
        numbers.update({key: record.number for key, record in outside.items()})
        size = -(-len(tasks) // act.nslices)
        slices = [tasks[i : i + size] for i in range(0, len(tasks), size)]
        self._nslices += len(slices)
        state = _GraphState(first, len(tasks), numbers, records, list(outside.values()), act)
        self._say_slice(state, slices)

    def _say_slice(self, state: "_GraphState", slices: list[list[TaskSpec]]) -> None:
        """Say the first of the slices, and the others a little later each."""
        if self.is_over:
            return
        tasks = slices[0]
        nahead = sum(map(len, slices[1:]))
        offset = state.ntasks - nahead - len(tasks)
        bundles, message = self._slice(state, tasks, ClientTaskId(state.first + offset), nahead)
        self.machine.submit_slice(bundles, message)
        self._nslices -= 1
        if nahead:
            pause = self.cluster.streams.of(f"slices {self.place}").random() * 0.005
            self.cluster.world.after(pause, self._say_slice, state, slices[1:])
        else:
            stop = ClientTaskId(state.first + state.ntasks)
            self.machine.complete_graph(state.first, stop, state.records)
            self.machine.release(state.outside)
        self.flush()

    def _slice(
        self, state: "_GraphState", tasks: list[TaskSpec], first: ClientTaskId, nahead: int
    ) -> tuple[list[tuple[CodeId, bytes]], SubmitTasks]:
        bundles: list[tuple[CodeId, bytes]] = []
        codes: list[CodeId] = []
        arguments: list[bytes | int] = []
        size = state.act.bundle_size
        for i in range(0, len(tasks), size):
            members = tasks[i : i + size]
            code = self.machine.new_code()
            bundles.append((code, bundle_payload([(task, task.inputs) for task in members])))
            codes += [code] * len(members)
            arguments += range(len(members))
        message = SubmitTasks(
            first=first,
            keys=[task.key for task in tasks],
            codes=codes,
            arguments=arguments,
            dependencies=[
                [state.numbers[key] for key in task.inputs if key in state.numbers]
                for task in tasks
            ],
            prefixes=[_prefix(task.key) for task in tasks],
            prefix_indices=list(range(len(tasks))),
            options=state.act.options,
            graph=state.first,
            ntasks_ahead=nahead,
        )
        return bundles, message

    def release(self, act: Release) -> None:
        """Drop the futures of these keys."""
        if not self.is_over:
            self.machine.release(self._let_go(act.keys))
            self.flush()

    def cancel(self, act: Cancel) -> None:
        """Cancel these keys, and drop their futures."""
        if not self.is_over:
            records = self._let_go(act.keys)
            self.machine.cancel(records, force=act.force, reason="the script says so")
            self.machine.release(records)
            self.flush()

    def want(self, act: Want) -> None:
        """Want a key by its name."""
        if not self.is_over:
            self._hold(self.machine.want(act.key))
            self.flush()

    def scatter(self, act: Scatter) -> None:
        """Ask where values shall go; they are put there once the answer comes."""
        if self.is_over:
            return
        records, new = self.machine.want_scattered([spec.key for spec in act.values])
        for record in records:
            self._hold(record)
        if new:
            request = self._next_request
            self._next_request += 1
            fresh = {record.key for record in new}
            specs = [spec for spec in act.values if spec.key in fresh]
            self._scatters[request] = (act, new, specs)
            self.cluster.oracle.placed[self.name, request] = tuple(specs)
            self.machine.say(
                PlaceScatter(
                    request,
                    new[0].number,
                    [spec.key for spec in specs],
                    [spec.nbytes for spec in specs],
                    list(act.workers),
                    act.ncopies,
                )
            )
        self.flush()

    def release_all(self) -> None:
        """Drop every future."""
        if not self.is_over:
            self.machine.release(self._let_go(tuple(self.held)))
            self.flush()

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

    def flush(self) -> None:
        """Say what the machine has to say."""
        outgoing = self.machine.take_outgoing()
        if outgoing:
            self.cluster.say(self.end, outgoing, FROM_CLIENT)
        self._look_at_resolved()
        for sentence in check_client(self.machine):
            self.cluster.fail("client machine", sentence)

    def _receive(self, batch: list[Message]) -> None:
        if self.is_over:
            return
        self.cluster.hear(self.name, batch)
        for message in batch:
            if isinstance(message, Resolved):
                self.machine.receive([message])
                self._judge(message)
            elif isinstance(message, Answer):
                self._placed(message)
            elif isinstance(message, Refusal):
                self._refused(message)
            elif not isinstance(message, Replicas | Shutdown):
                self.cluster.fail("vocabulary", f"a client is told {message!r}")
        self.flush()

    def _disconnected(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.cluster.trace.note(self.cluster.world.now, self.name, "lost its scheduler")
        self.machine.connection_lost()
        self.cluster.client_is_over(self)

    def _judge(self, message: Resolved) -> None:
        """Compare what the scheduler says with what the oracle knows."""
        if isinstance(message, TaskInMemory) and message.value is not None:
            self.cluster.judge_value(self.name, message.task, from_bytes(message.value))
        elif isinstance(message, TaskErred):
            self.cluster.judge_failure(self.name, message.task, message.failure)

    def _look_at_resolved(self) -> None:
        for record in self.machine.take_resolved():
            if record.status == FINISHED and record.value is None and record.holders:
                self.cluster.world.after(0.0001, self._gather, record)

    def _gather(self, record: Record) -> None:
        """Fetch a large result, once: it may have moved on, but it must not be another's."""
        if self.is_over or record.status != FINISHED or not record.holders:
            return

        def arrived(found: dict[int, Value] | None) -> None:
            value = (found or {}).get(task)
            if value is not None:
                self.cluster.judge_value(self.name, record.number, value)

        task = record.task
        self.cluster.transfers.fetch(self.place, record.holders[0], [task], arrived)

    # --- scatter -----------------------------------------------------------------------------

    def _placed(self, message: Answer) -> None:
        act, records, specs = self._scatters.pop(message.request)
        placements: list[Placement] = answered(PlaceScatter, message)
        for record, spec, placement in zip(records, specs, placements, strict=True):
            value = Value(scattered(spec), spec.nbytes)
            for address in placement.workers:
                self.cluster.transfers.put(
                    self.place, address, placement.task, record.key, value, lambda _: None
                )

    def _refused(self, message: Refusal) -> None:
        _, records, _ = self._scatters.pop(message.request)
        for record in records:
            self.machine.fail(record, message.failure)

    @property
    def unresolved(self) -> list[Record]:
        """Futures that are still waiting."""
        return [r for r in self.held.values() if r.status not in (FINISHED, ERROR, "cancelled")]


class _GraphState:
    """A graph that is being said in slices."""

    __slots__ = ("act", "first", "ntasks", "numbers", "outside", "records")

    def __init__(
        self,
        first: ClientTaskId,
        ntasks: int,
        numbers: dict[Key, ClientTaskId],
        records: list[Record],
        outside: list[Record],
        act: Submit,
    ) -> None:
        self.first = first
        self.ntasks = ntasks
        self.numbers = numbers
        self.records = records
        self.outside = outside
        self.act = act


def _in_order(tasks: list[TaskSpec]) -> list[TaskSpec]:
    """Dependencies before dependents, otherwise as given; of two for one key, the last counts."""
    by_key = {task.key: task for task in tasks}
    done: dict[Key, TaskSpec] = {}
    for task in by_key.values():
        stack = [task]
        while stack:
            top = stack[-1]
            missing = [
                by_key[key] for key in top.inputs if key in by_key and key not in done
            ]
            if missing:
                stack.append(missing[0])
            else:
                done[top.key] = stack.pop()
    return list(done.values())


def _prefix(key: Key) -> str:
    return key.partition("-")[0]
