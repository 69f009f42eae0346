"""Graphs on their way out: culled, ordered, cut into slices that can stand alone."""

import itertools
import pickle
import random
from operator import add, neg

import pytest
from dask._task_spec import Alias, DataNode, Dict, List, Task, TaskRef, Tuple, convert_legacy_task

from shoal.client.bundles import BundleWriter
from shoal.client.conversion import to_node
from shoal.client.errors import CyclicGraph, MissingKey, UnpicklableTask
from shoal.client.finding import HEAD_TASKS, Tasks
from shoal.client.graphs import BUNDLE_BYTES_MAX, SLICE_TASKS_MAX, Graph
from shoal.protocol.messages import TaskOptions
from shoal.worker.shell.evaluation import evaluate_item


def slices_of(tasks, wanted, live=None):
    live = live or {}
    codes = itertools.count(1)
    return list(Graph(Tasks(tasks), wanted, live.get).slices(1000, lambda: next(codes)))


def run(tasks, wanted, values=None, **known):
    """The wanted results, and the order of the tasks."""
    numbers = {key: n for key, (n, _) in (values or {}).items()}
    graph = Graph(Tasks(tasks, **known), wanted, numbers.get)
    return run_slices(graph, dict((values or {}).values()))[:2]


def run_slices(graph, here=()):
    """Play scheduler: compute what the slices say, and drop what they let go of.

    A task may use what is in its own slice, what is held, and what was there before.

    Returns:
        The wanted results, the order of the tasks, and the options of each.
    """
    here = dict(here)
    codes = itertools.count(1)
    results, order, said = {}, [], {}
    for slice_ in graph.slices(1000, lambda: next(codes)):
        message = slice_.message
        bundles = {code: pickle.loads(payload) for code, payload in slice_.bundles}
        choices = [message.options or TaskOptions(), *message.other_options]
        for i, key in enumerate(message.keys):
            node, names = bundles[message.codes[i]][message.arguments[i]]
            numbers = message.dependencies[i] if message.dependencies else []
            assert all(number < message.first + i for number in numbers)
            inputs = {name: here[n] for name, n in zip(names, numbers, strict=True)}
            here[message.first + i] = evaluate_item(node, inputs)
            order.append(key)
            said[key] = choices[message.option_indices[i] if message.option_indices else 0]
        for place, key in zip(message.wanted, slice_.wanted_keys, strict=True):
            results[key] = here[message.first + place]
        kept = {message.first + place for place in message.held}
        here = {
            n: value
            for n, value in here.items()
            if (n < message.first or n in kept) and n not in message.let_go
        }
    return results, order, said


def chain(n):
    return {"x0": 1} | {f"x{i}": (neg, f"x{i - 1}") for i in range(1, n)}


def test_inputs_come_before_what_needs_them_and_the_rest_is_left_out():
    tasks = {"a": 1, "b": (neg, "a"), "c": (add, "a", "b"), "unused": (neg, "c")}
    results, order = run(tasks, ["c", "a"])
    assert results == {"c": 0, "a": 1}
    assert order == ["a", "b", "c"]


def test_a_chain_of_a_hundred_thousand_is_no_problem():
    n = 100_000
    numbers = [len(slice_.message.keys) for slice_ in slices_of(chain(n), [f"x{n - 1}"])]
    assert sum(numbers) == n
    assert max(numbers) <= SLICE_TASKS_MAX


@pytest.mark.parametrize("n", [3, 5000])
def test_a_cycle_is_named(n):
    tasks = {i: (neg, (i + 1) % n) for i in range(n)}
    with pytest.raises(CyclicGraph, match="cycle") as caught:
        slices_of(tasks, [0])
    cycle = caught.value.cycle
    assert sorted(cycle) == list(range(n))
    assert all((a + 1) % n == b for a, b in itertools.pairwise(cycle))


def test_a_task_that_needs_itself_is_a_cycle():
    with pytest.raises(CyclicGraph, match="a -> a"):
        slices_of({"a": (neg, "a")}, ["a"])


def test_what_nobody_defines_is_missed_by_name():
    with pytest.raises(MissingKey, match="asked for"):
        slices_of({"a": 1}, ["b"])
    with pytest.raises(MissingKey, match="Task 'b' needs it"):
        slices_of({"b": Task("b", neg, TaskRef("nowhere"))}, ["b"])


