"""Whatever a client has done, a scheduler that knows nothing learns all that it lives on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.client.machine import CANCELLED, ERROR, UNRESOLVED, ClientMachine
from shoal.client.machine.invariants import check as check_client
from shoal.client.machine.lineage import Lineage
from shoal.ids import ClientTaskId, Epoch, Key, TaskId
from shoal.protocol.messages import (
    Failure,
    RegisterClient,
    SubmitTasks,
    TaskErred,
    TaskInMemory,
)
from shoal.scheduler.machine.invariants import check as check_scheduler
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.settings import SchedulerSettings

DEEDS = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.just("graph"), st.integers(0, 30), st.integers(0, 7)),
    st.tuples(st.sampled_from(["release", "cancel", "retry"]), st.integers(0, 30), st.just(0)),
    st.tuples(st.sampled_from(["finish", "far", "err"]), st.integers(0, 30), st.just(0)),
    st.tuples(st.sampled_from(["slice", "flush", "sweep"]), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["lose", "find"]), st.just(0), st.just(0)),
)


class World:
    """One client, and one scheduler after the other; there are no workers."""

    def __init__(self) -> None:
        self.client = ClientMachine(functions_max=2)
        self.client.may_return(list)
        self.futures = []  # records, each as often as it is held
        self.needs: dict[Key, list[Key]] = {}  # what a task of this key depends on
        self.open = []  # the graph that is being said: what is left of it
        self.epoch = 0
        self.now = 0.0
        self._connect()

    def _connect(self) -> None:
        self.epoch += 1
        self.scheduler = SchedulerMachine(SchedulerSettings(), Epoch(self.epoch))
        introduction = RegisterClient("c")
        self.entity = self.scheduler.client_joined(introduction, self.now)
        self._hear()

    def _hear(self) -> None:
        while self.scheduler.is_forgetting:
            self.scheduler.wake(self.now)
        while said := [m for _, messages in self.scheduler.take_outgoing() for m in messages]:
            self.client.receive(said)
        assert list(check_scheduler(self.scheduler.state)) == []
        assert list(check_client(self.client)) == []
        self.client.take_resolved()

    # --- what happens ------------------------------------------------------------------------

    def submit(self, a: int, b: int) -> None:
        needs = list(dict.fromkeys(self._pick(n) for n in (a, b) if n < 25 and self.futures))
        if any(need.status == CANCELLED for need in needs):
            return
        key = self._named([need.key for need in needs], a)
        function = b"fgh"[a % 3 : a % 3 + 1]
        self.futures += self.client.submit((function, function), "f", [key], [b""], [needs])

    def graph(self, a: int, kind: int) -> None:
        """Three tasks in two slices: two, which the first future may go into, and one of both."""
        if self.open:
            return
        outside = [self._pick(a)] if self.futures and kind & 4 else []
        if any(need.status == CANCELLED for need in outside):
            return
        first = self.client.reserve(3)
        keys = [self._named([need.key for need in outside], f"{first}-{i}") for i in range(2)]
        last = self._named(keys, first)
        numbers = [need.number for need in outside]
        begun = self._slice(first, keys, [numbers] * 2, first, 1, wanted=kind & 1, held=[0, 1])
        ended = self._slice(first + 2, [last], [[first, first + 1]], first, 0, wanted=1)
        ended = {**ended, "let_go": [ClientTaskId(first), ClientTaskId(first + 1)]}
        self.open = [begun, ended]
        for need in outside:  # for as long as slices may refer to it
            self.client.hold(need)
        self.futures += outside
        self.slice()

    def slice(self) -> None:
        """Say the next part of a graph."""
        if self.open:
            code = self.client.new_code()
            message = SubmitTasks(codes=[code], **self.open.pop(0))
            wanted = [message.keys[i] for i in message.wanted]
            self.futures += self.client.submit_slice([(code, b"bundle")], message, wanted)

    def _slice(self, first, keys, needs, graph, ahead, *, wanted, held=()):
        return {
            "first": ClientTaskId(first),
            "keys": keys,
            "arguments": list(range(len(keys))),
            "dependencies": needs,
            "prefixes": ["g"],
            "prefix_indices": [],
            "wanted": [0] if wanted else [],
            "held": list(held),
            "graph": graph,
            "ntasks_ahead": ahead,
        }

    def act(self, what: str, about: int) -> None:
        """One of the other deeds."""
        client = self.client
        if what == "flush":
            self.flush()
        elif what == "slice":
            self.slice()
        elif what == "sweep" and not client.is_away:
            self.flush()
            client.lineage.sweep(client.by_number, [code for code, _ in client.functions.values()])
        elif what == "lose" and not client.is_away:
            client.scheduler_lost()
        elif what == "find" and client.is_away:
            self._connect()
            self.flush()
            self.learnt()
        elif self.futures and what in ("release", "cancel", "retry"):
            record = self.futures[about % len(self.futures)]
            if what == "release":
                self.futures.remove(record)
            getattr(client, what)([record])
        elif client.by_number and not client.is_away:
            number = list(client.by_number)[about % len(client.by_number)]
            if what == "err":
                client.receive([TaskErred(number, Failure(b"", "no"))])
            else:
                value = b"v" if what == "finish" else None
                client.receive([TaskInMemory(number, TaskId(number), 1, value, ["w"])])
            client.take_resolved()

    def flush(self) -> None:
        if not self.client.is_away:
            self.scheduler.receive_from_client(self.entity, self.client.take_outgoing(), self.now)
            self._hear()

    def _pick(self, n: int):
        return self.futures[n % len(self.futures)]

    def _named(self, needs: list[Key], what: object) -> Key:
        """The name tells what it depends on, as names of pure calls do."""
        key = Key(f"{what}({' '.join(needs)})")
        self.needs[key] = list(needs)
        return key

    # --- what must be true -------------------------------------------------------------------

    def learnt(self) -> None:
        """The scheduler knows all that is wanted, and what that depends on."""
        state, known = self.scheduler.state, self.entity.tasks
        assert not state.incomplete
        tasks = []
        for number, record in self.client.by_number.items():
            if record.status != ERROR:
                assert known[number].key == record.key
                tasks.append(known[number])
            else:
                assert number not in known
        seen = {}
        while tasks:
            task = tasks.pop()
            if task not in seen:
                seen[task] = None
                assert [need.key for need in task.dependencies] == self.needs[task.key]
                tasks += task.dependencies
        if not self.open:
            assert not self.entity.held
            assert len(state.tasks) == len(seen), "it was told more than it has to know"

    def end(self) -> None:
        """The user lets go of everything."""
        self.act("find", 0)
        while self.open:
            self.slice()
        self.client.release(self.futures)
        self.flush()
        assert not self.client.by_number
        assert not self.scheduler.state.tasks
        assert not self.entity.held


@settings(max_examples=400, deadline=None)
@given(st.lists(DEEDS, max_size=60))
def test_it_learns_what_is_wanted_and_what_that_depends_on_and_no_more(deeds):
    world = World()
    for what, a, b in deeds:
        if what in ("submit", "graph"):
            getattr(world, what)(a, b)
        else:
            world.act(what, a)
    world.end()
    lineage: Lineage = world.client.lineage
    lineage.sweep({}, [])
    assert not list(lineage.covers())
    assert lineage.nbytes == 0


def test_a_graph_of_which_only_the_beginning_is_wanted_still_has_been_all_said():
    """Its last slice is let go of; another scheduler would keep the first for ever."""
    world = World()
    world.graph(0, 1)
    world.slice()
    world.act("release", 1)
    world.act("sweep", 0)
    world.act("lose", 0)
    world.act("find", 0)
    assert [task.key for task in world.entity.tasks.values()] == [world.futures[0].key]
    world.end()
    world.client.lineage.sweep({}, [])
    assert not list(world.client.lineage.covers())


def test_a_record_that_is_pending_is_known_to_the_scheduler_that_is_found():
    """A story out of the many above."""
    world = World()
    world.submit(1, 30)
    world.submit(0, 0)
    world.act("release", 0)
    world.act("lose", 0)
    world.submit(0, 30)
    world.act("find", 0)
    assert len(world.entity.tasks) == 2
    assert all(record.status in UNRESOLVED for record in world.futures)
    world.end()
