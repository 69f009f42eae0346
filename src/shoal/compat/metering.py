"""`distributed.metrics`: what code far below measures, told to whoever asked for it above."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

SECONDS: Final = "seconds"
OTHER: Final = "other"

Metric = tuple[Hashable, float, str]
Callback = Callable[[Hashable, float, str], None]
Floor = float | Literal[False]


@dataclass
class MeterOutput:
    """What a meter has read; `stop` and `delta` are nan until it ends."""

    start: float
    stop: float
    delta: float

    __hash__ = None  # type: ignore[assignment]


@contextmanager
def meter(
    func: Callable[[], float] = time.perf_counter, floor: Floor = 0.0
) -> Iterator[MeterOutput]:
    """Read `func` before and after the block.

    Args:
        floor: what the difference is at least; False: it may be negative.
    """
    read = MeterOutput(func(), math.nan, math.nan)
    try:
        yield read
    finally:
        read.stop = func()
        read.delta = _at_least(floor, read.stop - read.start)


def _at_least(floor: Floor, delta: float) -> float:
    return delta if floor is False else max(floor, delta)


class FineClock:
    """A coarse clock, made fine between its ticks by `time.perf_counter`.

    Clocks of systems that shoal runs on are fine as they are, so that none of this kind is in use.
    """

    def __init__(
        self, base: Callable[[], float], is_monotonic: bool, resync_every: float = 600.0
    ) -> None:
        self._base, self._is_monotonic = base, is_monotonic
        self._resync_seconds = resync_every
        self._last = -math.inf
        self.resync()

    def resync(self) -> None:
        """Hold it against its coarse clock again."""
        self._fine_at = time.perf_counter()
        self._delta = self._base() - self._fine_at

    def time(self) -> float:
        """Seconds, on the coarse clock's scale."""
        fine = time.perf_counter()
        if fine - self._fine_at > self._resync_seconds:
            self.resync()
        now = fine + self._delta
        if self._is_monotonic:
            now = self._last = max(now, math.nextafter(self._last, math.inf))
        return now


@dataclass(frozen=True)
class _Told:
    callback: Callback
    allow_offload: bool


_callbacks: ContextVar[dict[Hashable, _Told]] = ContextVar("shoal_metrics")
"""Key → whom to tell, in the order in which they were added."""


class ContextMeter:
    """Tells those who have asked, in this task or thread, what is measured below them."""

    def __reduce__(self) -> str:
        return "context_meter"

    @contextmanager
    def add_callback(
        self, callback: Callback, *, key: Hashable | None = None, allow_offload: bool = False
    ) -> Iterator[None]:
        """Have `callback(label, value, unit)` called for what is measured in the block.

        Args:
            key: takes the place of another callback that was added with this key.
            allow_offload: what is measured in another thread, by `offload`, is told as well, on the
                loop, when it has ended.
        """
        before = _callbacks.get({})
        name = object() if key is None else key
        token = _callbacks.set({**before, name: _Told(callback, allow_offload)})
        try:
            yield
        finally:
            _callbacks.reset(token)

    @contextmanager
    def clear_callbacks(self) -> Iterator[None]:
        """In the block nobody is told who has asked outside."""
        token = _callbacks.set({})
        try:
            yield
        finally:
            _callbacks.reset(token)

    def digest_metric(self, label: Hashable, value: float, unit: str) -> None:
        """Tell a measurement."""
        for told in list(_callbacks.get({}).values()):
            told.callback(label, value, unit)

    def meter(
        self,
        label: Hashable,
        unit: str = SECONDS,
        func: Callable[[], float] = time.perf_counter,
        floor: Floor = 0.0,
    ) -> _Meter:
        """Measure a block, or a function that this decorates, and tell it.

        Of seconds, those that are told inside are not counted twice.
        """
        return _Meter(label, unit, func, floor)


context_meter: Final = ContextMeter()


class _Meter:
    """See `ContextMeter.meter`."""

    def __init__(self, label: Hashable, unit: str, func: Callable[[], float], floor: Floor) -> None:
        self._metric = label, unit
        self._func, self._floor = func, floor
        self._stack: list[Any] = []

    def __enter__(self) -> MeterOutput:
        measuring = self._measured()
        self._stack.append(measuring)
        return measuring.__enter__()

    def __exit__(self, *args: Any) -> None:
        self._stack.pop().__exit__(*args)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured at each call."""

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self._measured():
                return function(*args, **kwargs)

        return measured

    @contextmanager
    def _measured(self) -> Iterator[MeterOutput]:
        label, unit = self._metric
        inside: list[float] = []

        def note(_: Hashable, value: float, told_unit: str) -> None:
            if unit == told_unit == SECONDS:
                inside.append(value)

        read = MeterOutput(self._func(), math.nan, math.nan)
        try:
            with context_meter.add_callback(note, allow_offload=True):
                yield read
        finally:
            read.stop = self._func()
            read.delta = _at_least(self._floor, read.stop - read.start - sum(inside))
            context_meter.digest_metric(label, read.delta, unit)


class DelayedMetricsLedger:
    """Keeps what is measured in blocks until it is known what to make of it.

    The time that the ledger exists is measured as well.
    """

    def __init__(self, func: Callable[[], float] = time.perf_counter) -> None:
        self.func = func
        self.start = func()
        self.metrics: list[Metric] = []

    @contextmanager
    def record(self, *, key: Hashable | None = None) -> Iterator[None]:
        """Keep what is measured in the block; `key` as for `ContextMeter.add_callback`."""

        def keep(label: Hashable, value: float, unit: str) -> None:
            self.metrics.append((label, value, unit))

        with context_meter.add_callback(keep, key=key):
            yield

    def finalize(
        self, coarse_time: str | Literal[False] = False, floor: Floor = 0.0
    ) -> Iterator[Metric]:
        """The measurements, and the time up to now.

        Args:
            coarse_time: a label for all of the time; False: the seconds that were measured, and
                what is left of them as `other`.
        """
        elapsed = self.func() - self.start
        for label, value, unit in self.metrics:
            if unit != SECONDS or not coarse_time:
                yield label, value, unit
            if unit == SECONDS and not coarse_time:
                elapsed -= value
        yield coarse_time or OTHER, _at_least(floor, elapsed), SECONDS


@contextmanager
def offloaded() -> Iterator[None]:
    """What is measured in the block by another thread, with our context, is told here at its end.

    Only to those who allow that; before it is told how long it took apart from that.
    """
    told = _callbacks.get({})
    if not told:
        yield
        return
    ledger = DelayedMetricsLedger()
    token = _callbacks.set({})
    try:
        with ledger.record():
            yield
    finally:
        _callbacks.reset(token)
        *measured, (_, seconds, unit) = ledger.finalize()
        for label, value, each_unit in [("offload", seconds, unit), *measured]:
            for one in told.values():
                if one.allow_offload:
                    one.callback(label, value, each_unit)