def test_live_keys_are_neither_sent_nor_looked_into():
    tasks = {"a": (neg, "nowhere"), "b": (neg, "a"), "c": (add, "a", "b")}
    results, order = run(tasks, ["c"], {"a": (5, 10)})
    assert results == {"c": 0}
    assert order == ["b", "c"]


def test_the_deepest_input_comes_first():
    tasks = {"leaf": 1, "d1": 1, "d2": (neg, "d1"), "d3": (neg, "d2"), "z": (add, "leaf", "d3")}
    _, order = run(tasks, ["z"])
    assert order == ["d1", "d2", "d3", "leaf", "z"]


def test_a_chain_is_one_task_with_the_key_of_the_last():
    results, order = run(chain(5), ["x4"], fusible=chain(5))
    assert results == {"x4": 1}
    assert order == ["x4"]


def test_what_is_wanted_or_needed_twice_is_not_fused_away():
    tasks = chain(5) | {"y": (add, "x1", "x4")}
    results, order = run(tasks, ["y", "x3"], fusible=tasks)
    assert results == {"y": 0, "x3": -1}
    assert order == ["x1", "x3", "x4", "y"]


def test_a_chain_may_begin_with_a_task_of_many_inputs():
    tasks = {"a": 1, "b": 2, "c": (add, "a", "b"), "d": (neg, "c"), "e": (add, "d", "a")}
    results, order = run(tasks, ["e"], fusible=tasks)
    assert results == {"e": -2}
    assert sorted(order) == ["a", "b", "d", "e"]


def test_a_chain_may_begin_with_what_is_there_already():
    tasks = {"b": Task("b", neg, TaskRef("a")), "c": (neg, "b")}
    results, order = run(tasks, ["c"], {"a": (5, 10)}, fusible=tasks)
    assert results == {"c": 10}
    assert order == ["c"]


def test_only_what_may_be_fused_is():
    results, order = run(chain(5), ["x4"], fusible={"x2": None, "x3": None})
    assert results == {"x4": 1}
    assert order == ["x0", "x1", "x3", "x4"]


def test_tasks_with_different_options_stay_apart():
    tasks = chain(6)
    options = {"x2": TaskOptions(retries=1)} | dict.fromkeys(["x3", "x4"], TaskOptions(retries=2))
    graph = Graph(Tasks(tasks, tasks, (), options), ["x5"], lambda key: None)
    results, order, said = run_slices(graph)
    assert results == {"x5": -1}
    assert order == ["x1", "x2", "x4", "x5"]
    assert [said[key].retries for key in order] == [0, 1, 2, 0]


def test_a_large_graph_of_chains_gives_its_values():
    tasks = {f"{name}{i}": (neg, f"{before}{i}") for i in range(3000)
             for before, name in ("ab", "bc", "cd")}  # fmt: skip
    tasks |= {f"a{i}": i for i in range(3000)}
    tasks["sum"] = (sum, [f"d{i}" for i in range(3000)])
    results, order = run(tasks, ["sum"], fusible=tasks)
    assert results == {"sum": -sum(range(3000))}
    assert len(order) < 4000  # all but the head's are fused


def test_a_wide_graph_keeps_the_order_of_its_leaves():
    tasks = {f"x{i}": i for i in range(100)}
    tasks["sum"] = (sum, list(tasks))
    _, order = run(tasks, ["sum"])
    assert order == [f"x{i}" for i in range(100)] + ["sum"]


@pytest.mark.parametrize("seed", range(5))
def test_any_graph_gives_the_values_that_plain_python_gives(seed):
    choose = random.Random(seed)
    n = 9000
    tasks = {"x0": 1}
    expected = {"x0": 1}
    for i in range(1, n):
        needs = choose.sample(range(max(0, i - 3000), i), min(i, choose.randint(0, 3)))
        names = [f"x{j}" for j in needs]
        tasks[f"x{i}"] = (sum, names) if names else i % 7
        expected[f"x{i}"] = sum(expected[name] for name in names) if names else i % 7
    wanted = choose.sample(list(tasks), 50)
    results, order = run(tasks, wanted)
    assert results == {key: expected[key] for key in wanted}
    assert len(order) == len(set(order))


