"""A table that was shuffled is, partition by partition, what pandas itself selects from it."""

import pickle
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.shuffle.errors import BadPartitionIds, ColumnsMismatch, SchemaMismatch, UnsupportedDtype
from shoal.shuffle.schema import check_dtype_support
from shoal.shuffle.tables import DataFrameShuffleSpec
from tests.unit.shuffle.tabling import IDS, columns, shuffled, spec_for

NSEEDS = 100


def cut_up(frame: Any, ids: Any, places: Any) -> tuple[list[Any], list[Any]]:
    """The frame and its ids, divided at these places."""
    bounds = [0, *sorted(places), len(frame)]
    spans = list(pairwise(bounds))
    return [frame.iloc[a:b] for a, b in spans], [ids[a:b] for a, b in spans]


def index_at_random(nrows: int, random: np.random.Generator, offered: dict[str, Any]) -> Any:
    name = random.choice(["float64", "text", "zoned", "int8", "texts_none", "period", "known"])
    one = pd.Index(offered[name], name=random.choice([None, "level"]))
    kind = random.integers(4)
    if kind == 0:
        return pd.RangeIndex(nrows)
    if kind == 1:
        return pd.MultiIndex.from_arrays([one, np.arange(nrows)], names=["one", None])
    return one


@pytest.mark.parametrize("seed", range(NSEEDS))
def test_output_partitions_are_what_pandas_selects(seed: int) -> None:
    """Any columns, any index, cut anywhere, empty partitions among them."""
    random = np.random.default_rng(seed)
    nrows = int(random.integers(0, 60))
    offered = columns(nrows, random)
    names = random.permutation(list(offered))[: random.integers(0, 8)]
    frame = pd.DataFrame({name: offered[name] for name in names}, index=range(nrows))
    frame.columns = frame.columns.astype("str")
    frame.index = index_at_random(nrows, random, offered)
    noutputs = int(random.integers(1, 12))
    ids = random.integers(0, noutputs, nrows)
    parts, ids_of_parts = cut_up(frame, ids, random.integers(0, nrows + 1, random.integers(0, 6)))

    joined = shuffled(spec_for(frame, noutputs), parts, ids_of_parts)

    for output, mine in enumerate(joined):
        expected = frame[ids == output]
        if isinstance(frame.index, pd.MultiIndex):  # values that no row has tell nothing
            mine.index = mine.index.remove_unused_levels()
            expected.index = expected.index.remove_unused_levels()
        pd.testing.assert_frame_equal(mine, expected, check_index_type="equiv")


@pytest.mark.parametrize("name", list(columns(3, np.random.default_rng(0))))
def test_a_column_of_each_type_arrives_as_it_was(name: str) -> None:
    random = np.random.default_rng(7)
    frame = pd.DataFrame({name: columns(40, random)[name]})
    ids = random.integers(0, 3, 40)
    parts, ids_of_parts = cut_up(frame, ids, [0, 13, 14, 30])

    for output, mine in enumerate(shuffled(spec_for(frame, 3), parts, ids_of_parts)):
        pd.testing.assert_frame_equal(mine, frame[ids == output])
        assert [type(a) for a in mine[name]] == [type(a) for a in frame[name][ids == output]]


def test_columns_arrive_writable() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", "b"], "z": pd.array([1, None], "Int64")})
    for ids in ([0, 0], [0, 0]):
        (mine,) = shuffled(spec_for(frame, 1), [frame], [ids])
        mine.loc[0, "x"], mine.loc[0, "y"], mine.loc[0, "z"] = 7, "q", 7
        mine["x"].to_numpy(copy=True)[0] = 1
        assert mine.iloc[0].tolist() == [7, "q", 7]


def test_bits_of_floats_are_kept() -> None:
    """A NaN that carries a number, and the sign of zero."""
    bits = np.array([0x7FF8000000000123, 0x8000000000000000], np.uint64)
    frame = pd.DataFrame({"x": bits.view(np.float64)})
    (mine,) = shuffled(spec_for(frame, 1), [frame], [[0, 0]])
    assert mine["x"].to_numpy().view(np.uint64).tolist() == bits.tolist()


