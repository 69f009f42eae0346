"""Merges of tables in partitions are those of the whole tables, whatever they are merged by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.exchanged.case import Case, chosen
from tests.exchanged.tables import KEYS, SHUFFLING, parted

NROWS_MAX = 40

WAYS = ["inner", "left", "right", "outer", "leftsemi"]


NOT_BY = {
    "left index": ("object", "instant", "zoned", "category"),
    "right index": ("object", "instant", "zoned", "category"),
    "both": ("object",),
}
"""What dask does not merge as pandas does, however it shuffles: it foretells another type of the
index."""


def merging(random: np.random.Generator) -> Case:
    """Two tables, by columns or their index; every `how`, suffix and indicator."""
    how = chosen(random, WAYS)
    place = chosen(random, ["on", "on", "named", "left index", "right index", "both"])
    if how == "leftsemi":
        place = chosen(random, ["on", "named"])
    kinds = [chosen(random, [kind for kind in KEYS if kind not in NOT_BY.get(place, ())])]
    if place in {"on", "named"} and random.random() < 0.3:
        kinds.append(chosen(random, list(KEYS)))
    keys = [f"k{number}" for number in range(len(kinds))]
    right_keys = [f"r{key}" for key in keys] if place == "named" else keys
    left, right = _side(random, kinds, keys, "l"), _side(random, kinds, right_keys, "r")
    if place in {"left index", "both"}:
        left = left.set_index(keys[0])
    if place in {"right index", "both"}:
        right = right.set_index(keys[0])
    if how == "leftsemi":
        right = right[right_keys]
    words: dict[str, Any] = {"suffixes": chosen(random, [("_x", "_y"), ("", "_right"), ("_l", "")])}
    if how != "leftsemi":
        words["indicator"] = bool(random.random() < 0.3)
    words |= {
        "on": {"on": keys},
        "named": {"left_on": keys, "right_on": right_keys},
        "left index": {"left_index": True, "right_on": keys[0]},
        "right index": {"left_on": keys[0], "right_index": True},
        "both": {"left_index": True, "right_index": True},
    }[place]
    lazy_left, left_sizes = parted(random, left)
    lazy_right, right_sizes = parted(random, right)
    # where dask broadcasts a side of a semi-join, it counts rows twice
    broadcast = None if random.random() < 0.2 and how != "leftsemi" else False
    # by one side's index alone, the merged index is of another type than dask foretells
    again = random.random() < 0.2 and place not in {"left index", "right index"}

    def compute() -> Any:
        merged = lazy_left.merge(lazy_right, how=how, broadcast=broadcast, **words, **SHUFFLING)
        if again:
            merged = merged.shuffle("lrow", **SHUFFLING)
        return merged._meta, merged.compute()

    def check(made: Any) -> None:
        meta, found = made
        if how == "leftsemi":
            plain = {name: value for name, value in words.items() if name != "suffixes"}
            expected = left.merge(right.drop_duplicates(), how="inner", **plain)[list(left.columns)]
        else:
            expected = left.merge(right, how=how, **words)
        by = [name for name in ("lrow", "rrow") if name in expected.columns]
        found, expected = (_in_order(frame, by, place == "both") for frame in (found, expected))
        assert list(found.columns) == list(expected.columns)
        pd.testing.assert_frame_equal(found, _as_declared(expected, found, meta))

    said = ", ".join(f"{name}={value!r}" for name, value in words.items())
    return Case(
        f"{how} merge by {kinds} {said}, {left_sizes} and {right_sizes}, {broadcast=} {again=}",
        compute,
        check,
    )


def _side(random: np.random.Generator, kinds: list[str], keys: list[str], side: str) -> Any:
    nrows = int(random.integers(0, NROWS_MAX))
    return pd.DataFrame(
        {
            **{key: KEYS[kind](random, nrows) for kind, key in zip(kinds, keys, strict=True)},
            f"{side}row": np.arange(nrows),
            "v": random.integers(0, 5, nrows),
            f"{side}truth": random.random(nrows) < 0.5,
            f"{side}text": pd.Series(random.choice(["x", "y"], nrows), dtype="str"),
            f"{side}float": random.random(nrows),
        }
    )


def _as_declared(expected: Any, found: Any, meta: Any) -> Any:
    """What is expected, of the types that dask foretold where those came out of it.

    It foretells floats where whole numbers may turn out to be missing.
    """
    for name, declared in meta.dtypes.items():
        if found[name].dtype == declared:
            expected[name] = expected[name].astype(declared)
    if found.index.dtype == meta.index.dtype:
        expected.index = expected.index.astype(meta.index.dtype)
    return expected


def _in_order(frame: Any, by: list[str], has_index: bool) -> Any:
    ordered = frame.sort_values(by)
    return ordered if has_index else ordered.reset_index(drop=True)
