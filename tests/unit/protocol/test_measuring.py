"""Dataframes are measured at a glance, and about as dask measures them."""

from typing import Any

import pytest
from dask.sizeof import sizeof

from shoal.protocol.measuring import nbytes_at_a_glance
from shoal.protocol.payload import nbytes_of

pd = pytest.importorskip("pandas")
backends = pytest.importorskip("dask.dataframe.backends")

ROWS = 2_000
OVERHEAD = 6_000
"""What dask adds for objects that hold columns together: 1,200 for each type, and more."""


def frame() -> Any:
    return pd.DataFrame(
        {
            "number": range(ROWS),
            "ratio": [n / 7 for n in range(ROWS)],
            "name": [f"name {n % 17}" for n in range(ROWS)],
            "when": pd.date_range("2024-01-01", periods=ROWS, freq="min"),
        }
    )


@pytest.mark.parametrize(
    "value",
    [
        frame(),
        frame().iloc[100:700],
        frame().set_index("when"),
        frame().set_index("name"),
        frame().ratio,
        frame().name,
        frame().when.dt.tz_localize("UTC"),
        frame().number.astype("Int64"),
        pd.DataFrame(),
    ],
    ids=["frame", "part", "times", "texts", "ratio", "name", "zone", "nullable", "empty"],
)
def test_pandas_objects_are_measured_about_as_by_dask(value: Any) -> None:
    found = nbytes_at_a_glance(value)
    assert found is not None
    assert found == pytest.approx(sizeof(value), abs=OVERHEAD)
    assert nbytes_of(value) == found


def test_parts_of_a_shuffle_are_measured_together() -> None:
    parts = {n: frame().iloc[n * 500 : (n + 1) * 500] for n in range(4)}
    found = nbytes_at_a_glance(backends.ShuffleGroupResult(parts))
    assert found is not None
    assert found == pytest.approx(sum(sizeof(part) for part in parts.values()), rel=0.2)


class Frame(pd.DataFrame):  # type: ignore[misc, name-defined]
    """A kind of its own, which may have more than pandas knows of."""


@pytest.mark.parametrize(
    "value",
    [
        frame().astype({"name": object}),
        frame().set_index(["number", "name"]),
        frame().set_index(frame().name.astype(object)),
        backends.ShuffleGroupResult({0: frame().astype({"name": object})}),
        Frame(frame()),
        {0: frame()},
        [frame()],
        7,
    ],
    ids=["objects", "levels", "labels", "parts", "subclass", "dict", "list", "number"],
)
def test_what_is_not_known_at_a_glance_is_left_to_dask(value: Any) -> None:
    assert nbytes_at_a_glance(value) is None
    assert nbytes_of(value) > 0
