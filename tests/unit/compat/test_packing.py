"""Keys in nested values, and calls that are tried again."""

import asyncio
import logging

import pytest
from dask._task_spec import TaskRef

from shoal.compat import packing


def test_keys_are_replaced_where_they_stand_for_values() -> None:
    known = {"x": 3, ("x", 1): 9}
    assert packing.pack_data([("x", 1), {"x": "x"}, {"x"}, 5, ("x",)], known) == [
        9, {"x": 3}, {3}, 5, (3,),
    ]  # fmt: skip
    assert packing.pack_data(["x", 1], {"x": 3, 1: 4}, key_types=str) == [3, 1]


def test_a_tasks_function_is_left_and_its_arguments_are_replaced() -> None:
    assert packing.subs_multiple((sum, ["x", 2, {"k": "x"}]), {"x": 1}) == (sum, [1, 2, {"k": 1}])
    assert packing.subs_multiple(("x", "x"), {"x": 1}) == ("x", "x")
    assert packing.subs_multiple([{}], {}) == [{}]


def test_references_are_taken_out() -> None:
    a, b = TaskRef("a"), TaskRef(("b", 1))
    assert packing.unpack_remotedata([a, (b, {"z": a}), 1]) == (
        ["a", (("b", 1), {"z": "a"}), 1],
        {a, b},
    )
    found, references = packing.unpack_remotedata(b, byte_keys=True)
    assert found == "('b', 1)"
    assert [each.key for each in references] == ["('b', 1)"]


def test_a_call_that_fails_is_tried_again_and_not_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ncalls = 0

    async def fail() -> None:
        nonlocal ncalls
        ncalls += 1
        raise OSError("gone")

    async def call() -> str:
        return "done"

    with caplog.at_level(logging.INFO, "shoal"), pytest.raises(OSError, match="gone"):
        asyncio.run(packing.retry(fail, count=2, delay_min=0, delay_max=0, operation="asking"))
    assert ncalls == 3
    assert caplog.text.count("asking failed") == 2
    assert asyncio.run(packing.retry_operation(call, operation="asking")) == "done"


def test_errors_of_another_kind_are_not_tried_again() -> None:
    ncalls = 0

    async def fail() -> None:
        nonlocal ncalls
        ncalls += 1
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        asyncio.run(packing.retry(fail, count=5, delay_min=0, delay_max=0))
    assert ncalls == 1
