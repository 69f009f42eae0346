"""The world in which policies are measured: its times are right, its rivals play by their rules."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from benchmarks.policies.cluster import FINISHED, Cluster, Event, Run, Stuck
from benchmarks.policies.contest import Entry, longest_step_ms, play
from benchmarks.policies.formulas import Formulas
from benchmarks.policies.graph import Draft, Graph, Shape
from benchmarks.policies.kinds import KINDS, make
from benchmarks.policies.listing import Lister, replay, upward_ranks
from benchmarks.policies.ours import Ours, slices
from benchmarks.policies.randomly import Randomly, Rule
from benchmarks.policies.stealing import Stealing

LATENCY = 0.001
SHAPE = Shape(nworkers=2, nthreads=1, latency_seconds=LATENCY, bytes_per_second=1e6)


class Exact(Random):
    """Durations as they are written."""

    def uniform(self, a: float, b: float) -> float:
        return 1.0


def pair(nbytes: int = 500_000) -> Graph:
    """Two tasks of a second, and a third of a second that needs both."""
    draft = Draft(Exact())
    layer = draft.layer("load")
    both = [draft.add(layer, 1.0, nbytes) for _ in range(2)]
    draft.add(draft.layer("add"), 1.0, 10, both)
    return draft.finish("pair")


class Fixed(Rule):
    """Each task where the test says."""

    def __init__(self, cluster: Cluster, places: list[int]) -> None:
        super().__init__(cluster)
        self.places = places

    def place(self, ready: list[int]) -> None:
        for task in ready:
            self.send(self.places[task], task)


def test_time_is_that_of_messages_work_and_transfers() -> None:
    """A second for the two, side by side; then half a second to move one of them; then the last."""
    cluster = Cluster(pair(), SHAPE)
    cluster.run(Fixed(cluster, [0, 1, 0]))
    messages = 3 * LATENCY  # an order, an answer, an order
    transfer = 2 * LATENCY + 0.5  # asked for, and sent
    assert cluster.done_at == pytest.approx(1.0 + messages + transfer + 1.0)
    assert cluster.bytes_moved == 500_000


def test_what_lies_on_one_worker_is_not_moved() -> None:
    cluster = Cluster(pair(), SHAPE)
    cluster.run(Fixed(cluster, [0, 0, 0]))
    assert cluster.done_at == pytest.approx(3.0 + 3 * LATENCY)
    assert cluster.bytes_moved == 0


def test_a_way_out_carries_one_value_at_a_time() -> None:
    """Nine workers fetch one result of a second from its only holder: the last waits for nine."""
    draft = Draft(Exact())
    root = draft.add(draft.layer("load"), 1.0, 1_000_000)
    layer = draft.layer("use")
    users = [draft.add(layer, 1.0, 10, [root]) for _ in range(9)]
    graph = draft.finish("wide")
    cluster = Cluster(graph, Shape(10, 1, LATENCY, 1e6))
    cluster.run(Fixed(cluster, [0, *range(1, len(users) + 1)]))
    assert cluster.done_at == pytest.approx(1.0 + 9 * 1.0 + 1.0, abs=0.01)


def test_a_play_in_which_nothing_happens_is_an_error() -> None:
    cluster = Cluster(pair(), SHAPE)
    with pytest.raises(Stuck, match="0 of 3 tasks"):
        cluster.run(Rule(cluster))


def test_a_storm_of_messages_is_given_up_and_counts_as_late() -> None:
    class Restless(Fixed):
        def wake(self) -> None:
            self.cluster.wake_at(self.cluster.now + 1e-6)

        def start(self) -> None:
            super().start()
            self.wake()

    cluster = Cluster(pair(), SHAPE)
    cluster.run(Restless(cluster, [0, 1, 0]), until=100.0)
    assert cluster.was_given_up
    assert cluster.done_at == 100.0


@pytest.mark.parametrize("name", KINDS)
def test_a_graph_names_inputs_first_and_is_the_same_each_time(name: str) -> None:
    shape = Shape(5)
    graph = make(name, shape, 8, seed=1)
    assert all(i < task for task, needs in enumerate(graph.inputs) for i in needs)
    assert 0.5 < len(graph) / (8 * shape.nslots) < 1.8
    again = make(name, shape, 8, seed=1)
    assert (again.seconds, again.inputs) == (graph.seconds, graph.inputs)
    assert make(name, shape, 8, seed=2).seconds != graph.seconds


def test_what_slices_refer_to_is_held_until_the_last_that_does() -> None:
    graph = make("tree", Shape(100), 25, seed=0)
    held: dict[int, None] = {}
    nslices = 0
    for message in slices(graph):
        first = int(message.first)
        here = range(first, first + len(message.keys))
        for needs in message.dependencies:
            assert all(i in held or i in here for i in needs)
        held.update((first + index, None) for index in message.held)
        for number in message.let_go:
            del held[number]
        nslices += 1
    assert nslices > 3
    assert not held


@pytest.mark.parametrize("kind", [Randomly, Stealing])
def test_rivals_end_every_graph(kind: type[Rule]) -> None:
    for name in KINDS:
        shape = Shape(4)
        graph = make(name, shape, 6, seed=0)
        cluster = Cluster(graph, shape)
        cluster.run(kind(cluster))
        assert cluster.ndone == len(graph)
        assert cluster.done_at > graph.critical_seconds()


def test_the_formulas_queue_roots_beyond_eleven_tenths_of_a_thread() -> None:
    """Three for each worker of two threads, however many there are; and all threads are busy."""
    outstanding: dict[int, int] = {0: 0, 1: 0}
    most = 0

    class Watched(Formulas):
        def assign(self, worker: int, task: int) -> None:
            nonlocal most
            outstanding[worker] += 1
            most = max(most, outstanding[worker])
            super().assign(worker, task)

        def receive(self, worker: int, events: list[Event]) -> None:
            outstanding[worker] -= sum(event[0] is FINISHED for event in events)
            super().receive(worker, events)

    shape = Shape(2)
    graph = make("merge", shape, 20, seed=0)
    cluster = Cluster(graph, shape)
    cluster.run(Watched(cluster))
    assert most == 3
    assert cluster.done_at < 1.1 * graph.work_seconds / shape.nslots


def test_the_formulas_steal_from_whoever_has_too_much() -> None:
    """Too few to be root-ish, all are sent to the holder of their input; others help later."""
    shape = Shape(4, 1)
    draft = Draft(Exact())
    root = draft.add(draft.layer("load"), 0.1, 1000)
    layer = draft.layer("use")
    for _ in range(8):
        draft.add(layer, 2.0, 10, [root])
    graph = draft.finish("crowd")
    alone = Cluster(graph, shape)
    alone.run(Formulas(alone))
    assert alone.done_at > 16.0
    helped = Cluster(graph, shape)
    helped.run(Stealing(helped))
    assert helped.done_at < 0.6 * alone.done_at


def test_a_plan_is_a_schedule_and_no_shorter_than_the_floor() -> None:
    for name in KINDS:
        shape = Shape(6)
        graph = make(name, shape, 10, seed=0)
        plan = Lister(graph, shape, upward_ranks(graph, shape, 1.0)).make()
        floor = max(graph.critical_seconds(), graph.work_seconds / shape.nslots)
        assert -1 not in plan.worker_of
        assert plan.makespan_seconds >= floor
        assert replay(graph, shape, plan) >= floor


def test_what_the_machine_is_told_is_what_the_model_did() -> None:
    """The scheduler's machine ends every graph, and has nothing placed or queued afterwards."""
    for name in KINDS:
        shape = Shape(4)
        graph = make(name, shape, 6, seed=0)
        cluster = Cluster(graph, shape, beat_seconds=5.0)
        ours = Ours(cluster)
        cluster.run(ours)
        assert cluster.ndone == len(graph)
        assert ours.spent_ns > 0


