"""Collections on a cluster give what they give without one, whichever way they are computed."""

import operator

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from shoal import Client, futures_of, get_worker, wait

CLUSTER = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}


@pytest.fixture
def client():
    """A blocking client of a cluster in this process."""
    with Client(processes=False, **CLUSTER) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    numbers = np.arange(300)
    return pd.DataFrame({"a": numbers % 7, "b": numbers * 1.5, "c": numbers % 3})


@pytest.fixture
def frame(table):
    return dd.from_pandas(table, npartitions=6)


@pytest.fixture(scope="module")
def array():
    return da.from_array(np.random.default_rng(7).random((60, 60)), chunks=(20, 30))


def same(found, expected):
    """Whether two results are equal, whatever they are."""
    if isinstance(expected, (pd.DataFrame, pd.Series)):
        check = pd.testing.assert_frame_equal if expected.ndim == 2 else None
        (check or pd.testing.assert_series_equal)(found.sort_index(), expected.sort_index())
    elif isinstance(expected, (list, tuple)):
        assert sorted(found) == sorted(expected)
    else:
        np.testing.assert_allclose(found, expected)
    return True


def without_cluster(*collections):
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):  # the other way is the client's
        return dask.compute(*collections, scheduler="synchronous")


def test_arrays(client, array):
    x = array
    collections = [
        x.sum(),
        (x + x.T.rechunk(x.chunks)).mean(axis=0),
        da.map_overlap(lambda a: a * 2, x, depth=1, boundary="none").sum(axis=0),
        da.linalg.svd(x.rechunk((20, 60)))[1],
        x.rechunk((60, 7)).std(axis=1),
        x[5:][:30:2][3:7, ::3],
        da.where(x > 0.5, x, 0).cumsum(axis=0),
        da.einsum("ij,ik->jk", x, x),
    ]
    for found, expected in zip(
        dask.compute(*collections), without_cluster(*collections), strict=True
    ):
        same(found, expected)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_dataframes(client, frame):
    collections = [
        frame.b.sum(),
        frame.assign(d=frame.b * 2).query("d > 10")[["a", "d"]],
        frame.groupby("a").b.mean(),
        frame.merge(frame.groupby("a").c.max().reset_index(), on="a").b.sum(),
        frame.shuffle("a").b.sum(),
        frame.set_index("b").loc[10:100],
        frame.groupby("c").apply(lambda part: part.b.sum(), meta=("b", "f8")),
        frame.b.nlargest(5),
    ]
    for found, expected in zip(
        dask.compute(*collections), without_cluster(*collections), strict=True
    ):
        same(found, expected)


def test_bags(client):
    bag = db.from_sequence(range(60), npartitions=6)
    collections = [
        bag.map(lambda x: x + 1).filter(lambda x: x % 2).sum(),
        bag.map(lambda x: [x, x]).flatten(),
        bag.foldby(lambda x: x % 3, operator.add, 0),
        bag.groupby(lambda x: x % 3).map(lambda pair: (pair[0], sum(pair[1]))),
        bag.frequencies(),
    ]
    for found, expected in zip(
        dask.compute(*collections), without_cluster(*collections), strict=True
    ):
        same(found, expected)


def test_delayed_calls(client):
    leaves = [dask.delayed(pow)(i, 2) for i in range(100)]
    total = dask.delayed(sum)(leaves)
    nested = dask.delayed(dict)([("total", total), ("first", leaves[:3])])
    assert nested.compute() == {"total": 328350, "first": [0, 1, 4]}
    assert dask.compute(total, {"in": [leaves[4]]}, 5) == (328350, {"in": [16]}, 5)


@pytest.mark.filterwarnings("ignore:Computing mixed collections")
@pytest.mark.parametrize("optimize_graph", [True, False])
def test_collections_of_every_kind_at_once(client, array, frame, optimize_graph):
    bag = db.from_sequence(range(10), npartitions=2)
    mixed = array.sum(), frame.b.sum(), bag.sum(), dask.delayed(sum)([1, 2])
    expected = without_cluster(*mixed)
    assert dask.compute(*mixed, optimize_graph=optimize_graph) == pytest.approx(expected)
    futures = client.compute(list(mixed), optimize_graph=optimize_graph)
    assert client.gather(futures) == pytest.approx(list(expected))


def test_what_was_persisted_is_computed_no_more(client, array, frame):
    kept_array, kept_frame = (array + 1).persist(), frame.assign(d=frame.b * 2).persist()
    kept_bag, kept_call = dask.persist(
        db.from_sequence(range(10), npartitions=2).map(str), dask.delayed(sum)([1, 2])
    )
    wait([kept_array, kept_frame, kept_bag, kept_call])
    assert [len(futures_of(kept)) for kept in (kept_array, kept_frame, kept_bag, kept_call)] == [
        6, 6, 2, 1,
    ]  # fmt: skip
    same(kept_array.mean().compute(), (array + 1).mean().compute(scheduler="synchronous"))
    assert kept_frame.d.sum().compute() == pytest.approx(2 * 1.5 * sum(range(300)))
    assert sorted(kept_bag.compute()) == [str(i) for i in range(10)]
    assert kept_call.compute() == 3


