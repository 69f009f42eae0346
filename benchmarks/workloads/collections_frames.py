"""Dataframes whose partitions are made by workers: computations of `collections.COLLECTIONS`."""

from __future__ import annotations

from functools import cache
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd

from benchmarks.workloads.collections import Case

ROWS = 10_000
MERGE_ROWS = 8_000
NKEYS = 1_000
CITIES = ("Aachen", "Basel", "Chur", "Davos", "Essen", "Fulda", "Genf")


def make_partition(number: int, nrows: int = ROWS) -> Any:
    """One partition: numbers, texts and times, as tables have them."""
    row = np.arange(number * nrows, (number + 1) * nrows)
    mixed = (row * 2_654_435_761) % 4_294_967_291
    return pd.DataFrame(
        {
            "key": mixed % NKEYS,
            "value": (mixed % 100_003).astype(np.float64),
            "city": pd.Categorical.from_codes(mixed % len(CITIES), list(CITIES)).astype(str),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(mixed % 31_536_000, unit="s"),
        }
    )


def make_weights(number: int, nrows: int = NKEYS) -> Any:
    """One partition of the other side of a merge: each key once per partition."""
    row = np.arange(nrows)
    return pd.DataFrame({"key": (row * 37) % NKEYS, "weight": row % 11 + number})


def table(npartitions: int, nrows: int = ROWS) -> Any:
    """The dataframe in partitions."""
    meta = make_partition(0, 1).iloc[:0]
    return dd.from_map(make_partition, range(npartitions), nrows=nrows, meta=meta)


@cache
def whole(npartitions: int, nrows: int = ROWS) -> Any:
    """The same in one piece."""
    return pd.concat(
        [make_partition(number, nrows) for number in range(npartitions)], ignore_index=True
    )


def same(value: Any, expected: Any) -> bool:
    """Whether two pandas objects have the same values at the same labels, in any order."""
    left, right = value.sort_index(), expected.sort_index()
    return left.index.equals(right.index) and bool(np.allclose(left, right))


def groupby(size: int) -> Case:
    """Statistics of each key, and of each city."""
    wanted = {"value": ["mean", "min", "max", "count"]}
    grouped = table(size).groupby("key").agg(wanted)
    return Case(grouped.compute, lambda: whole(size).groupby("key").agg(wanted), same)


def merge(size: int) -> Case:
    """Every row with its weights, each side shuffled by key, then summed."""
    left = table(size, MERGE_ROWS)
    right = dd.from_map(make_weights, range(size), meta=make_weights(0).iloc[:0])
    right = right.groupby("key").weight.sum(split_out=size).reset_index()
    merged = left.merge(right, on="key", shuffle_method="tasks", broadcast=False)
    result = merged.assign(product=merged.value * merged.weight).groupby("city").product.sum()

    def expected() -> Any:
        weights = pd.concat([make_weights(number) for number in range(size)])
        weights = weights.groupby("key").weight.sum().reset_index()
        found = whole(size, MERGE_ROWS).merge(weights, on="key")
        return found.assign(product=found.value * found.weight).groupby("city")["product"].sum()

    return Case(result.compute, expected, same)


def describe_keys(partition: Any) -> Any:
    """Of the rows of each key in a partition: how many, and their sum."""
    return partition.groupby("key").value.agg(["count", "sum"])


def shuffle(size: int) -> Case:
    """All rows of a key come together: no key is in two partitions, or it would be told twice."""
    shuffled = table(size).shuffle("key", shuffle_method="tasks")
    meta = describe_keys(make_partition(0, 10)).iloc[:0]
    described = shuffled.map_partitions(describe_keys, meta=meta)
    return Case(described.compute, lambda: describe_keys(whole(size)), same)


def seconds_of(times: Any) -> Any:
    """Whole seconds since 1970, whatever the unit of `times` is."""
    return np.asarray(times).astype("datetime64[s]").astype(np.int64)


def describe_order(partition: Any) -> Any:
    """First and last label of a sorted partition, its length, and the sum of its labels."""
    when = seconds_of(partition.index)
    assert (np.diff(when) >= 0).all()
    return pd.DataFrame({"first": [when[0]], "last": [when[-1]], "n": len(when), "sum": when.sum()})


def set_index(size: int) -> Case:
    """Sort by time: quantiles first, then a shuffle by them, then each partition by itself."""
    source = table(size)
    meta = describe_order(make_partition(0, 10).set_index("when").sort_index()).iloc[:0]

    def compute() -> Any:
        return source.set_index("when").map_partitions(describe_order, meta=meta).compute()

    def agree(found: Any, expected: Any) -> bool:
        """Whether the partitions follow each other, without one row more or less."""
        first, last = found["first"].to_numpy(), found["last"].to_numpy()
        when = np.sort(seconds_of(expected["when"]))
        return bool(
            (last[:-1] <= first[1:]).all()
            and (first[0], last[-1]) == (when[0], when[-1])
            and (found["n"].sum(), found["sum"].sum()) == (len(when), when.sum())
        )

    return Case(compute, lambda: whole(size), agree)


def chain(size: int) -> Case:
    """Filter, assign, fill, select, row by row; then a sum."""

    def result(df: Any) -> Any:
        df = df[df.value > 500]
        df = df.assign(ratio=df.value / (df.key + 1))
        df = df.fillna({"ratio": 0.0})
        return df[["city", "ratio"]].groupby("city").ratio.sum()

    return Case(result(table(size)).compute, lambda: result(whole(size)), same)
