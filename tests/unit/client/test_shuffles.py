"""The tasks of a shuffle know how it is done, whatever dask made of the graph before."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import Alias, Task, TaskRef
from dask.graph_manipulation import bind

from shoal.client.computing import flat_keys
from shoal.client.finding import Tasks
from shoal.client.graphs import Graph
from shoal.client.preparing import prepare
from shoal.client.shuffles import with_shuffles
from shoal.protocol.keys import to_canonical
from shoal.shuffle.arrays import ArrayExchange
from shoal.shuffle.exchange import WithExchanges, exchange_of
from shoal.shuffle.graph import P2PBarrierTask, barrier_key, p2p_barrier, rechunk_unpack
from shoal.shuffle.rechunk import rechunk_p2p


def told(collection):
    """A collection's graph as it is sent, and the definitions before it."""
    seen = []

    def get(expression, keys, **_):
        prepared = prepare(expression)
        shuffles = with_shuffles(prepared.tasks)
        graph = Graph(
            Tasks(shuffles.tasks, prepared.fusible, prepared.lazy, {}),
            flat_keys(keys),
            lambda key: None,
        )
        messages = [slice_.message for slice_ in graph.slices(1, lambda: 1)]
        seen.append((shuffles, messages))
        return [np.zeros(1)] * len(keys)

    dask.compute(collection, scheduler=get)
    return seen[0]


def exchange(id="s"):
    return ArrayExchange(id, ((2, 2),), ((4,),), np.empty(0), disk=True)


def barrier(*needs, id="s", key=None):
    key = barrier_key(id) if key is None else key
    return P2PBarrierTask(key, p2p_barrier, id, *map(TaskRef, needs), spec=exchange(id))


def known(value, id):
    return exchange_of(id)


def run(task, **values):
    return task(values)


def small(**others):
    tasks = {
        "t0": Task("t0", known, 1, "s"),
        "t1": Task("t1", known, 2, "s"),
        "shuffle-barrier-s": barrier("t0", "t1"),
        "u": Task("u", known, TaskRef("shuffle-barrier-s"), "s"),
        "other": Task("other", known, 1, "s"),
    }
    return tasks | others


def test_those_that_the_barrier_needs_and_those_that_need_it_know_the_exchange():
    tasks, _ = with_shuffles(small())
    assert run(tasks["t0"]).id == run(tasks["u"], **{"shuffle-barrier-s": 1}).id == "s"
    assert tasks["t0"].func is tasks["t1"].func  # pickled once
    assert tasks["other"].func is known


def test_the_barrier_travels_without_its_exchange():
    tasks, [definition] = with_shuffles(small())
    assert tasks["shuffle-barrier-s"].spec is None
    assert (definition.id, definition.barrier) == ("s", "shuffle-barrier-s")
    assert (definition.ninputs, definition.noutputs, definition.kind) == (2, 1, "array")


def test_a_graph_without_a_barrier_is_left_as_it_is():
    tasks = {"a": Task("a", known, 1, "s")}
    assert with_shuffles(tasks) == (tasks, [])


def test_the_users_graph_is_not_changed():
    tasks = small()
    before = dict(tasks)
    with_shuffles(tasks)
    assert all(tasks[key] is task for key, task in before.items())


def test_a_task_that_was_fused_knows_it_inside():
    fused = Task.fuse(Task("x", abs, -1), Task("t0", known, TaskRef("x"), "s"), key="t0")
    tasks, _ = with_shuffles(small(t0=fused))
    assert run(tasks["t0"]).id == "s"


def test_a_task_inside_of_another_knows_it():
    inner = Task(None, known, 1, "s")
    tasks, _ = with_shuffles(small(t0=Task("t0", list, Task(None, lambda x: [x], inner))))
    assert run(tasks["t0"])[0].id == "s"


def test_another_name_for_a_transfer_is_none():
    tasks, [definition] = with_shuffles(
        small(t0=Alias("t0", "renamed"), renamed=Task("renamed", known, 1, "s"))
    )
    assert tasks["shuffle-barrier-s"].dependencies == {"renamed", "t1"}
    assert run(tasks["renamed"]).id == "s"
    assert definition.ninputs == 2


def test_the_same_shuffle_twice_in_a_graph_is_two():
    copy = {
        "c0": Task("c0", known, 1, "s"),
        "copied": barrier("c0", "t1", key="copied"),
        "cu": Task("cu", known, TaskRef("copied"), "s"),
    }
    tasks, definitions = with_shuffles(small(**copy))
    ids = [definition.id for definition in definitions]
    assert len(set(ids)) == 2
    assert ids[0] == "s"
    assert run(tasks["cu"], copied=1).id == ids[1]


def test_the_output_of_each_unpack_is_told_by_whichever_key_it_will_have():
    tasks = small(
        u=Task("u", rechunk_unpack, "s", 0, TaskRef("shuffle-barrier-s")),
        v=Task("v", abs, TaskRef("u")),
        w=Task("w", abs, TaskRef("v")),
        both=Task("both", max, TaskRef("w"), TaskRef("other")),
    )
    _, [definition] = with_shuffles(tasks)
    assert definition.outputs == {"u": 0, "v": 0, "w": 0}


def test_a_barrier_is_never_one_with_its_only_transfer_or_unpack():
    x = da.ones((4,), chunks=4)
    (_, definitions), messages = told((rechunk_p2p(x + 1, ((2, 2),)) + 1)[:2])
    keys = [key for message in messages for key in message.keys]
    assert definitions[0].barrier in keys


@pytest.mark.parametrize("fuse", [None, True, False])
def test_all_tasks_of_a_rechunked_array_know_it_however_dask_fuses(fuse):
    x = da.ones((6, 6), chunks=(6, 1)) + 1
    with dask.config.set({"optimization.fuse.active": fuse}):
        (tasks, [definition]), messages = told(rechunk_p2p(x, ((1,) * 6, (6,))) + 1)
    [barrier_task] = [task for task in tasks.values() if isinstance(task, P2PBarrierTask)]
    assert definition.ninputs == len(barrier_task.dependencies) == 6
    sent = {key for message in messages for key in message.keys}
    numbered = {place: key for key, place in definition.outputs.items() if key in sent}
    assert sorted(numbered) == list(range(6))
    assert definition.barrier in sent
    assert {to_canonical(key) for key in barrier_task.dependencies} <= sent


def test_what_was_bound_to_another_collection_knows_it():
    x = da.ones((6, 6), chunks=(6, 1))
    y = rechunk_p2p(x, ((1,) * 6, (6,)))
    (tasks, definitions), _ = told(bind(y, x.sum()))
    telling = [task for task in tasks.values() if type(getattr(task, "func", 0)) is WithExchanges]
    assert len(definitions) == 1
    assert len(telling) == 12


def test_functions_with_exchanges_travel():
    import pickle

    read = pickle.loads(pickle.dumps(WithExchanges({"s": exchange()}, known)))
    again = pickle.loads(pickle.dumps(WithExchanges({"s": exchange()}, known)))
    assert read(0, "s").id == "s"
    assert read.exchanges["s"] is again.exchanges["s"]  # and share what they make of it
