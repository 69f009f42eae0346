"""`MemorySampler`: how much memory the workers of a cluster use, as time goes on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from shoal.client.current import default_client
from shoal.client.errors import ClientClosed, PackageLacking, UnknownMeasure, WouldNotWait
from shoal.comms import OutcomeUnknown
from shoal.observe.memory import memory_of, memory_of_all
from shoal.protocol.questions import Identity, SchedulerIdentity
from shoal.units import GIB, to_seconds

MEASURES: Final = (
    "managed",
    "managed_total",
    "optimistic",
    "process",
    "spilled",
    "unmanaged",
    "unmanaged_old",
    "unmanaged_recent",
)
"""What may be sampled: all that `MemoryState` has."""


class MemorySampler:
    """Samples of all workers' memory, a series for each label.

    sampler = MemorySampler()
    with sampler.sample("first"):
        ...
    sampler.plot(align=True)
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[float, int]]] = {}
        """Label → when (s since the epoch) and how much (bytes, of all workers together)."""

    def sample(
        self,
        label: str | None = None,
        *,
        client: Any = None,
        measure: str = "process",
        interval: float | str = 0.5,
    ) -> Sampling:
        """What samples while its block runs: by `with`, or `async with` of an asynchronous client.

        Args:
            label: of the series, which is begun anew; None: a random one.
            client: None: the default one.
            measure: what of the memory; a property of `MemoryState`.
            interval: between two samples (s, or a text).

        Raises:
            UnknownMeasure: there is none of that name (a ValueError).
            ValueError: there is no client, or this is no interval.
        """
        if measure not in MEASURES:
            raise UnknownMeasure(measure, MEASURES)
        seconds = to_seconds(interval)
        if not seconds > 0:
            raise ValueError(f"interval= is a duration above 0, not {interval!r}")
        series = self.samples[label or uuid4().hex] = []
        return Sampling(client or default_client(), measure, seconds, series)

    def to_pandas(self, *, align: bool = False) -> Any:
        """A data frame, with a column of bytes for each series, by time.

        What lies between two samples of a series is interpolated.

        Args:
            align: time since the first sample of each series, instead of the time of day.

        Raises:
            PackageLacking: pandas is not installed (an ImportError).
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise PackageLacking("MemorySampler.to_pandas()", "pandas") from error

        columns = {}
        for label, samples in self.samples.items():
            at = pd.to_datetime([when for when, _ in samples], unit="s")
            column = pd.Series([nbytes for _, nbytes in samples], index=at, dtype="float64")
            column = column[~column.index.duplicated(keep="last")]
            if align and samples:
                column.index -= column.index[0]
            columns[label] = column
        frame = pd.DataFrame(columns)
        return frame.interpolate(method="time", limit_area="inside") if len(frame) else frame

    def plot(self, *, align: bool = False, **kwargs: Any) -> Any:
        """The series in GiB, as `pandas.DataFrame.plot` draws them, which gets `kwargs`.

        Raises:
            PackageLacking: matplotlib, or pandas, is not installed (an ImportError).
        """
        frame = self.to_pandas(align=align) / GIB
        try:
            return frame.plot(**{"xlabel": "time", "ylabel": "Cluster memory (GiB)"} | kwargs)
        except ImportError as error:
            raise PackageLacking("MemorySampler.plot()", error.name or "matplotlib") from error


class Sampling:
    """Takes a sample now and then from when it is entered until it is left, and one at each end."""

    def __init__(
        self, client: Any, measure: str, seconds: float, series: list[tuple[float, int]]
    ) -> None:
        self._client, self._measure, self._seconds = client, measure, seconds
        self._series = series
        self._going: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        if self._client.asynchronous:
            raise WouldNotWait("MemorySampler.sample()")
        self._client.sync(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ClientClosed):  # in the block: nothing is left to look at
            self._client.sync(self._end)

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end()

    async def _begin(self) -> None:
        await self._look()
        self._going = asyncio.create_task(self._go_on())

    async def _end(self) -> None:
        going, self._going = self._going, None
        if going is not None:
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)  # the last look tells what is wrong
        if self._client.session.is_open:
            await self._look()

    async def _go_on(self) -> None:
        while self._client.session.is_open:
            await asyncio.sleep(self._seconds)
            with contextlib.suppress(OutcomeUnknown):  # the next look is once it is back
                await self._look()

    async def _look(self) -> None:
        identity: Identity = await self._client.session.call(
            lambda request: SchedulerIdentity(request, -1)
        )
        of_all = memory_of_all(memory_of(worker) for worker in identity.workers)
        self._series.append((time.time(), int(getattr(of_all, self._measure))))