def test_the_specification_survives_pickling_after_use() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3]})
    spec = spec_for(frame, 2)
    shuffled(spec, [frame], [[0, 1, 0]])
    again = pickle.loads(pickle.dumps(spec))
    assert [mine["x"].tolist() for mine in shuffled(again, [frame], [[0, 1, 0]])] == [[1, 3], [2]]
    assert again.id == spec.id
    assert again.noutputs == 2


def test_the_partitions_column_stays_when_it_is_asked_for() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], IDS: [1, 0, 1]})
    spec = spec_for(frame, 2, meta=frame.iloc[:0], drop_column=False)
    assert [mine[IDS].tolist() for mine in shuffled(spec, [frame])] == [[0], [1, 1]]


def test_rows_of_unwanted_output_partitions_are_dropped() -> None:
    frame = pd.DataFrame({"x": range(6)})
    spec = spec_for(frame, 3, parts_out=(2, 0))
    ids = [0, 1, 2, 0, 1, 2]
    assert [mine["x"].tolist() for mine in shuffled(spec, [frame], [ids])] == [[0, 3], [], [2, 5]]
    assert spec.cut(frame.assign(**{IDS: ids}), 0).nrows == 4


def test_an_output_partition_without_rows_is_like_meta() -> None:
    frame = pd.DataFrame(columns(5, np.random.default_rng(0)))
    *_, last = shuffled(spec_for(frame, 2), [frame], [[0] * 5])
    pd.testing.assert_frame_equal(last, frame.iloc[:0])


def test_columns_may_come_in_another_order() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    (mine,) = shuffled(spec_for(frame, 1), [frame, frame[["y", "x"]]], [[0, 0], [0, 0]])
    assert mine.to_dict("list") == {"x": [1, 2, 1, 2], "y": ["a", "b", "a", "b"]}


def test_names_that_are_no_texts_and_names_of_names_are_kept() -> None:
    names = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["top", None])
    frame = pd.DataFrame([[1, 2.0], [3, 4.0]], columns=names)
    frame.attrs["unit"] = "m"
    meta = frame.iloc[:0]
    spec = spec_for(pd.DataFrame(), 1, column=(IDS, ""), meta=meta)
    sent = frame.copy()
    sent[(IDS, "")] = 0
    (mine,) = shuffled(spec, [sent])
    pd.testing.assert_frame_equal(mine, frame)
    assert mine.attrs == {"unit": "m"}


def test_the_digest_tells_where_rows_went_and_nothing_else() -> None:
    def digest(ids: list[int], values: list[int], **changes: Any) -> int:
        frame = pd.DataFrame({"x": values})
        return spec_for(frame, 3, **changes).cut(frame.assign(**{IDS: ids}), 0).digest

    assert digest([0, 1, 2], [1, 2, 3]) == digest([0, 1, 2], [4, 5, 6])
    assert digest([0, 1, 2], [1, 2, 3]) != digest([0, 2, 1], [1, 2, 3])
    assert digest([0], [1]) != digest([0, 0], [1, 1])
    assert 0 <= digest([2, 2], [1, 2]) < 2**64


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ([0, 3], "between 0 and 3"),
        ([-1, 0], "between -1 and 0"),
        ([0.5, 1.0], "not whole"),
        ([np.nan, 1.0], "missing in 1 rows"),
        (["a", "b"], "of type str"),
        (pd.array([None, 1], "Int64"), "missing in 1 rows"),
    ],
)
def test_rows_that_go_nowhere_are_refused(ids: Any, what: str) -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    with pytest.raises(BadPartitionIds, match=rf"(?s)partition 4: column '_partitions'.*{what}"):
        spec_for(frame, 3).cut(frame.assign(**{IDS: ids}), 4)


@pytest.mark.parametrize("ids", [[0.0, 2.0], pd.array([0, 2], "Int64"), np.array([0, 2], "u1")])
def test_whole_numbers_of_any_type_say_where_rows_go(ids: Any) -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    joined = shuffled(spec_for(frame, 3), [frame], [ids])
    assert [mine["x"].tolist() for mine in joined] == [[1], [], [2]]


