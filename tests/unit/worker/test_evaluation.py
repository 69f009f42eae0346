"""Tasks of graphs called with their inputs: as dask calls them, but without its order."""

import traceback
import weakref
from operator import add, mul, neg

import pytest
from dask._task_spec import Alias, DataNode, Dict, List, Set, Task, TaskRef, Tuple

from shoal.worker.shell.evaluation import evaluate, evaluate_item


class Own(Task):
    """Somebody's own kind of task."""

    __slots__ = ()

    def __call__(self, values=()):
        return ("own", super().__call__(values))


def keywords(*args, **kwargs):
    return args, kwargs


VALUES = {"a": 3, "b": 5}
A, B = TaskRef("a"), Alias("b")


@pytest.mark.parametrize(
    "node",
    [
        Task("x", add, A, B),
        Task("x", add, DataNode("d", 4), 1),
        Task("x", keywords, A, [A], None, k=B, other="text", node=Task(None, neg, A)),
        Task("x", keywords, List(A, List(B, 7)), Tuple(A, B), Set(A, B), Dict({"k": A, "l": 2})),
        Task("x", keywords, Task(None, mul, Task(None, add, A, 1), B)),
        Task("x", keywords, {"plain": 1}, ("plain", 2)),
        Task.fuse(Task("p", add, A, 1), Task("q", mul, TaskRef("p"), TaskRef("p"))),
        Task.fuse(Task("q", add, TaskRef("p"), B), Task("p", neg, A), key="other"),
        Task.fuse(
            Task("p", neg, A),
            Task("q", neg, TaskRef("p")),
            Task("r", add, TaskRef("p"), TaskRef("q")),
            DataNode("d", 10),
            Task("s", keywords, TaskRef("r"), TaskRef("d"), B),
        ),
        Task.fuse(
            Task.fuse(Task("p", neg, A), Task("q", neg, TaskRef("p"))),
            Alias("r", "q"),
            Task("s", add, TaskRef("r"), B),
        ),
        Own("x", add, A, 1),
        Task("x", keywords, Own(None, add, A, 1)),
        Alias("x", "a"),
        DataNode("x", [1]),
        List(A, 2),
    ],
    ids=lambda node: type(node).__name__,
)
def test_a_task_gives_what_dask_says_it_gives(node):
    assert evaluate_item(node, VALUES) == node(VALUES)


def test_old_tuples_that_make_containers_give_them():
    from dask._task_spec import convert_legacy_task

    for task in ([("a",), "b"], (sum, ["a", "b"]), (dict, [["k", "a"]]), ("b", ["a", 1])):
        node = convert_legacy_task("x", task, VALUES)
        assert evaluate(node, VALUES) == node(VALUES)


def test_a_chain_hands_each_result_to_the_next():
    chain = [Task("p", add, A, B), "p", Task("q", neg, TaskRef("p")), "q", Alias("r", "q")]
    assert evaluate_item(chain, VALUES) == -8


def test_a_dict_that_stands_in_many_tasks_is_nobody_s_to_change():
    shared = {}
    node = Task("x", dict.setdefault, shared, "k", 1)
    assert evaluate(node, {}) == 1
    assert shared == {}


class Thing:
    pass


def test_results_inside_are_let_go_of_as_soon_as_nothing_inside_needs_them():
    seen = []

    def begin():
        thing = Thing()
        seen.append(weakref.ref(thing))
        return thing

    def go_on(thing):
        return Thing()

    def look(thing):
        return seen[0]() is None

    tasks = [Task("p", begin), Task("q", go_on, TaskRef("p")), Task("r", look, TaskRef("q"))]
    assert evaluate_item(Task.fuse(*tasks), {})
    assert evaluate_item([tasks[0], "p", tasks[1], "q", tasks[2]], {})


def test_an_error_inside_has_the_users_traceback():
    def fails(x):
        raise ValueError("not this way")

    fused = Task.fuse(Task("p", neg, A), Task("q", fails, TaskRef("p")))
    chain = [Task("p", neg, A), "p", Task("q", fails, TaskRef("p"))]
    for node in (fused, chain):
        with pytest.raises(ValueError, match="not this way") as caught:
            evaluate_item(node, VALUES)
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"


def test_a_chain_inside_as_long_as_the_stack_of_python_is_no_problem():
    n = 5000
    tasks = [Task("x0", neg, A), *(Task(f"x{i}", neg, TaskRef(f"x{i - 1}")) for i in range(1, n))]
    assert evaluate_item(Task.fuse(*reversed(tasks)), VALUES) == 3
