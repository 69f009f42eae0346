"""Tables that dask shuffles, sorts, groups or merges have the rows that pandas says they have."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from tests.exchanged.case import Case, chosen, cuts, some
from tests.unit.shuffle.tabling import columns

NROWS_MAX = 60
NPARTS_MAX = 6

KEYS = {
    "int": lambda random, n: pd.Series(random.integers(-5, 12, n)),
    "uint8": lambda random, n: pd.Series(random.integers(0, 9, n), dtype="uint8"),
    "float": lambda random, n: pd.Series(random.integers(-3, 9, n) / 4),
    "bool": lambda random, n: pd.Series(random.integers(0, 2, n) > 0),
    "text": lambda random, n: pd.Series(random.choice(["", "a", "b", "é"], n), dtype="str"),
    "object": lambda random, n: pd.Series(
        random.choice(["x", "yy", "z"], n).tolist(), dtype=object
    ),
    "instant": lambda random, n: (
        pd.Series(pd.Timestamp("2024-03-28"), range(n))
        + pd.to_timedelta(random.integers(0, 9, n), "h")
    ),
    "zoned": lambda random, n: (
        pd.Series(pd.Timestamp("2024-03-28", tz="UTC"), range(n))
        + pd.to_timedelta(random.integers(0, 9, n), "h")
    ).dt.tz_convert("Europe/Paris"),
    "nullable": lambda random, n: pd.Series(random.integers(0, 9, n), dtype="Int64"),
    "category": lambda random, n: pd.Series(
        pd.Categorical(random.choice(list("pqr"), n).tolist(), list("srqp"))
    ),
}
"""Kinds of columns to group and merge by."""

WITHOUT_ORDER = {"bool", "category", "object"}
SHUFFLING = {"shuffle_method": "p2p"}


def parted(random: np.random.Generator, frame: Any) -> tuple[Any, list[int]]:
    """A frame in partitions, of which nobody knows where they end, and how many rows each has."""
    sizes = cuts(random, len(frame), NPARTS_MAX)
    ends = np.cumsum(sizes).tolist()
    parts = [frame.iloc[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return dd.from_map(_itself, parts, meta=frame.iloc[:0], enforce_metadata=False), sizes


def _itself(part: Any) -> Any:
    return part


def shuffling(random: np.random.Generator) -> Case:
    """Columns of all types, shuffled by one or two; rows of a key come together."""
    nrows = _nrows(random)
    by = [chosen(random, list(KEYS)) for _ in range(1 + (random.random() < 0.3))]
    names = [f"k{place}" for place in range(len(by))]
    keys = {name: KEYS[kind](random, nrows) for name, kind in zip(names, by, strict=True)}
    others = columns(nrows, random)
    picked = {name: others[name] for name in some(random, list(others), 8)}
    frame = pd.DataFrame({**keys, **picked, "row": np.arange(nrows)})
    if random.random() < 0.5:
        frame.index = _index(random, nrows)
    noutputs = chosen(random, [None, None, 1, 3, 9])
    lazy, sizes = parted(random, frame)
    wanted = None if random.random() < 0.7 else int(random.integers(lazy.npartitions))

    def compute() -> Any:
        made = lazy.shuffle(names, npartitions=noutputs, **SHUFFLING)
        if wanted is not None and wanted < made.npartitions:
            made.partitions[wanted].compute()
        return dask.compute(*made.to_delayed())

    def check(parts: Any) -> None:
        assert len(parts) == (noutputs or len(sizes))
        found = pd.concat(parts)
        homes = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        groups = found[names].astype(dict.fromkeys(names, object)).apply(tuple, axis=1)
        if len(found):
            assert pd.Series(homes).groupby(groups.to_numpy()).nunique().max() == 1
        for part in parts:
            assert part["row"].is_monotonic_increasing  # rows keep their order
        _same(found.sort_values("row"), frame)

    return Case(f"shuffle by {by} of {list(picked)}, {sizes} to {noutputs}", compute, check)


def _nrows(random: np.random.Generator) -> int:
    return (
        int(random.integers(0, 4)) if random.random() < 0.1 else int(random.integers(1, NROWS_MAX))
    )


def _index(random: np.random.Generator, nrows: int) -> Any:
    kind = chosen(random, ["int", "text", "instant", "zoned", "float", "nullable"])
    name = chosen(random, [None, "index name"])
    if random.random() < 0.15:
        levels = [KEYS[kind](random, nrows), KEYS["int"](random, nrows)]
        return pd.MultiIndex.from_arrays(levels, names=[name, "second"])
    return pd.Index(KEYS[kind](random, nrows), name=name)


def sorting(random: np.random.Generator) -> Case:
    """An index that is set, or values that are put in order."""
    nrows = max(_nrows(random), 1)
    kind = chosen(random, [name for name in KEYS if name not in WITHOUT_ORDER])
    frame = pd.DataFrame(
        {"k": KEYS[kind](random, nrows), "row": np.arange(nrows), "v": random.random(nrows)}
    )
    lazy, sizes = parted(random, frame)
    sets_index = random.random() < 0.6
    ascending = bool(random.random() < 0.7)

    def compute() -> Any:
        if sets_index:
            return lazy.set_index("k", **SHUFFLING).compute()
        return lazy.sort_values("k", ascending=ascending, **SHUFFLING).compute()

    def check(found: Any) -> None:
        if sets_index:
            assert found.index.is_monotonic_increasing
            _same(found.sort_values("row"), frame.set_index("k"))
        else:
            in_order = found["k"] if ascending else found["k"][::-1]
            assert in_order.is_monotonic_increasing
            _same(found.sort_values("row"), frame)

    what = "set_index" if sets_index else f"sort_values {ascending=}"
    return Case(f"{what} of {kind}, {sizes}", compute, check)


def _digest(group: Any) -> int:
    """Something that no group has that lacks a row, or has one twice."""
    return int((group["row"].astype("int64") ** 2).sum() * 1000 + len(group))


def grouping(random: np.random.Generator) -> Case:
    """A function of whole groups."""
    nrows = max(_nrows(random), 1)
    kinds = [chosen(random, [k for k in KEYS if k != "category"])]
    if random.random() < 0.3:
        kinds.append(chosen(random, ["int", "text", "bool"]))
    names = [f"k{place}" for place in range(len(kinds))]
    frame = pd.DataFrame(
        {
            **{name: KEYS[kind](random, nrows) for name, kind in zip(names, kinds, strict=True)},
            "row": np.arange(nrows),
            "v": random.integers(0, 5, nrows),
        }
    )
    lazy, sizes = parted(random, frame)
    way = chosen(random, ["apply", "apply", "transform", "median", "nunique", "drop_duplicates"])

    def compute() -> Any:
        groups = lazy.groupby(names)
        if way == "apply":
            return groups.apply(_digest, meta=(None, "int64"), **SHUFFLING).compute()
        if way == "transform":
            return groups["row"].transform("max", meta=("row", "int64"), **SHUFFLING).compute()
        if way == "median":
            return groups["v"].median(**SHUFFLING).compute()
        if way == "nunique":
            return groups["v"].nunique(split_out=2, **SHUFFLING).compute()
        return lazy[names].drop_duplicates(split_out=2, **SHUFFLING).compute()

    def check(found: Any) -> None:
        groups = frame.groupby(names)
        if way == "apply":
            expected = groups.apply(_digest)
        elif way == "transform":
            expected = groups["row"].transform("max")
        elif way == "median":
            expected = groups["v"].median()
        elif way == "nunique":
            expected = groups["v"].nunique()
        else:
            found = found.sort_values(names, ignore_index=True)
            expected = frame[names].drop_duplicates().sort_values(names, ignore_index=True)
            _same(found, expected)
            return
        pd.testing.assert_series_equal(
            found.sort_index(), expected.sort_index(), check_names=False, check_index_type=False
        )

    return Case(f"groupby {kinds} {way}, {sizes}", compute, check)


def _same(found: Any, expected: Any) -> None:
    pd.testing.assert_frame_equal(found, expected)
