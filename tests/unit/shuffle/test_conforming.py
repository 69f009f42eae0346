"""What a partition holds becomes what was declared, stays as it is, or is refused."""

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.shuffle.conforming import conform
from shoal.shuffle.errors import SchemaMismatch


def objects(*values: Any) -> Any:
    return pd.Series(list(values), dtype=object)


def arrow(type: Any) -> Any:
    return pd.ArrowDtype(type)


INSTANTS = pd.Series(pd.date_range("2024-10-26", periods=3, unit="ns"))
ABC = pd.CategoricalDtype(["a", "b", "c"])

KEPT: list[tuple[Any, Any, Any]] = [
    # found, declared, what comes
    (pd.Series([1, 2], dtype="int32"), "int64", [1, 2]),
    (pd.Series([1, 2]), "float64", [1.0, 2.0]),
    (pd.Series([True, False]), "int64", [1, 0]),
    (objects(1, 2), "int64", [1, 2]),
    (objects(decimal.Decimal("1.5"), None), "float64", [1.5, None]),
    (pd.Series([1, 2], dtype="Int64"), "int64", [1, 2]),
    (pd.Series([1, None], dtype="Int64"), "float64", [1.0, None]),
    (pd.Series([1], dtype="int64[pyarrow]"), "int64", [1]),
    (objects("a", None), "str", ["a", None]),
    (objects("a", None), "string[python]", ["a", None]),
    (pd.Series(["a"]), "string[pyarrow]", ["a"]),
    (pd.Series(["a"], dtype="string"), object, ["a"]),
    (pd.Series(["a"]), arrow(pa.string()), ["a"]),
    (pd.Series([1]), object, [1]),
    (INSTANTS.dt.as_unit("s"), "datetime64[ns]", INSTANTS.tolist()),
    (INSTANTS.dt.tz_localize("UTC"), "datetime64[ns, Europe/Paris]", INSTANTS.tolist()),
    (objects(datetime.datetime(2024, 1, 1)), "datetime64[us]", [pd.Timestamp("2024-01-01")]),
    (objects(datetime.date(2024, 1, 1)), arrow(pa.date32()), [datetime.date(2024, 1, 1)]),
    (pd.Series(["a", "b"]), ABC, ["a", "b"]),
    (pd.Series(["a", None], dtype="category"), ABC, ["a", None]),
    (pd.Series(pd.Categorical(["c"], ["c", "b", "a"])), ABC, ["c"]),
    (pd.Series(pd.Categorical(["a"], ["z", "a"])), ABC, ["a"]),
    (pd.Series(["a", "b"], dtype="category"), "str", ["a", "b"]),
    (pd.Series([1, 2], dtype="category"), "float64", [1.0, 2.0]),
]

STAYING: list[tuple[Any, Any]] = [
    # found, declared
    (pd.Series([1, 2], dtype="int64"), "int8"),
    (pd.Series([300]), "int8"),
    (pd.Series([-1]), "uint64"),
    (pd.Series([2**53 + 1]), "float64"),
    (pd.Series([1.0, 2.0]), "int64"),
    (pd.Series([1.5, None]), "int64"),
    (pd.Series([1.5]), "float32"),
    (pd.Series([1.0, np.nan]), "Int64"),
    (pd.Series([1, None], dtype="Int64"), "int64"),
    (pd.Series([None, None], dtype="Int64"), "int64"),
    (pd.Series([None], dtype="int64[pyarrow]"), "int64"),
    (pd.Series([None], dtype="boolean"), "bool"),
    (pd.Series([1, 0]), "bool"),
    (pd.Series([1]), arrow(pa.int8())),
    (pd.Series([1.5]), arrow(pa.int8())),
    (objects(True, None), "bool"),
    (objects(None, 1, 2.5), "int64"),
    (objects(2**70), "int64"),
    (INSTANTS, "datetime64[s]"),
    (INSTANTS.dt.tz_localize("UTC"), "datetime64[us, Europe/Paris]"),
    (INSTANTS.dt.tz_localize("UTC"), "datetime64[ns]"),
    (INSTANTS, "datetime64[ns, UTC]"),
    (INSTANTS - INSTANTS, "timedelta64[s]"),
    (pd.Series([1]), arrow(pa.string())),
    (objects(b"a"), "str"),
    (objects("a", 1), "str"),
    (pd.Series([1]), "str"),
]