def test_columns_that_are_not_declared_are_refused_by_name() -> None:
    frame = pd.DataFrame({"x": [1], "y": [2]})
    spec = spec_for(frame, 1)
    with pytest.raises(ColumnsMismatch, match=r"partition 2: it has columns .* not declared, 'z'"):
        spec.cut(frame.assign(z=1, **{IDS: 0}), 2)
    with pytest.raises(ColumnsMismatch, match="lacks the declared columns 'y'"):
        spec.cut(frame[["x"]].assign(**{IDS: 0}), 2)
    with pytest.raises(ColumnsMismatch, match="lacks the column '_partitions'"):
        spec.cut(frame, 2)
    with pytest.raises(ColumnsMismatch, match="its index has 2 levels, and 1 are declared"):
        spec.cut(frame.assign(**{IDS: 0}).set_index(["x", "y"], drop=False), 2)
    twice = pd.concat([frame, frame[["x"]]], axis=1).assign(**{IDS: 0})
    with pytest.raises(ColumnsMismatch, match="several columns named 'x'"):
        spec.cut(twice, 2)
    with pytest.raises(ColumnsMismatch, match="table to be shuffled has several columns named 'x'"):
        spec_for(frame, 1, meta=twice.iloc[:0]).cut(twice, 0)


def test_a_column_of_another_type_is_refused_by_name() -> None:
    spec = spec_for(pd.DataFrame({"x": [1], "y": ["a"]}), 1)
    with pytest.raises(SchemaMismatch) as caught:
        spec.cut(pd.DataFrame({"x": ["1"], "y": ["a"], IDS: [0]}), 7)
    assert str(caught.value).startswith(
        "Input partition 7: column 'x' is of type str, but int64 is declared: "
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.column, again.input_partition, str(again)) == ("x", 7, str(caught.value))


def test_a_partition_of_missing_values_is_one_of_the_declared_type() -> None:
    some = pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 1.5], "c": ["x", "y"]})
    none = pd.DataFrame({"a": [3.0], "b": [None], "c": [None]})
    (mine,) = shuffled(spec_for(some, 1), [some, none, some], [[0, 0], [0], [0, 0]])
    pd.testing.assert_frame_equal(
        mine, pd.concat([some, none.astype(some.dtypes), some]), check_index_type="equiv"
    )


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (pd.Series([1], dtype="int32"), [pd.Series([2**40])]),
        (pd.Series([1]), [pd.Series([1.5, 2.0]), pd.Series([3])]),
        (pd.Series([1]), [pd.Series([1, None], dtype="Int64"), pd.Series([3]), pd.Series([4.5])]),
        (pd.Series([1]), [pd.Series([v], dtype="Int64") for v in (2**60 + 1, None)]),
        (pd.Series([True]), [pd.Series([1, 0]), pd.Series([2])]),
        (pd.Series([1.0], dtype="float32"), [pd.Series([0.1]), pd.Series([2], dtype="int8")]),
        (
            pd.Series(pd.to_datetime(["2024-01-01"])).dt.as_unit("s"),
            [pd.Series(pd.to_datetime(["2024-01-01 00:00:00.5"])).dt.as_unit("ns")],
        ),
    ],
)
def test_numbers_and_times_of_larger_types_than_declared_come_out_as_pandas_has_them(
    declared: Any, found: list[Any]
) -> None:
    """Dask's own meta says of a sum of 32-bit numbers that it has as many."""
    parts = [pd.DataFrame({"x": values, "y": "text"}) for values in found]
    spec = spec_for(pd.DataFrame({"x": declared, "y": "text"}), 1)
    (mine,) = shuffled(spec, parts, [[0] * len(part) for part in parts])
    pd.testing.assert_frame_equal(mine, pd.concat(parts))


@pytest.mark.parametrize("found", ["int64", "Int64", object])
def test_columns_of_several_types_arrive_writable(found: Any) -> None:
    """Pandas lets nobody write to the values of a Series that it joined."""
    declared = pd.DataFrame({"x": pd.Series([1, 2], dtype="int32")})
    parts = [declared, pd.DataFrame({"x": pd.Series([3, 2**40], dtype=found)})]
    (mine,) = shuffled(spec_for(declared, 1), parts, [[0, 0], [0, 0]])
    mine.iloc[0, 0] = 7
    mine.loc[mine.x == 2, "x"] = 8
    assert mine.x.tolist() == [7, 8, 3, 2**40]


