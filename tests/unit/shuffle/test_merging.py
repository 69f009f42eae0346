"""Frames shuffled by their keys and merged partition by partition are merged as a whole."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from dask.dataframe.shuffle import partitioning_index

from shoal.shuffle.merging import merge_frames
from tests.unit.shuffle.tabling import shuffled, spec_for

NPARTITIONS = 4
WAYS = ["inner", "left", "right", "outer", "leftsemi"]


def table(random: np.random.Generator, word: str) -> Any:
    nrows = int(random.integers(0, 40))
    return pd.DataFrame(
        {
            "k": random.integers(0, 12, nrows),
            f"{word}k": random.choice(list("abc"), nrows),
            "v": random.random(nrows),
            "text": pd.Series(random.choice(["x", "y"], nrows), dtype="str"),
        }
    )


def partitions(frame: Any, keys: Any, random: np.random.Generator) -> list[Any]:
    """The frame, cut somewhere, and shuffled by the hash of its keys."""
    ids = partitioning_index(keys, NPARTITIONS) if len(frame) else np.zeros(0, int)
    place = int(random.integers(0, len(frame) + 1))
    parts, parts_of_ids = [frame[:place], frame[place:]], [ids[:place], ids[place:]]
    return shuffled(spec_for(frame, NPARTITIONS), parts, parts_of_ids)


def in_any_order(frame: Any) -> Any:
    columns = list(frame.columns)
    return frame.sort_values(columns).reset_index(drop=True)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("seed", range(20))
def test_a_merge_by_partitions_is_the_merge(how: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    left, right = table(random, "l"), table(random, "r")
    left_on, right_on = [("k", "k"), (["k", "lk"], ["k", "rk"])][seed % 2]
    words: dict[str, Any] = {"left_on": left_on, "right_on": right_on, "suffixes": ("_l", "_r")}
    if how == "leftsemi":
        right = right[list(np.atleast_1d(right_on))]
        whole = left.merge(right.drop_duplicates(), how="inner", **words)
    else:
        words["indicator"] = seed % 3 == 0
        whole = left.merge(right, how=how, **words)  # type: ignore[arg-type]

    lefts = partitions(left, left[np.atleast_1d(left_on)].astype({"k": float}), random)
    rights = partitions(right, right[np.atleast_1d(right_on)].astype({"k": float}), random)
    merged = [
        merge_frames(
            one, other, how, meta=whole.iloc[:0], left_index=False, right_index=False, **words
        )
        for one, other in zip(lefts, rights, strict=True)
    ]

    together = pd.concat(merged)
    assert list(together.columns) == list(whole.columns)
    pd.testing.assert_frame_equal(in_any_order(together), in_any_order(whole), check_dtype=False)


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_a_merge_by_index_is_the_merge(how: Any) -> None:
    random = np.random.default_rng(5)
    left, right = table(random, "l").set_index("k"), table(random, "r")
    whole = left.merge(right, how=how, left_index=True, right_on="k")
    lefts = partitions(left, left.index.to_frame().astype(float), random)
    rights = partitions(right, right[["k"]].astype(float), random)
    merged = [
        merge_frames(one, other, how, None, "k", whole.iloc[:0], ("_x", "_y"), True, False)
        for one, other in zip(lefts, rights, strict=True)
    ]
    together = pd.concat(merged)
    pd.testing.assert_frame_equal(in_any_order(together), in_any_order(whole), check_dtype=False)


def test_categories_of_both_sides_are_united() -> None:
    left = pd.DataFrame({"k": pd.Categorical(["a", "b"]), "l": [1, 2]})
    right = pd.DataFrame({"k": pd.Categorical(["b", "c"]), "r": [3, 4]})
    meta = pd.DataFrame({"k": pd.Categorical([]), "l": [], "r": []})
    merged = merge_frames(left, right, "outer", "k", "k", meta, ("_x", "_y"), False, False)
    assert merged["k"].dtype == "category"
    assert sorted(merged["k"].tolist()) == ["a", "b", "c"]
