"""Collections that dask fused, took apart or tied together before give what they give without."""

import operator

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import Delayed
from dask.graph_manipulation import bind, checkpoint, clone, wait_on

from shoal import Client


@pytest.fixture(scope="module")
def client():
    """One cluster for all of them."""
    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        yield client


def combine(*args, **kwargs):
    return args, sorted(kwargs.items())


def sums():
    return da.ones((4, 4), chunks=(2, 4)).sum(axis=1)


def square():
    return da.arange(24, chunks=4).reshape((6, 4))


def words():
    return db.from_sequence(["b", "a", "c", "a", "b"], npartitions=2).map(str.upper)


def frame():
    table = pd.DataFrame({"a": np.arange(24) % 5, "b": np.arange(24) * 1.5})
    return dd.from_pandas(table, npartitions=4)


def blocks_summed(blocks):
    return sum(block.sum(axis=-1) for block in blocks)


def summed(block):
    return block.sum(axis=-1)


def blockwise(function, **options):
    empty = np.empty(0, int)
    x = square().rechunk((3, 2))
    return da.blockwise(function, "i", x, "ij", dtype=x.dtype, meta=empty, **options)


def calls():
    parts = [dask.delayed(operator.add)(i, 1) for i in range(3)]
    inner = dask.delayed(combine)(parts, {"k": parts[0]}, keyword=parts[1:])
    return dask.delayed(combine)(inner, (inner, parts[2]), [[parts[1]], {"l": [parts[0]]}])


FLAT = {
    "array": lambda: da.ones((4, 4), chunks=2) + 1,
    "sums": sums,
    "product": lambda: da.ones((6, 4), chunks=2) @ da.ones((4, 6), chunks=2),
    "bag": words,
    "frequencies": lambda: words().frequencies(),
    "fold": lambda: db.range(10, npartitions=4).fold(operator.add, split_every=2),
}
DEEP = {
    "sums of sums": lambda: (sums() + 1)[::2] * sums()[1::2],
    "deviation": lambda: square().std(axis=0),
    "overlap": lambda: da.arange(40, chunks=8).map_overlap(lambda a: a * 2, depth=1),
    "percentile": lambda: da.percentile(da.arange(40, chunks=8), [10, 90]),
    "call in blocks": lambda: square().map_blocks(operator.add, dask.delayed(abs)(-3), dtype=int),
    "blocks concatenated": lambda: blockwise(summed, concatenate=True),
    "blocks in lists": lambda: blockwise(blocks_summed),
    "array of calls": lambda: da.from_delayed(dask.delayed(np.ones)(3), (3,), float) + 1,
    "bags zipped": lambda: db.zip(words(), words().map(len)).starmap(combine),
    "bag and keyword": lambda: words().map(combine, words().count(), k=dask.delayed(abs)(-1)),
    "bag of dataframe": lambda: frame().to_bag(),
    "dataframe": lambda: frame().assign(c=frame().b + 1),
    "dataframe of bag": lambda: words().map(lambda word: {"w": word}).to_dataframe(),
    "calls": calls,
    "method": lambda: dask.delayed("a b").split(dask.delayed(" ")),
    "call of collections": lambda: dask.delayed(combine)(sums(), k=words()),
}
ONLY_IN_PARTS = {  # dask itself doesn't compute what it made of these
    "groups": lambda: frame().groupby("a").b.sum(split_every=2),
    "merged": lambda: frame().merge(frame().groupby("a").b.max().reset_index(), on="a"),
}


def optimized(collection):
    return dask.optimize(collection)[0]


def twice_optimized(collection):
    return optimized(optimized(collection))


def in_parts(collection):
    """Its blocks or partitions, which are optimized as they are taken."""
    if isinstance(collection, Delayed):
        return dask.delayed(combine)(collection, k=[collection])
    parts = collection.to_delayed()
    found = parts.ravel().tolist() if isinstance(parts, np.ndarray) else parts
    return dask.delayed(combine)(found if isinstance(found, list) else [found])


def in_optimized_parts(collection):
    return optimized(in_parts(collection))


def bound(collection):
    return bind(collection, optimized(words()))


def checked(collection):
    return checkpoint(optimized(collection), collection)


def described(value):
    """The same text for the same value."""
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return value.sort_index().to_string()
    if isinstance(value, (list, tuple)):
        return [described(part) for part in value]
    return repr(value)


WAYS = [optimized, twice_optimized, in_parts, in_optimized_parts]
CASES = [
    *[(shape, way) for shape in FLAT for way in [*WAYS, clone, wait_on, bound, checked]],
    *[(shape, way) for shape in DEEP for way in WAYS],
    *[(shape, in_parts) for shape in ONLY_IN_PARTS],
]
CASES = [(shape, way) for shape, way in CASES if (shape, way.__name__[:3]) != ("fold", "in_")]
SHAPES = FLAT | DEEP | ONLY_IN_PARTS


@pytest.mark.parametrize(
    ("shape", "way"), CASES, ids=[f"{shape}, {way.__name__}" for shape, way in CASES]
)
def test_a_graph_made_over_before_gives_what_it_gives_without_a_cluster(client, shape, way):
    expected = way(SHAPES[shape]()).compute(scheduler="synchronous")
    assert described(way(SHAPES[shape]()).compute()) == described(expected)


@pytest.mark.parametrize("shape", [*FLAT, *DEEP])
def test_what_was_optimized_and_persisted_may_be_optimized_again(client, shape):
    expected = described(optimized(SHAPES[shape]()).compute(scheduler="synchronous"))
    kept = optimized(SHAPES[shape]()).persist()
    assert described(kept.compute()) == expected
    assert described(optimized(kept).compute()) == expected


def test_a_task_may_compute_what_it_was_given_fused(client):
    fused = optimized(sums())
    graph, keys = dict(fused.dask), fused.__dask_keys__()
    assert client.submit(lambda: dask.get(graph, keys)).result()[0].tolist() == [4.0, 4.0]
