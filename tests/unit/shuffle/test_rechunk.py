"""Arrays in other chunks: what dask's graph of shuffles makes, played without a cluster."""

import pickle
from collections import defaultdict
from itertools import product

import dask.array as da
import numpy as np
import pytest
from dask._task_spec import Alias
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.shuffle.arrays import ArrayExchange
from shoal.shuffle.errors import P2PConsistencyError, WrongBlock
from shoal.shuffle.graph import P2PBarrierTask
from shoal.shuffle.rechunk import rechunk_p2p


def cuts(total):
    return st.lists(st.integers(0, total), max_size=4).map(
        lambda cuts: tuple(np.diff([0, *sorted(cuts), total]).tolist())
    )


@st.composite
def changes(draw):
    """A shape of 1 to 5 axes, and two ways to cut it."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    old = tuple(draw(cuts(size)) for size in shape)
    new = tuple(draw(cuts(size)) for size in shape)
    return tuple(shape), old, new


def blocks_of(values, chunks):
    """The blocks of an array by their indices."""
    bounds = [np.cumsum([0, *sizes]) for sizes in chunks]
    return {
        index: values[tuple(slice(b[i], b[i + 1]) for b, i in zip(bounds, index, strict=True))]
        for index in product(*[range(len(sizes)) for sizes in chunks])
    }


def barriers_of(x):
    return [task for task in dict(x.dask).values() if isinstance(task, P2PBarrierTask)]


def played(y, source):
    """The blocks that the tasks of a rechunked array make of `source`, by their indices."""
    graph = dict(y.dask)
    exchanges = {
        barrier.spec.id: pickle.loads(pickle.dumps(barrier.spec)) for barrier in barriers_of(y)
    }
    shards = defaultdict(list)
    for key, task in sorted(graph.items(), key=lambda item: str(item[0])):
        if key[0].startswith("rechunk-transfer"):
            id, place = task.args[1:]
            cut = exchanges[id].cut(source[task.args[0].key[1:]], place)
            for shard in cut.shards:
                buffer = b"".join(map(bytes, shard.buffers))
                assert len(buffer) % 8 == 0
                shards[id, shard.output].append((place, buffer))
    made = {}
    for index in product(*[range(len(sizes)) for sizes in y.chunks]):
        task = graph[(y.name, *index)]
        if isinstance(task, Alias):
            made[index] = source[task.target[1:]]
        elif len(task.args) == 3:
            id, output, _ = task.args
            came = sorted(shards[id, output], key=lambda pair: pair[0])
            made[index] = exchanges[id].join(output, [buffer for _, buffer in came])
        else:
            made[index] = task.func(*task.args)
    return made


def rechunked(values, old, new):
    x = da.from_array(values, chunks=old)
    y = rechunk_p2p(x, new)
    return blocks_of(values, old) if y is x else played(y, blocks_of(values, old))


@given(changes())
@settings(max_examples=60, deadline=None)
def test_blocks_are_those_of_numpy_in_any_number_of_dimensions(change):
    shape, old, new = change
    values = np.random.default_rng(0).random(shape)
    made = rechunked(values, old, new)
    for index, expected in blocks_of(values, new).items():
        np.testing.assert_array_equal(made[index], expected)
        assert made[index].dtype == values.dtype


KINDS = {
    "objects": np.array([["a", None], [3, ("x",)]] * 4, dtype=object),
    "records": np.array([(i, i / 2) for i in range(16)], dtype="i4,f8").reshape(8, 2),
    "dates": np.arange(16).reshape(8, 2).astype("M8[h]"),
    "bytes": np.array([[b"ab", b"c"]] * 8),
    "text": np.array([["ab", "ü"]] * 8),
    "other byte order": np.arange(16.0).reshape(8, 2).astype(">f8"),
    "Fortran's order": np.asfortranarray(np.arange(16).reshape(8, 2)),
    "booleans": np.arange(16).reshape(8, 2) % 3 == 0,
    "complex numbers": np.arange(16).reshape(8, 2) * 1j,
}


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_every_type_arrive_as_they_were(kind):
    values = KINDS[kind]
    old, new = ((3, 3, 2), (1, 1)), ((8,), (2,))
    [made] = rechunked(values, old, new).values()
    assert made.dtype == values.dtype.newbyteorder("=")  # as numpy's arrays do that were pickled
    assert made.tolist() == values.tolist()


def test_masked_arrays_keep_their_masks():
    values = np.ma.masked_greater(np.arange(16).reshape(8, 2), 9)
    [made] = rechunked(values, ((3, 3, 2), (1, 1)), ((8,), (2,))).values()
    assert isinstance(made, np.ma.MaskedArray)
    assert made.mask.tolist() == values.mask.tolist()


def test_what_is_joined_owns_its_memory():
    exchange = ArrayExchange("x", ((4,),), ((2, 2),), np.empty(0), disk=False)
    [first, _] = exchange.cut(np.arange(4.0), 0).shards
    shard = bytearray(b"".join(map(bytes, first.buffers)))
    made = exchange.join(0, [shard])
    shard[:] = bytes(len(shard))
    assert made.tolist() == [0.0, 1.0]


def test_blocks_of_another_type_than_declared_come_together_in_one_that_holds_all():
    exchange = ArrayExchange("x", ((2, 2),), ((4,),), np.empty(0, int), disk=False)
    blocks = [np.array([1, 2]), np.array([1.5, 2.5])]
    shards = [
        b"".join(map(bytes, shard.buffers))
        for place, block in enumerate(blocks)
        for shard in exchange.cut(block, place).shards
    ]
    assert exchange.join(0, shards).tolist() == [1.0, 2.0, 1.5, 2.5]


def test_a_block_that_is_not_of_its_size_is_told_and_never_cut():
    exchange = ArrayExchange("x", ((4,),), ((2, 2),), np.empty(0), disk=False)
    with pytest.raises(WrongBlock, match=r"input block 0 has the shape \(3,\)"):
        exchange.cut(np.arange(3.0), 0)


def test_a_block_that_lacks_a_part_is_told_and_never_made():
    exchange = ArrayExchange("x", ((2, 2),), ((4,),), np.empty(0), disk=False)
    [shard] = exchange.cut(np.arange(2.0), 0).shards
    with pytest.raises(P2PConsistencyError, match="2 elements came for output block"):
        exchange.join(0, [b"".join(map(bytes, shard.buffers))])


def test_parts_that_have_nothing_to_do_with_each_other_are_shuffles_of_their_own():
    x = da.ones((8, 8), chunks=(4, 1))
    y = rechunk_p2p(x, ((2, 2, 2, 2), (8,)))
    assert [len(barrier.dependencies) for barrier in barriers_of(y)] == [8, 8]


def test_what_stays_as_it_was_is_in_no_shuffle():
    x = da.ones((8, 3), chunks=((4, 2, 2), (3,)))
    y = rechunk_p2p(x, ((4, 4), (3,)))
    [barrier] = barriers_of(y)
    assert len(barrier.dependencies) == 2
    assert rechunk_p2p(x, x.chunks) is x


def test_a_block_alone_needs_its_own_shuffle_only():
    y = rechunk_p2p(da.ones((8, 8), chunks=(4, 1)), ((2, 2, 2, 2), (8,)))
    culled = y.dask.cull({(y.name, 0, 0)})
    assert sum(isinstance(task, P2PBarrierTask) for task in dict(culled).values()) == 1


def test_blocks_of_unknown_size_can_stay_and_not_be_changed():
    x = da.ones((8, 4), chunks=(4, 1))
    x = x[x[:, 0] > 0]
    y = rechunk_p2p(x, {1: 4})
    blocks = {(i, j): np.full((3 + i, 1), j) for i in range(2) for j in range(4)}
    made = played(y, blocks)
    assert [made[i, 0].tolist() for i in range(2)] == [[[0, 1, 2, 3]] * 3, [[0, 1, 2, 3]] * 4]
    with pytest.raises(ValueError, match="unknown"):
        rechunk_p2p(x, {0: 8})


def test_chunks_are_said_as_dask_lets_one_say_them():
    x = da.ones((8, 6), chunks=(4, 1))
    assert rechunk_p2p(x, (8, None)).chunks == ((8,), (1,) * 6)
    assert rechunk_p2p(x, {-1: 3}).chunks == ((4, 4), (3, 3))
    assert rechunk_p2p(x, 4).chunks == ((4, 4), (4, 2))
    assert rechunk_p2p(x, {0: 5}, balance=True).chunks[0] == (4, 4)
