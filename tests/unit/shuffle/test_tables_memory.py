"""What cutting and joining tables takes of memory: no more than is said of it, and given back."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.shuffle.partitioning import grouped
from tests.unit.shuffle.tabling import IDS, shuffled, spec_for

NROWS = 200_000
WORDS = [f"text {number:08}" for number in range(NROWS)]
RNG = np.random.default_rng(3)

KINDS: dict[str, Callable[[], Any]] = {
    "float": lambda: RNG.random(NROWS),
    "whole": lambda: RNG.integers(0, 99, NROWS),
    "Int64": lambda: pd.array(RNG.integers(0, 99, NROWS), "Int64"),
    "zoned": lambda: pd.DatetimeIndex(RNG.integers(0, 10**18, NROWS), tz="Europe/Paris"),
    "known": lambda: pd.Categorical.from_codes(RNG.integers(0, 99, NROWS), WORDS[:99]),
    "text": lambda: pd.array(WORDS, "str"),
    "text_of_objects": lambda: pd.array(WORDS, "string[python]"),
    "objects": lambda: pd.Series(WORDS, dtype=object),
}


def shards_of(frame: Any, nshards: int) -> tuple[Any, list[bytes]]:
    """A specification, and all shards of one output partition."""
    spec = spec_for(frame, 1)
    found = []
    for part in np.array_split(np.arange(len(frame)), nshards):
        sent = frame.iloc[part].assign(**{IDS: 0})
        found += [b"".join(shard.buffers) for shard in spec.cut(sent, 0).shards]
    return spec, found


@pytest.mark.parametrize("kind", KINDS)
def test_a_join_takes_what_is_said_of_it(kind: str) -> None:
    spec, shards = shards_of(pd.DataFrame({"a": KINDS[kind]()}), 4)
    spec.join(0, shards[:1])
    pool = pa.system_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        joined = spec.join(0, shards)
        peak = tracemalloc.get_traced_memory()[1] + pool.bytes_allocated() - before
    finally:
        tracemalloc.stop()
    assert len(joined) == NROWS
    said = spec.output_bytes(sum(map(len, shards)))
    assert 0.3 * said < peak < 1.2 * said


def test_a_cut_gathers_a_few_megabytes_at_a_time_in_no_pool_that_keeps_them() -> None:
    nrows = 1_000_000
    frame = pd.DataFrame({name: RNG.random(nrows) for name in "abcd"})
    sent = frame.assign(**{IDS: RNG.integers(0, 64, nrows)})
    spec = spec_for(frame, 64)
    pool, kept = pa.system_memory_pool(), pa.default_memory_pool().bytes_allocated()
    before, most, nbytes = pool.bytes_allocated(), 0, 0
    for shard in spec.cut(sent, 0).shards:
        nbytes += sum(memoryview(buffer).nbytes for buffer in shard.buffers)
        most = max(most, pool.bytes_allocated() - before)
        assert pa.default_memory_pool().bytes_allocated() <= kept + (64 << 10)
    assert nbytes > 32_000_000
    assert 1_000_000 < most < 12_000_000


def test_rows_are_gathered_alike_in_one_stretch_and_in_many() -> None:
    """Of columns in one piece, and of columns whose values lie apart in memory."""
    nrows = 700_000
    frame = pd.DataFrame(RNG.random((nrows, 3)), columns=list("abc"), copy=False)
    assert not frame["a"].to_numpy().flags.c_contiguous
    frame["d"] = RNG.integers(0, 9, nrows)
    ids = RNG.integers(0, 7, nrows)
    for output, mine in enumerate(shuffled(spec_for(frame, 7), [frame], [ids])):
        pd.testing.assert_frame_equal(mine, frame[ids == output])


def test_stretches_are_whole_output_partitions() -> None:
    ids = np.repeat(np.array([0, 2, 3, 5], np.uint8), [4, 1, 20, 3])
    grouping = grouped(ids, 6)
    spans = list(grouping.spans())
    for nrows, expected in ((1, [1, 1, 1, 1]), (5, [2, 1, 1]), (28, [4]), (99, [4])):
        stretches = list(grouping.stretches(nrows))
        assert [len(stretch) for stretch in stretches] == expected
        assert [span for stretch in stretches for span in stretch] == spans
    assert list(grouped(ids[:0], 6).stretches(5)) == []


def test_nullable_numbers_travel_as_arrow_has_them() -> None:
    _, [shard] = shards_of(pd.DataFrame({"a": pd.array(np.arange(NROWS), "Int64")}), 1)
    assert len(shard) < 17 * NROWS  # eight bytes of the value, eight of the index
    assert b"IntegerArray" not in shard