REFUSED: list[tuple[Any, Any, str]] = [
    (pd.Series(["1"]), "int64", "it holds text"),
    (pd.Series([1j]), "float64", "it holds complex"),
    (pd.Series([5]), "datetime64[us]", "it holds number"),
    (pd.Series(["a", "y", "z"]), ABC, "2 of its values are no declared categories, such as 'y'"),
    (pd.Series(["z"], dtype="category"), ABC, "1 of its values are no declared categories"),
    (
        INSTANTS.dt.tz_localize("UTC").astype("category"),
        "datetime64[ns]",
        "one has a time zone, the other has none",
    ),
    (
        (INSTANTS + pd.Timedelta(1, "ns")).astype("category"),
        "datetime64[s]",
        "it is more precise",
    ),
    (
        pd.Series(pd.Categorical(["a", "b"], ["b", "a"], ordered=True)),
        pd.CategoricalDtype(["a", "b"], ordered=True),
        "its categories are in another order",
    ),
]


@pytest.mark.parametrize(("found", "declared", "values"), KEPT)
def test_what_loses_nothing_is_converted(found: Any, declared: Any, values: list[Any]) -> None:
    dtype = pd.Series([], dtype=declared).dtype
    converted = conform(found, dtype, "x", 0)
    assert converted.dtype == dtype
    if isinstance(dtype, pd.CategoricalDtype):
        assert converted.cat.categories.tolist() == dtype.categories.tolist()
    if getattr(dtype, "tz", None) is not None:
        converted = converted.dt.tz_convert("UTC").dt.tz_localize(None)
    assert [None if pd.isna(value) else value for value in converted] == values


@pytest.mark.parametrize(("found", "declared"), STAYING)
def test_what_holds_more_than_is_declared_stays(found: Any, declared: Any) -> None:
    assert conform(found, pd.Series([], dtype=declared).dtype, "x", 0) is found


@pytest.mark.parametrize(("found", "declared", "why"), REFUSED)
def test_a_level_of_an_index_stays_whatever_is_declared(
    found: Any, declared: Any, why: str
) -> None:
    assert why
    assert conform(found, pd.Series([], dtype=declared).dtype, "index", None) is found


@pytest.mark.parametrize(("found", "declared", "why"), REFUSED)
def test_what_is_of_another_kind_is_refused(found: Any, declared: Any, why: str) -> None:
    dtype = pd.Series([], dtype=declared).dtype
    with pytest.raises(SchemaMismatch, match=why) as caught:
        conform(found, dtype, "x", 3)
    assert (caught.value.column, caught.value.declared) == ("x", str(dtype))


@pytest.mark.parametrize(
    "declared",
    [
        *("float32", "str", "string", "Int8", "boolean", "datetime64[us]", "datetime64[ns, UTC]"),
        *("timedelta64[s]", "period[D]", "interval[float64]", object, ABC, "category"),
        *(arrow(pa.list_(pa.int8())), arrow(pa.decimal128(5, 1))),
    ],
)
def test_missing_values_alone_are_of_any_type_that_has_some(declared: Any) -> None:
    dtype = pd.Series([], dtype=declared).dtype
    for found in (objects(None, None), pd.Series([np.nan] * 2), pd.Series([pd.NaT] * 2)):
        converted = conform(found, dtype, "x", 0)
        assert converted.dtype == dtype
        assert converted.isna().tolist() == [True, True]


@pytest.mark.parametrize("declared", ["int64", "bool", "str", ABC, arrow(pa.int8()), "period[D]"])
def test_no_values_are_of_any_type(declared: Any) -> None:
    dtype = pd.Series([], dtype=declared).dtype
    for found in (objects(), pd.Series([], dtype="float64"), pd.Series([], dtype="str")):
        converted = conform(found, dtype, "x", 0)
        assert (converted.dtype, len(converted)) == (dtype, 0)


@pytest.mark.parametrize(
    ("declared", "comes"), [("int64", "float64"), ("uint8", "float64"), ("bool", "object")]
)
def test_missing_values_alone_are_what_pandas_has_where_the_type_has_none(
    declared: str, comes: str
) -> None:
    for found in (objects(None, None), objects(np.nan), pd.Series([np.nan] * 2)):
        converted = conform(found, np.dtype(declared), "x", 0)
        assert converted.dtype == comes
        assert converted.isna().all()


def test_the_declared_type_itself_is_not_copied() -> None:
    found = pd.Series([1, 2])
    assert conform(found, np.dtype("int64"), "x", 0) is found
