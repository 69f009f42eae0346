"""From collections to plain graphs: the same results, fewer tasks, annotations kept."""

import functools
import sys
from types import SimpleNamespace
from typing import ClassVar

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.utils import key_split

from shoal.client.annotations import options_by_key
from shoal.client.computing import flat_keys
from shoal.client.finding import Tasks
from shoal.client.frames import AnnotatedExpressions
from shoal.client.graphs import Graph
from shoal.client.preparing import prepare
from shoal.protocol.keys import to_text
from shoal.protocol.messages import TaskOptions
from tests.unit.client.test_graphs import run_slices


class Play:
    """A scheduler for dask that keeps what it was given, prepared and in slices."""

    def __init__(self):
        self.fuse = True
        self.prepared = None
        self.ntasks = 0
        self.said = {}  # key -> its annotations, of what was sent

    def __call__(self, expression, keys, **_):
        prepared = self.prepared = prepare(expression, fuse=self.fuse)
        options = options_by_key(prepared.annotations, None)
        graph = Graph(
            Tasks(prepared.tasks, prepared.fusible, prepared.lazy, options),
            flat_keys(keys),
            lambda key: None,
        )
        results, order, said = run_slices(graph)
        self.ntasks, self.said = len(order), said
        return in_shape(keys, results)


def in_shape(keys, results):
    if isinstance(keys, list):
        return [in_shape(key, results) for key in keys]
    return results[keys]


@pytest.fixture
def play():
    """With expressions that remember their annotations, as while a client lives."""
    expressions = AnnotatedExpressions()
    expressions.turn_on()
    yield Play()
    expressions.turn_off()


@pytest.fixture
def frame():
    n = 200
    numbers = np.arange(n)
    return dd.from_pandas(
        pd.DataFrame({"a": numbers % 7, "b": numbers * 1.5, "c": numbers % 3}), npartitions=8
    )


@pytest.fixture(autouse=True)
def plain_dask():
    settings = {"dataframe.shuffle.method": "tasks", "array.rechunk.method": "tasks"}
    with dask.config.set({"scheduler": "synchronous", **settings}):
        yield


