"""What tests of tables have in common: frames with columns of all types, and shuffles of them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from shoal.shuffle.tables import DataFrameShuffleSpec

IDS = "_partitions"


def spec_for(frame: Any, npartitions: int, **changes: Any) -> DataFrameShuffleSpec:
    """A specification of a shuffle by `IDS`, of frames like this one, and its column of ids."""
    fields = {
        "id": "some",
        "npartitions": npartitions,
        "column": IDS,
        "meta": frame.iloc[:0].assign(**{IDS: np.zeros(0, np.int64)}),
        "parts_out": npartitions,
        "disk": True,
        "drop_column": True,
    }
    return DataFrameShuffleSpec(**{**fields, **changes})


def shuffled(
    spec: DataFrameShuffleSpec, parts: Sequence[Any], ids: Sequence[Any] | None = None
) -> list[Any]:
    """All output partitions of these input partitions.

    Shards are handed to `join` as views of memory that is overwritten afterwards.
    """
    shards: dict[int, list[bytearray]] = {}
    nrows = 0
    for place, part in enumerate(parts):
        sent = part if ids is None else part.assign(**{IDS: ids[place]})
        cut = spec.cut(sent, place)
        outputs = []
        for shard in cut.shards:
            outputs.append(shard.output)
            nrows += shard.nrows
            shards.setdefault(shard.output, []).append(bytearray(b"".join(shard.buffers)))
        assert outputs == sorted(set(outputs))
    joined = []
    for output in range(spec.noutputs):
        mine = shards.get(output, [])
        joined.append(spec.join(output, [memoryview(shard) for shard in mine]))
        for shard in mine:
            shard[:] = b"\xee" * len(shard)
    assert sum(len(frame) for frame in joined) == nrows
    return joined


def columns(nrows: int, random: np.random.Generator) -> dict[str, Any]:
    """A column of each type that a table may have; values and missing ones at random."""
    numbers = random.integers(-100, 100, nrows)
    hidden = random.random(nrows) < 0.3
    words = random.choice(["", "a", "é", "long" * 20], nrows).tolist()
    some_words = [None if gone else word for word, gone in zip(words, hidden, strict=True)]
    instants = pd.Series(pd.Timestamp("2024-10-27") + pd.to_timedelta(numbers, "h"))
    some = {
        "int8": pd.Series(numbers, dtype="int8"),
        "uint64": pd.Series(numbers.astype(np.uint64)),
        "float16": pd.Series(numbers, dtype="float16"),
        "float64": pd.Series(np.where(hidden, np.nan, numbers / 7)),
        "bool": pd.Series(numbers > 0),
        "instant": instants.mask(hidden).astype("datetime64[ns]"),
        "zoned": instants.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris").mask(hidden),
        "duration": pd.Series(pd.to_timedelta(numbers, "s")).mask(hidden),
        "period": pd.Series(pd.PeriodIndex(instants, freq="D")).mask(hidden),
        "interval": pd.Series(pd.arrays.IntervalArray.from_arrays(numbers, numbers + 1)),
        "Int16": pd.Series(numbers, dtype="Int16").mask(hidden),
        "Float64": pd.Series(numbers / 3, dtype="Float64").mask(hidden),
        "boolean": pd.Series(numbers > 0, dtype="boolean").mask(hidden),
        "text": pd.Series(some_words, dtype="str"),
        "string_python": pd.Series(some_words, dtype="string[python]"),
        "string_pyarrow": pd.Series(some_words, dtype="string[pyarrow]"),
        "known": pd.Series(pd.Categorical(some_words, ["a", "", "z", "é", "long" * 20])),
        "ordered": pd.Series(pd.Categorical(numbers, sorted(set(numbers)), ordered=True)),
    }
    return {**some, **_of_arrow(numbers, hidden, words), **_of_python(numbers, hidden, words)}


def _of_arrow(numbers: Any, hidden: Any, words: list[str]) -> dict[str, Any]:
    rows = list(zip(numbers.tolist(), hidden.tolist(), words, strict=True))

    def column(values: list[Any], type: Any) -> Any:
        present = [None if gone else value for value, gone in zip(values, hidden, strict=True)]
        return pd.Series(pd.array(present, dtype=pd.ArrowDtype(type)))

    return {
        "arrow_int": column(numbers.tolist(), pa.int32()),
        "arrow_text": column(words, pa.string()),
        "arrow_list": column([[n] * (n % 3) for n in numbers], pa.list_(pa.int64())),
        "arrow_struct": column(
            [{"n": n, "word": word} for n, _, word in rows],
            pa.struct([("n", pa.int64()), ("word", pa.string())]),
        ),
        "arrow_map": column([[(word, n)] for n, _, word in rows], pa.map_(pa.string(), pa.int8())),
        "arrow_decimal": column([decimal.Decimal(n) / 4 for n, _, _ in rows], pa.decimal128(9, 2)),
        "arrow_date": column([_day(n) for n, _, _ in rows], pa.date32()),
        "arrow_words": column(words, pa.dictionary(pa.int8(), pa.string())),
    }


def _of_python(numbers: Any, hidden: Any, words: list[str]) -> dict[str, Any]:
    def column(values: list[Any], missing: Any) -> Any:
        pairs = zip(values, hidden, strict=True)
        return pd.Series([missing if gone else value for value, gone in pairs], dtype=object)

    return {
        "texts": column(words, words[0] if words else ""),
        "texts_none": column(words, None),
        "texts_nan": column(words, np.nan),
        "texts_na": column(words, pd.NA),
        "half_letters": column(["\ud800" + word for word in words], None),
        "bytes": column([word.encode() + b"\xff" for word in words], None),
        "days": column([_day(n) for n in numbers], None),
        "mixed": column([(n, word) for n, word in zip(numbers, words, strict=True)], "text"),
    }


def _day(number: int) -> datetime.date:
    return datetime.date(2024, 1, 1) + datetime.timedelta(days=int(number))