def test_several_dataframes_are_persisted_together(client, frame):
    one, other = dask.persist(frame.b + 1, (frame.b + 1).sum())
    assert one.sum().compute() == other.compute()


@pytest.mark.parametrize("optimize_graph", [True, False])
def test_a_dataframe_is_the_same_whether_it_is_optimized_or_not(client, frame, optimize_graph):
    collection = frame.b + 1
    future = client.compute(collection, optimize_graph=optimize_graph)
    kept = client.persist(collection, optimize_graph=optimize_graph)
    same(future.result(), collection.compute(scheduler="synchronous"))
    assert len(futures_of(kept)) == 6
    same(kept.compute(), future.result())


def test_futures_stand_for_values_in_collections(client, frame, table):
    parts = [client.submit(lambda part: part + 1, table[i : i + 100]) for i in (0, 100, 200)]
    made = dd.from_delayed(parts, meta=table)
    assert made.b.sum().compute() == pytest.approx((table + 1).b.sum())
    add = client.submit(int, 5)
    mapped = frame.map_partitions(lambda part, k: part + k, add, meta=table)
    assert mapped.a.sum().compute() == (table.a + 5).sum()
    assert dask.delayed(operator.add)(add, 1).compute() == 6
    blocks = da.from_delayed(dask.delayed(np.ones)(3), (3,), float)
    assert (blocks + 1).sum().compute() == 6
    scattered = client.scatter(np.arange(4))
    assert da.from_delayed(scattered, (4,), int).sum().compute() == 6


def test_collections_as_delayed_calls(client, array, frame):
    sizes = [dask.delayed(len)(part) for part in frame.to_delayed()]
    assert sum(dask.compute(*sizes)) == 300
    blocks = array.to_delayed().ravel().tolist()
    assert dask.delayed(sum)([dask.delayed(np.sum)(block) for block in blocks]).compute() == (
        pytest.approx(array.sum().compute(scheduler="synchronous"))
    )
    assert dask.delayed(len)(frame).compute() == 300
    assert sorted(db.from_delayed(frame.a.to_delayed()).distinct().compute()) == list(range(7))


def where(part):
    return pd.DataFrame({"worker": [get_worker().address]})


def test_annotated_parts_of_a_graph_run_where_they_are_told_to(client, frame):
    there, elsewhere = sorted(client.scheduler_info()["workers"])
    with dask.annotate(workers=[elsewhere]):
        places = frame.map_partitions(where, meta={"worker": object})
    assert set(places.compute().worker) == {elsewhere}
    with dask.annotate(workers=there):
        bag = db.range(8, npartitions=8).map_partitions(lambda part: [get_worker().address])
    assert set(bag.compute()) == {there}
    with dask.annotate(workers=there):
        assert set(frame.map_partitions(where, meta={"worker": object}).compute().worker) == {there}


TRIED = []


def third_time_lucky(block):
    TRIED.append(len(block))
    if len(TRIED) % 3:
        raise ValueError("not yet")
    return block


def test_annotated_parts_of_a_graph_are_tried_again(client):
    TRIED.clear()
    x = da.ones(5, chunks=5)
    with dask.annotate(retries=2):
        x = x.map_blocks(third_time_lucky, dtype=float, meta=np.empty(0))
    assert (x + 1).sum().compute() == 10
    assert len(TRIED) == 3


def test_the_error_of_a_task_inside_of_a_fused_one_has_the_users_traceback(client):
    def fails(block):
        raise ZeroDivisionError("in the middle")

    x = da.ones(8, chunks=4).map_blocks(fails, dtype=float, meta=np.empty(0)) + 1
    with pytest.raises(ZeroDivisionError, match="in the middle") as caught:
        x.sum().compute()
    assert "fails" in [entry.name for entry in caught.traceback]


def test_the_first_lines_in_processes():
    x = da.ones((400, 400), chunks=(100, 100))
    with Client(processes=True, **CLUSTER):
        assert x.sum().compute() == 160_000
        assert (x + x.T).mean().compute() == 2.0
        frame = dd.from_pandas(pd.DataFrame({"a": range(20), "b": 1.0}), npartitions=4)
        assert frame.groupby("a").b.sum().compute().sum() == 20
        assert db.range(10, npartitions=3).map(lambda i: i + 1).sum().compute() == 55
        assert dask.delayed(sum)([dask.delayed(abs)(-i) for i in range(5)]).compute() == 10