def test_the_head_of_a_large_graph_leaves_before_the_rest_is_looked_at():
    looked_at = []
    tasks = {f"x{i}": (neg, f"leaf-{i}") for i in range(50_000)}
    tasks |= {f"leaf-{i}": i for i in range(50_000)}
    tasks["sum"] = (len, [f"x{i}" for i in range(50_000)])
    codes = itertools.count()
    graph = Graph(Tasks(tasks), ["sum"], looked_at.append)
    first = next(graph.slices(1, lambda: next(codes)))
    assert HEAD_TASKS <= len(first.message.keys) < 2 * HEAD_TASKS
    assert len(set(looked_at)) < 60_000
    assert first.message.ntasks_ahead > 0


def test_a_graph_given_up_half_way_lets_go_of_what_it_held():
    tasks = {f"x{i}": i for i in range(9000)}
    tasks["sum"] = (sum, list(tasks))
    codes = itertools.count(1)
    graph = Graph(Tasks(tasks), ["sum"], lambda key: None)
    slices = graph.slices(1, lambda: next(codes))
    sent = [next(slices), next(slices)]
    held = {s.message.first + place for s in sent for place in s.message.held}
    let_go = {number for s in sent for number in s.message.let_go}
    end = graph.abandon(1)
    assert set(end.let_go) == held - let_go
    assert end.ntasks_ahead == 0
    assert graph.abandon(1) is None


def test_a_graph_sent_whole_holds_nothing_and_needs_no_end():
    tasks = {f"x{i}": i for i in range(9000)}
    tasks["sum"] = (sum, list(tasks))
    codes = itertools.count(1)
    graph = Graph(Tasks(tasks), ["sum"], lambda key: None)
    sent = list(graph.slices(1, lambda: next(codes)))
    held = {s.message.first + place for s in sent for place in s.message.held}
    assert held == {number for s in sent for number in s.message.let_go}
    assert graph.abandon(1) is None


def test_large_constants_make_small_bundles():
    tasks = {i: (len, b"x" * 30_000 + bytes([i])) for i in range(40)}
    [slice_] = slices_of(tasks, list(tasks))
    assert all(len(payload) <= BUNDLE_BYTES_MAX for _, payload in slice_.bundles)
    assert sum(len(pickle.loads(payload)) for _, payload in slice_.bundles) == 40


@pytest.mark.parametrize("ntasks", [40, 5000])
def test_a_large_constant_that_tasks_share_travels_once(ntasks):
    large = b"x" * 1_000_000
    tasks = {f"x{i}": (add, large, bytes([i % 256])) for i in range(ntasks - 1)}
    tasks["new"] = Task("new", add, large, b"y")
    tasks["sum"] = (lambda *parts: sum(len(part) for part in parts), *tasks)
    assert sum(slice_.nbytes for slice_ in slices_of(tasks, ["sum"])) < 1_000_000 + 300 * ntasks
    results, order = run(tasks, ["sum"])
    assert results == {"sum": 1_000_001 * ntasks}
    assert len(order) == ntasks + 2


def test_few_tasks_may_share_many_large_constants():
    """More than there are tasks: each takes a number, and none that is not the graph's."""
    large = [bytes([i]) * 100_000 for i in range(20)]
    tasks = {name: Task(name, lambda *parts: len(parts), *large) for name in ("x", "y")}
    graph = Graph(Tasks(tasks), ["x", "y"], lambda key: None)
    results, order = run_slices(graph)[:2]
    assert results == {"x": 20, "y": 20}
    assert len(order) == graph.ntasks == 22
    assert graph.ntasks <= graph.ntasks_max


def test_a_large_constant_of_one_task_stays_with_it():
    results, order = run({"x": (len, [0] * 100_000), "y": (neg, "x")}, ["y"])
    assert results == {"y": -100_000}
    assert order == ["x", "y"]


def test_one_task_larger_than_a_bundle_travels_alone():
    tasks = {"big": (len, b"x" * 300_000), "small": 1}
    results, _ = run(tasks, ["big", "small"])
    assert results == {"big": 300_000, "small": 1}


def test_prefixes_are_names_without_their_ends():
    tasks = {("x-123abc", 0): 1, ("x-123abc", 1): 2, "load-data-7": 3, "plain": 4}
    [slice_] = slices_of(tasks, list(tasks))
    message = slice_.message
    found = [message.prefixes[i] for i in message.prefix_indices]
    assert found == ["x", "x", "load-data", "plain"]