@pytest.mark.parametrize(
    ("found", "nothing"),
    [
        (pd.Series([1.0, 2.0]), pd.Series([np.nan, np.nan])),
        (pd.Series([1, 2]), pd.Series([np.nan])),
        (pd.Series(pd.to_datetime(["2024-01-01"])), pd.Series([pd.NaT])),
        (pd.Series([1, 2], dtype="Int64"), pd.Series([None], dtype="Int64")),
        (pd.Series([1, 2], dtype="category"), pd.Series([None], dtype="category")),
    ],
)
def test_missing_values_alone_make_no_objects_of_what_is_declared_as_text(
    found: Any, nothing: Any
) -> None:
    """Texts are what dask declares of a column of which it knows nothing."""
    parts = [pd.DataFrame({"x": values}) for values in (nothing, found, nothing)]
    spec = spec_for(pd.DataFrame({"x": ["text"]}), 1)
    (mine,) = shuffled(spec, parts, [[0] * len(part) for part in parts])
    dtype = found.dtype if nothing.dtype == "category" else pd.concat([found, nothing]).dtype
    assert mine.x.dtype == dtype
    assert mine.x.dropna().tolist() == found.tolist()
    assert mine.x.isna().sum() == 2 * len(nothing)


def test_categories_that_are_not_declared_go_only_where_they_are_used() -> None:
    declared = pd.DataFrame({"x": ["text"]})
    parts = [pd.DataFrame({"x": pd.Series(range(a, a + 5000), dtype="category")}) for a in (0, 9)]
    ids = np.arange(5000) % 100
    shards = list(spec_for(declared, 100).cut(parts[0].assign(**{IDS: ids}), 0).shards)
    assert sum(len(b"".join(shard.buffers)) for shard in shards) < 500_000
    joined = shuffled(spec_for(declared, 100), parts, [ids, ids])
    assert joined[1].x.tolist() == parts[0].x[1::100].tolist() + parts[1].x[1::100].tolist()
    assert joined[1].x.dtype == "category"


def test_an_index_that_is_not_as_declared_stays_as_it_is() -> None:
    """Functions that make partitions seldom say what index these have."""
    meta = pd.DataFrame({"x": [1]}, index=pd.Index(["a"], name="i"))
    part = pd.DataFrame({"x": [1, 2]}, index=pd.Index([7, 8], name="i"))
    (mine,) = shuffled(spec_for(meta, 1), [part], [[0, 0]])
    pd.testing.assert_frame_equal(mine, part)


def test_values_that_a_merge_left_missing_come_out_as_pandas_has_them() -> None:
    """The meta of an outer merge says int64 and bool, of columns in which it leaves gaps."""
    meta = pd.DataFrame({"n": [1], "b": [True]})
    some = pd.DataFrame({"n": [3, 4], "b": [True, False]})
    gaps = pd.DataFrame({"n": [np.nan, 5.0], "b": pd.Series([np.nan, True], dtype=object)})
    with_gaps, without = shuffled(spec_for(meta, 2), [some, gaps], [[0, 1], [0, 0]])
    expected = pd.concat([some[:1], gaps])
    pd.testing.assert_frame_equal(with_gaps, expected)
    pd.testing.assert_frame_equal(without, some[1:])


def open_meta(ordered: bool = False) -> Any:
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return pd.DataFrame({"c": pd.Categorical([], [UNKNOWN_CATEGORIES], ordered=ordered)})


@pytest.mark.parametrize("seed", range(20))
def test_categories_that_nobody_declared_are_united(seed: int) -> None:
    """Some shards have fewer rows than there are categories, and bring only those they use."""
    random = np.random.default_rng(seed)
    parts, ids = [], []
    for _ in range(random.integers(1, 5)):
        nrows = int(random.integers(0, 20))
        values = random.choice(list("abcdefgh"), nrows)
        column = pd.Categorical(values, random.permutation(list("abcdefgh")))
        parts.append(pd.DataFrame({"c": pd.Series(column).mask(random.random(nrows) < 0.2)}))
        ids.append(random.integers(0, 3, nrows))
    joined = shuffled(spec_for(open_meta(), 3), parts, ids)
    where = np.concatenate(ids)
    whole = pd.concat([part["c"].astype(object) for part in parts]) if parts else None
    for output, mine in enumerate(joined):
        assert mine["c"].dtype == "category"
        expected = whole[where == output]
        assert mine["c"].astype(object).where(mine["c"].notna(), None).tolist() == (
            expected.where(expected.notna(), None).tolist()
        )


