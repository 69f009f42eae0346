"""What is measured below is told above, once, to whoever asked."""

import asyncio
import math
import pickle
import threading
from collections.abc import Callable, Hashable, Iterator

import pytest

from shoal.compat import metering
from shoal.compat.looping import offload
from shoal.compat.metering import context_meter


def clock(*readings: float) -> Callable[[], float]:
    left: Iterator[float] = iter(readings)
    return lambda: next(left)


def test_a_meter_reads_before_and_after_whatever_happens() -> None:
    seen: list[metering.MeterOutput] = []

    def fail() -> None:
        with metering.meter(clock(3, 5)) as read:
            assert (read.start, math.isnan(read.stop)) == (3, True)
            seen.append(read)
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    assert (seen[0].stop, seen[0].delta) == (5, 2)
    for floor, delta in ((0.0, 0), (0.5, 0.5), (False, -1)):
        with metering.meter(clock(2, 1), floor=floor) as read:
            pass
        assert read.delta == delta


def test_seconds_that_are_told_inside_are_not_counted_twice() -> None:
    told: list[tuple[Hashable, float, str]] = []
    with (
        context_meter.add_callback(lambda *metric: told.append(metric)),
        context_meter.meter("outer", func=clock(0, 10)),
        context_meter.meter("inner", func=clock(0, 4)),
    ):
        context_meter.digest_metric("read", 7, "bytes")
    context_meter.digest_metric("unheard", 1, "seconds")
    assert told == [("read", 7, "bytes"), ("inner", 4, "seconds"), ("outer", 6, "seconds")]


def test_a_key_takes_the_place_of_the_same_key_and_clearing_of_all() -> None:
    told: list[str] = []

    def tell(word: str) -> Callable[[Hashable, float, str], None]:
        return lambda label, value, unit: told.append(f"{word}{value}")

    with context_meter.add_callback(tell("a"), key="k"), context_meter.add_callback(tell("b")):
        with context_meter.add_callback(tell("c"), key="k"):
            context_meter.digest_metric("x", 1, "u")
        with context_meter.clear_callbacks():
            context_meter.digest_metric("x", 2, "u")
        context_meter.digest_metric("x", 3, "u")
    assert told == ["c1", "b1", "a3", "b3"]


def test_a_ledger_makes_of_its_time_what_it_is_told_at_last() -> None:
    ledger = metering.DelayedMetricsLedger(clock(100, 110, 110))
    with ledger.record():
        context_meter.digest_metric("x", 3, "seconds")
        context_meter.digest_metric("x", 5, "bytes")
    whole = [("x", 3, "seconds"), ("x", 5, "bytes"), ("other", 7, "seconds")]
    assert list(ledger.finalize()) == whole
    assert list(ledger.finalize("failed")) == [("x", 5, "bytes"), ("failed", 10, "seconds")]


def test_a_function_is_measured_at_each_call() -> None:
    @context_meter.meter("f", func=clock(0, 1, 1, 3))
    def f() -> int:
        return 5

    told: list[float] = []
    with context_meter.add_callback(lambda label, value, unit: told.append(value)):
        assert (f(), f()) == (5, 5)
    assert told == [1, 2]


def test_what_another_thread_measures_is_told_on_the_loop_to_those_who_allow_it() -> None:
    told: list[tuple[Hashable, bool]] = []

    async def use() -> None:
        here = threading.get_ident()

        def tell(label: Hashable, value: float, unit: str) -> None:
            told.append((label, threading.get_ident() == here))

        with context_meter.add_callback(tell, allow_offload=True):
            await offload(context_meter.digest_metric, "there", 1, "u")
        with context_meter.add_callback(tell):
            await offload(context_meter.digest_metric, "unheard", 1, "u")

    asyncio.run(use())
    assert told == [("offload", True), ("there", True)]


def test_there_is_one_meter_wherever_it_is_read() -> None:
    assert pickle.loads(pickle.dumps(context_meter)) is context_meter