def test_functions_of_main_travel_by_value():
    def local(x):
        return x + 1

    local.__module__ = "__main__"
    results, _ = run({"a": (local, 1), "b": (local, "a")}, ["b"])
    assert results == {"b": 3}


def test_what_exists_only_in_the_program_is_read_once_for_all_bundles():
    def local(x):
        return x + 1

    tasks = {f"x{i}": (local, i) for i in range(200)}
    slices = slices_of(tasks, list(tasks))
    items = [item for s in slices for _, payload in s.bundles for item in pickle.loads(payload)]
    assert len({id(node.func) for node, _ in items}) == 1
    assert items[0][0].func is not local


def test_classes_of_main_travel_by_value():
    class Local:
        def __init__(self, x):
            self.x = x

        def get(self):
            return self.x

    Local.__module__ = "__main__"
    results, _ = run({"a": (Local, 1), "b": (Local.get, "a"), "c": (Local(2).get,)}, ["b", "c"])
    assert results == {"b": 1, "c": 2}


def test_the_task_that_can_not_be_pickled_is_named():
    writer = BundleWriter()
    items = [(to_node(i, (len, [i]), {})[0], ()) for i in range(3)]
    items.append((to_node("bad", (len, (x for x in "abc")), {})[0], ()))
    with pytest.raises(UnpicklableTask, match="'bad'"):
        writer.write(items, [0, 1, 2, "bad"])


@pytest.mark.parametrize(
    "task",
    [
        (add, "a", 1),
        (add, ("t", 0), "a"),
        (sum, ["a", ("t", 0), 5]),
        (dict, [["k", "a"]]),
        (add, (neg, "a"), (neg, ("t", 0))),
        (len, ("no", "key")),
        (len, {"a": "a"}),
        "a",
        ["a", 1],
        ("t", 0),
        7,
    ],
    ids=repr,
)
def test_tasks_mean_what_dask_says_they_mean(task):
    from dask.local import get_sync

    tasks = {"a": 3, ("t", 0): 4, "x": task}
    results, _ = run(tasks, ["x"])
    assert results["x"] == get_sync(tasks, "x")


class Own(Task):
    """Somebody's own kind of task."""

    __slots__ = ()


def keywords(*args, **kwargs):
    return args, kwargs


A, B = TaskRef("a"), Alias("b")
OLD_LIST = convert_legacy_task(None, ["a", ["b", 1]], {"a", "b", "p"})
SUM_OF_LIST = convert_legacy_task("q", (sum, ["p", "a"]), {"a", "p"})
FIRST = Task("p", add, A, B)


@pytest.mark.parametrize(
    "node",
    [
        Task("x", keywords, OLD_LIST, k=OLD_LIST),
        Own("x", keywords, OLD_LIST),
        Task.fuse(FIRST, SUM_OF_LIST),
        Task.fuse(FIRST, SUM_OF_LIST, key="other"),
        Task.fuse(FIRST, SUM_OF_LIST, Task("r", keywords, TaskRef("q"), k=OLD_LIST, key=B)),
        Task.fuse(Task.fuse(FIRST, SUM_OF_LIST), Alias("r", "q"), Task("s", neg, TaskRef("r"))),
        Task.fuse(FIRST, Task("q", keywords, List(TaskRef("p"), OLD_LIST))),
        Task.fuse(FIRST, Task("q", keywords, Dict({"k": List(TaskRef("p"), 1), "l": B}))),
        Task.fuse(FIRST, Own("q", keywords, List(Alias("p"), [1]), Tuple(TaskRef("p")))),
        Task.fuse(FIRST, convert_legacy_task("q", (sum, ((list, ["p", "a"]))), {"a", "p"})),
        Task.fuse(FIRST, DataNode("d", [3]), Task("q", keywords, Alias("p"), TaskRef("d"))),
    ],
    ids=repr,
)
@pytest.mark.parametrize("by_value", [False, True])
def test_what_dask_fused_before_is_still_what_dask_says_it_is(node, by_value):
    values = {"a": 3, "b": 5}
    writer = BundleWriter()
    items = [(node, ("a", "b"))]
    if by_value:
        items.append((Task("l", lambda: 1), ()))
    read = pickle.loads(writer.write(items, ["x", "l"]))[0][0]
    expected = node(values)
    assert evaluate_item(read, values) == expected
    assert read.dependencies == node.dependencies
    assert read(values) == expected  # by dask itself, as in a graph that a task computes