QUERIES = {
    "column": lambda df: df.b,
    "sum": lambda df: df.b.sum(),
    "chain": lambda df: df.assign(d=df.b * 2).query("d > 10")[["a", "d"]],
    "shared": lambda df: (df.b + df.a).sum() / (df.b + df.a).max(),
    "groupby": lambda df: df.groupby("a").b.mean(),
    "groupby split": lambda df: df.groupby("a").b.sum(split_out=3),
    "merge": lambda df: df.merge(df.groupby("a").b.max().reset_index(), on="a"),
    "shuffle": lambda df: df.shuffle("a").b.sum(),
    "set_index": lambda df: df.set_index("b").loc[10:100],
    "apply": lambda df: df.groupby("c").apply(lambda part: part.b.sum(), meta=("b", "f8")),
    "head": lambda df: df.b.nlargest(5),
    "map_partitions": lambda df: df.map_partitions(lambda part, k: part + k, 3),
    "concat": lambda df: dd.concat([df, df.assign(b=0.0)]),
    "rolling": lambda df: df.b.rolling(3).sum(),
    "repartition": lambda df: df.repartition(npartitions=3).a,
    "slice": lambda df: df.loc[30:150],  # whole partitions in the middle
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("query", list(QUERIES))
def test_fused_dataframes_give_what_plain_ones_give(play, frame, query):
    collection = QUERIES[query](frame)
    expected = collection.compute(scheduler="synchronous")
    found = collection.compute(scheduler=play)
    if isinstance(expected, float):
        assert found == pytest.approx(expected)
    else:
        kind = pd.testing.assert_frame_equal if expected.ndim == 2 else None
        (kind or pd.testing.assert_series_equal)(found.sort_index(), expected.sort_index())


CALLS = []


def count(part):
    CALLS.append(len(part))
    return part + 1


def test_what_several_dataframes_share_is_made_once(play, frame):
    shared = frame.map_partitions(count, meta=frame._meta)
    CALLS.clear()
    dask.compute(shared.a.sum(), shared.b.max(), shared.c.min(), scheduler=play)
    assert len(CALLS) == frame.npartitions


def test_a_chain_of_operations_is_one_task_per_partition(play, frame):
    collection = (frame.b + 1) * 2 - 3
    collection.compute(scheduler=play)
    assert play.ntasks <= frame.npartitions + 2


def test_a_dataframe_that_the_user_wants_as_it_is_stays_so(play, frame):
    collection = (frame.b + 1) * 2 - 3
    play.fuse = False
    found = collection.compute(scheduler=play)
    pd.testing.assert_series_equal(found, collection.compute())
    assert play.ntasks > 4 * frame.npartitions


def test_very_many_dataframes_are_fused_as_plain_tasks(play, frame):
    """Since dask would take quadratic time for the expressions."""
    collections = [(frame.b + i) * 2 - 3 for i in range(150)]
    found = dask.compute(*collections, scheduler=play)
    assert found[7].sum() == pytest.approx(((frame.b + 7) * 2 - 3).compute().sum())
    assert play.ntasks < 150 * (frame.npartitions + 3)


def test_persisted_dataframes_keep_the_keys_that_dask_asked_for(play, frame):
    kept, other = dask.persist(frame.b + 1, frame.b * 2, scheduler=play)
    assert kept.compute(scheduler="synchronous").sum() == (frame.b + 1).sum().compute(
        scheduler="synchronous"
    )
    assert other.npartitions == frame.npartitions


ARRAYS = {
    "sum": lambda x: x.sum(),
    "transposed mean": lambda x: (x + x.T).mean(),
    "overlap": lambda x: da.map_overlap(lambda a: a * 2, x, depth=1, boundary="none").sum(axis=0),
    "svd": lambda x: da.linalg.svd(x.rechunk((10, 40)))[1],
    "rechunk": lambda x: x.rechunk((40, 3)).std(axis=1),
    "slices": lambda x: x[5:][:20:2][3:7, ::3],
    "cumulative": lambda x: x.cumsum(axis=0).max(),
    "where": lambda x: da.where(x > 0.5, x, 0)[:10].sum(),
    "stack": lambda x: da.stack([x, x + 1]).sum(axis=(0, 1)),
    "take": lambda x: x[[1, 3, 20]].T,
}


@pytest.mark.parametrize("optimize_graph", [True, False])
@pytest.mark.parametrize("name", list(ARRAYS))
def test_arrays_give_what_plain_ones_give(play, name, optimize_graph):
    x = da.from_array(np.random.default_rng(1).random((40, 40)), chunks=10)
    collection = ARRAYS[name](x)
    expected = collection.compute(scheduler="synchronous")
    found = collection.compute(scheduler=play, optimize_graph=optimize_graph)
    np.testing.assert_allclose(found, expected)


def test_a_graph_that_the_user_wants_as_it_is_stays_so(play):
    x = (da.ones(40, chunks=10) + 1) * 2
    x.compute(scheduler=play, optimize_graph=False)
    assert play.ntasks >= 12
    x.compute(scheduler=play)
    assert play.ntasks <= 5


class Source:
    """Remembers what was read of any of its kind."""

    shape, dtype, ndim = (100,), np.dtype("f8"), 1
    read: ClassVar = []

    def __getitem__(self, index):
        self.read.append(index)
        return np.arange(100.0)[index]


def test_slices_of_slices_read_no_more_than_they_need(play):
    """As dask does it, which may read more than meets the eye, but not all."""
    x = da.from_array(Source(), chunks=100)[10:][5:8]
    Source.read.clear()
    x.compute(scheduler="synchronous")
    read = list(Source.read)
    Source.read.clear()
    np.testing.assert_array_equal(x.compute(scheduler=play), [15.0, 16.0, 17.0])
    assert Source.read == read != [(slice(0, 100, None),)]


BAGS = {
    "sum": lambda b: b.map(lambda x: x + 1).filter(lambda x: x % 2).sum(),
    "list": lambda b: b.map(lambda x: [x, x]).flatten(),
    "fold": lambda b: b.foldby(lambda x: x % 3, lambda total, x: total + x, 0),
    "groupby": lambda b: b.groupby(lambda x: x % 3).map(lambda pair: (pair[0], sum(pair[1]))),
    "frequencies": lambda b: b.map(lambda x: x % 4).frequencies(),
    "zip": lambda b: db.zip(b, b.map(lambda x: -x)),
    "keywords": lambda b: b.map(lambda x, k: x + k, k=3).topk(2),
}


@pytest.mark.parametrize("name", list(BAGS))
def test_bags_give_what_plain_ones_give(play, name):
    collection = BAGS[name](db.from_sequence(range(50), npartitions=5))
    expected = collection.compute(scheduler="synchronous")
    found = collection.compute(scheduler=play)
    if isinstance(expected, list):
        found, expected = sorted(found), sorted(expected)
    assert found == expected


def test_operations_on_a_bag_hand_on_iterators(play):
    """Only the last of a chain makes a list."""
    bag = db.from_sequence(range(6), npartitions=2).map(lambda x: x + 1).map(lambda x: 2 * x)
    bag.compute(scheduler=play)
    chains = [node for node in play.prepared.tasks if node in play.prepared.lazy]
    assert len(chains) >= 6
    assert play.ntasks == 3  # one chain per partition, and what puts them together


def test_delayed_calls_are_not_culled_one_by_one(monkeypatch):
    """Dask's own way takes quadratic time; ours must find the very same tasks."""
    from dask.highlevelgraph import Layer

    one = dask.delayed(len)([1, 2])
    calls = [dask.delayed(max)(one, i) for i in range(20)]
    seen = {}

    def look(expr, keys, **_):
        with monkeypatch.context() as patched:
            patched.setattr(Layer, "cull", None)
            seen["ours"] = prepare(expr).tasks
        seen["dask's"] = expr.__dask_graph__()
        return list(keys)

    dask.compute(*calls, scheduler=look)
    assert set(seen["ours"]) == set(seen["dask's"])
    dask.compute(dask.delayed(sum)(calls), scheduler=look)
    assert set(seen["ours"]) == set(seen["dask's"])


def test_an_optimization_of_the_users_is_called():
    one = dask.delayed(len)([1, 2])
    called = []

    def optimize(dsk, keys, **_):
        called.append(keys)
        return dsk

    with dask.config.set(delayed_optimize=optimize):
        assert one.compute(scheduler=lambda expr, keys, **_: [prepare(expr).tasks])
    assert called


def test_graphs_come_in_many_forms():
    delayed = dask.delayed(len)([1, 2])
    assert prepare({"a": 1}).tasks == {"a": 1}
    assert delayed.key in prepare(delayed.__dask_graph__()).tasks
    assert delayed.key in prepare(delayed).tasks
    assert len(prepare([("a", 1)]).tasks) == 1


# --- annotations ----------------------------------------------------------------------------------


def of(play, prefix):
    """What was said about the tasks whose keys start so, each thing once."""
    found = [said for key, said in play.said.items() if key_split(to_text(key)).startswith(prefix)]
    assert found
    return {(said.priority, said.retries, tuple(said.workers)) for said in found}


NOTHING = {(0.0, 0, ())}


def test_annotations_of_arrays_reach_their_tasks_and_no_others(play):
    x = da.ones((20, 20), chunks=10)
    with dask.annotate(workers=["here"], retries=2):
        y = x + 1
    (y * 2).sum().compute(scheduler=play)
    assert of(play, "add") == {(0.0, 2, ("here",))}
    assert of(play, "sum") == NOTHING
    assert of(play, "ones") == NOTHING


def test_annotations_of_bags_reach_their_tasks_and_no_others(play):
    bag = db.from_sequence(range(6), npartitions=3)
    with dask.annotate(priority=7):
        bag = bag.map(abs)
    bag.filter(bool).sum().compute(scheduler=play)
    assert of(play, "abs") == {(7.0, 0, ())}
    assert of(play, "sum-part") == NOTHING


def test_annotations_of_delayed_calls_reach_their_tasks_and_no_others(play):
    with dask.annotate(retries=3):
        one = dask.delayed(len)([1])
    dask.delayed(abs)(one).compute(scheduler=play)
    assert of(play, "len") == {(0.0, 3, ())}
    assert of(play, "abs") == NOTHING


def test_annotations_of_dataframes_reach_their_tasks_and_no_others(play, frame):
    with dask.annotate(priority=5):
        changed = frame.map_partitions(lambda part: part + 1, meta=frame._meta)
    changed.b.sum().compute(scheduler=play)
    assert of(play, "lambda") == {(5.0, 0, ())}
    assert of(play, "getitem") == NOTHING
    assert of(play, "sum") == NOTHING


def test_annotations_outlive_what_dask_makes_of_a_dataframe(play, frame):
    """The projection is pushed through the filter, which is made anew."""
    with dask.annotate(retries=2):
        some = frame[frame.a > 3]
    assert some.b.sum().compute(scheduler=play) == some.b.sum().compute(scheduler="sync")
    said = [
        options
        for key, options in play.said.items()
        if key_split(to_text(key)) == "getitem-gt-getitem"
    ]
    assert said
    assert {options.retries for options in said} == {2}


def test_a_dataframe_annotated_as_a_whole_is_fused_as_ever(play, frame):
    collection = (frame.b + 1).sum()
    collection.compute(scheduler=play)
    ntasks = play.ntasks
    with dask.annotate(priority=1):
        (frame.b + 1).sum().compute(scheduler=play)
    assert play.ntasks == ntasks


def test_an_annotation_may_be_a_function_of_the_key(play):
    with dask.annotate(priority=lambda key: key[1]):
        bag = db.range(6, npartitions=3).map(abs)
    bag.compute(scheduler=play)
    assert {said.priority for said in play.said.values()} == {0.0, 1.0, 2.0}


def test_dask_is_given_back_its_own():
    from dask._expr import Expr, SingletonExpr

    before = dict(vars(Expr)), dict(vars(SingletonExpr))
    expressions = AnnotatedExpressions()
    expressions.turn_on()
    assert dict(vars(Expr)) != before[0]
    expressions.turn_off()
    assert (dict(vars(Expr)), dict(vars(SingletonExpr))) == before


def test_what_others_have_put_in_place_of_ours_since_stays(monkeypatch):
    from dask._expr import Expr

    expressions = AnnotatedExpressions()
    expressions.turn_on()
    theirs = functools.partialmethod(Expr.rewrite)
    monkeypatch.setattr(Expr, "rewrite", theirs)
    expressions.turn_off()
    assert vars(Expr)["rewrite"] is theirs


@pytest.mark.parametrize("would_warn", [True, False])
def test_dask_warns_of_annotations_as_it_would_have_before(frame, monkeypatch, would_warn):
    from dask.dataframe.dask_expr import _collection

    monkeypatch.setattr(_collection, "_WARN_ANNOTATIONS", would_warn)
    expressions = AnnotatedExpressions()
    expressions.turn_on()
    with dask.annotate(priority=1):
        _ = frame.a + 17
    assert not _collection._WARN_ANNOTATIONS
    expressions.turn_off()
    assert _collection._WARN_ANNOTATIONS is would_warn


class Expr:
    """As dask's might be one day."""

    def __new__(cls):
        return super().__new__(cls)

    def simplify_once(self):
        return self


@pytest.mark.parametrize("names", [{}, {"Expr": Expr}, {"Expr": Expr, "SingletonExpr": Expr}])
def test_a_dask_that_makes_its_expressions_in_another_way_is_left_alone(monkeypatch, names):
    before = dict(vars(Expr))
    monkeypatch.setitem(sys.modules, "dask._expr", SimpleNamespace(**names))
    expressions = AnnotatedExpressions()
    expressions.turn_on()
    assert dict(vars(Expr)) == before
    expressions.turn_off()


def test_what_is_said_about_a_part_holds_before_what_is_said_about_all():
    said = {"a": {"priority": 5}, "b": {"retries": 1}, "c": {"colour": "red"}, "d": {"priority": 5}}
    options = options_by_key(said, TaskOptions(priority=1, retries=1))
    assert options["a"] == TaskOptions(priority=5, retries=1)
    assert options["a"] is options["d"]
    assert list(options) == ["a", "d"]


def test_resources_of_a_part_hold_instead_of_those_of_all():
    said = {"a": {"resources": {"GPU": 1}}, "b": {"retries": 1}}
    options = options_by_key(said, TaskOptions(resources={"net": 1.0}))
    assert options["a"].resources == {"GPU": 1.0}
    assert options["b"].resources == {"net": 1.0}


def test_what_only_other_parts_of_a_graph_say_is_not_said():
    """Dask marks such annotations, where graphs are put together that say different things."""
    mark = dask._expr._AnnotationsTombstone()
    (options,) = options_by_key({"x": {"priority": mark, "retries": 2}}, None).values()
    assert (options.priority, options.retries) == (0.0, 2)