def test_on_few_workers_the_machine_is_near_the_bound_and_no_worse_than_the_formulas() -> None:
    names = ("merge", "tree", "stencil", "bag", "blockwise", "group-by", "transpose")
    results = [play(Entry(name, 10, 0, tasks_per_thread=30)) for name in names]
    assert median([one.to_bound for one in results]) <= 1.10
    assert max(one.to_formulas for one in results) <= 1.10
    assert max(one.to_random for one in results) <= 0.95
    assert all(one.floor_seconds <= one.bound_seconds <= one.ours.seconds for one in results)


def test_a_play_is_the_same_each_time() -> None:
    entry = Entry("random", 10, 3, tasks_per_thread=10)
    first, second = play(entry), play(entry)
    assert (first.ours, first.formulas, first.random) == (
        second.ours,
        second.formulas,
        second.random,
    )
    assert first.plan_seconds == second.plan_seconds


def test_a_run_that_is_recalled_in_time_comes_back_and_one_that_began_does_not() -> None:
    graph = make("merge", Shape(1, 1), 5, seed=0)
    cluster = Cluster(graph, Shape(1, 1))
    said: list[object] = []

    class Recalling(Fixed):
        def start(self) -> None:
            super().start()
            self.cluster.tell(0, [("recall", 0, 0), ("recall", 1, 0)])

        def on_other(self, worker: int, event: Event) -> None:
            said.append(event[0])
            if isinstance(event[1], Run):
                self.send(worker, event[1].task, 1)

    cluster.run(Recalling(cluster, [0] * len(graph)))
    assert said == ["refused", "returned"]


def test_the_longest_step_is_no_longer_than_in_one_play() -> None:
    """Of each step the shorter time counts, so two plays must have the same steps."""
    entry = Entry("tree", 4, 0, tasks_per_thread=10)
    shape = Shape(4)
    cluster = Cluster(make("tree", shape, 10, seed=0), shape, beat_seconds=5.0)
    ours = Ours(cluster)
    ours.steps_ns = []
    cluster.run(ours)
    assert len(ours.steps_ns) == ours.nsteps
    assert max(ours.steps_ns) == ours.longest_ns
    assert 0.0 < longest_step_ms(entry) < 10 * ours.longest_ns / 1e6