def test_categories_of_whole_shards_are_united_as_pandas_does() -> None:
    one = pd.DataFrame({"c": pd.Categorical(["b", "a", "b"], ["b", "a"])})
    other = pd.DataFrame({"c": pd.Categorical(["c", "b", "c", "b"], ["c", "b", "z"])})
    nothing = pd.DataFrame({"c": pd.Categorical([None])})
    ids = [[0] * 3, [0], [0] * 4]
    (mine,) = shuffled(spec_for(open_meta(), 1), [one, nothing, other], ids)
    united = pd.api.types.union_categoricals([one["c"], other["c"]])
    assert mine["c"].cat.categories.tolist() == united.categories.tolist()
    assert mine["c"].dropna().tolist() == list(united)


def test_ordered_categories_that_differ_are_refused() -> None:
    parts = [
        pd.DataFrame({"c": pd.Categorical(["a"], ["a", "b"], ordered=True)}),
        pd.DataFrame({"c": pd.Categorical(["a"], ["b", "a"], ordered=True)}),
    ]
    with pytest.raises(TypeError, match=r"(?s)'c' is an ordered categorical .*Declare them"):
        shuffled(spec_for(open_meta(ordered=True), 1), parts, [[0], [0]])
    (mine,) = shuffled(spec_for(open_meta(ordered=True), 1), [parts[0]] * 2, [[0], [0]])
    assert mine["c"].cat.ordered


def test_declared_categories_in_another_order_are_the_same_values() -> None:
    meta = pd.DataFrame({"c": pd.Categorical([], ["a", "b", "c"])})
    part = pd.DataFrame({"c": pd.Categorical(["c", "a", None], ["c", "b", "a"])})
    (mine,) = shuffled(spec_for(meta, 1), [part, part], [[0] * 3] * 2)
    assert mine["c"].dtype.categories.tolist() == ["a", "b", "c"]
    assert mine["c"].astype(object).fillna("-").tolist() == ["c", "a", "-"] * 2


def test_a_subclass_of_dataframe_stays_one() -> None:
    class Frame(pd.DataFrame):
        @property
        def _constructor(self) -> Any:
            return Frame

    frame = Frame({"x": [1, 2]})
    (mine,) = shuffled(spec_for(frame, 1), [frame], [[0, 0]])
    assert type(mine) is Frame


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1j]),
        pd.Series([1j], dtype="complex64"),
        pd.Series([0, 1], dtype="Sparse[int64]"),
        pd.Series(["a"], dtype=pd.ArrowDtype(pa.string_view())),
    ],
)
def test_types_that_cannot_be_sent_are_refused_before_anything_runs(values: Any) -> None:
    for meta in (values, values.to_frame("x")):
        with pytest.raises(TypeError, match=r"p2p does not support (sparse )?data of type"):
            check_dtype_support(meta.iloc[:0])
    with pytest.raises(UnsupportedDtype):
        spec_for(values.to_frame("x"), 1).cut(values.to_frame("x").assign(**{IDS: 0}), 0)
    check_dtype_support(pd.DataFrame(columns(0, np.random.default_rng(0))))


def test_more_partitions_than_small_numbers_can_tell() -> None:
    frame = pd.DataFrame({"x": np.arange(1000)})
    ids = np.random.default_rng(0).integers(0, 100_000, 1000)
    cut = spec_for(frame, 100_000).cut(frame.assign(**{IDS: ids}), 0)
    assert [shard.output for shard in cut.shards] == sorted(set(ids.tolist()))


def test_the_specification_is_made_without_pandas() -> None:
    program = "import sys, shoal.shuffle.tables; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


def test_dask_calls_the_specification_by_these_words() -> None:
    spec = DataFrameShuffleSpec(
        id="a", npartitions=2, column=IDS, meta=None, parts_out=None, disk=False, drop_column=True
    )
    assert (spec.noutputs, spec.disk) == (2, False)


def test_sparse_values_are_called_so() -> None:
    frame = pd.DataFrame({"x": pd.array([0.0, 1.0], dtype="Sparse[float64]")})
    with pytest.raises(TypeError, match="p2p does not support sparse data of type 'Sparse"):
        check_dtype_support(frame.iloc[:0])
