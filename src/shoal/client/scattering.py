"""Local values into workers' memory: the scheduler says where, the client sends them there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from dask.tokenize import tokenize

from shoal.client.errors import NoWorkers, UnpicklableValue
from shoal.client.future import user_key
from shoal.client.gathering import outcome_error
from shoal.client.machine import CANCELLED, FINISHED, Record
from shoal.client.session import Session
from shoal.comms import CallTimeoutError
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Key, TaskId
from shoal.observe.inside import TaskHost
from shoal.protocol.exceptions import to_failure
from shoal.protocol.holding import ReplicateTasks
from shoal.protocol.messages import ReplicaHeader
from shoal.protocol.payload import dump, hand, kind_of, nbytes_of
from shoal.protocol.transfers import Placement, PlaceScatter

PAUSE_SECONDS: Final = 0.1
"""Before another attempt, so that the scheduler may notice which worker has died."""
ATTEMPTS_MAX: Final = 3
"""Times that a value is offered to workers, as those that it was offered to die."""


def keys_of(values: Any, hashed: bool) -> tuple[list[Any], list[Any], Any]:
    """Take the argument of `scatter` apart.

    Returns:
        Keys in the user's form, the values, and the type to put futures into: a sequence type,
        `dict`, or None for a single value.

    Raises:
        TypeError: an iterator or a queue, whose values can't be looked at twice.
    """
    if hasattr(values, "__next__") or type(values).__name__ in ("Queue", "SimpleQueue"):
        raise TypeError(
            f"Can't scatter a {type(values).__name__}: it can be read only once. "
            "Scatter a list of its values."
        )
    if isinstance(values, Mapping) and type(values) is dict:
        return list(values), list(values.values()), dict
    kind = type(values)
    if kind is range:
        kind, values = list, list(values)
    if kind in (list, tuple, set, frozenset) or (
        isinstance(values, tuple) and hasattr(values, "_fields")
    ):
        parts = list(values)
        return [_key_of(value, hashed) for value in parts], parts, kind
    return [_key_of(values, hashed)], [values], None


def packed(futures: Sequence[Any], keys: Sequence[Any], kind: Any) -> Any:
    """Futures in the container that the values came in."""
    if kind is None:
        return futures[0]
    if kind is dict:
        return dict(zip(keys, futures, strict=True))
    if hasattr(kind, "_fields"):
        return kind(*futures)
    return kind(futures)


def _key_of(value: object, hashed: bool) -> str:
    name = type(value).__name__
    return f"{name}-{tokenize(value) if hashed else uuid4().hex}"


class Scattering:
    """One scatter under way."""

    def __init__(self, session: Session, exchange: ReplicaExchange) -> None:
        self._session = session
        self._exchange = exchange
        self._home: TaskHost | None = None
        self._placed: dict[Record, None] = {}  # whose values were sent, or are on their way

    async def run(
        self,
        keys: Sequence[Key],
        values: Sequence[Any],
        *,
        workers: Sequence[str],
        ncopies: int,
        timeout_seconds: float,
        home: TaskHost | None = None,
    ) -> list[Record]:
        """Place values; a record for each key, with one more future.

        Args:
            ncopies: workers that get each value; 0: all of `workers`.
            home: the worker of this process whose task scatters; it has the values themselves,
                unless it is about to go.

        Raises:
            NoWorkers: none was there in time.
            OSError: no worker could be reached.
            UnpicklableValue: a value can't be pickled.
        """
        session = self._session
        session.require_running()
        self._home = home
        value_by_key = dict(zip(keys, values, strict=True))
        with session.lock:
            session.take_dropped()
            records, new = session.machine.want_scattered(keys)
        try:
            if new:
                fresh = [value_by_key[record.key] for record in new]
                await self._place(new, fresh, workers, ncopies, timeout_seconds)
            await session.wait_all(records)
            if ncopies != 1:
                await self._replicate(records, workers, ncopies)
        except BaseException as error:
            with session.lock:
                for record in new:
                    session.machine.fail(record, to_failure(error, record.key))
                session.machine.release(records)
            session.wake()
            raise
        for record in new:
            if record.status != FINISHED:
                for held in records:
                    session.drop(held)
                raise outcome_error(record)  # a drop is noted only: nothing is forgotten yet
        return records

    async def bring(self, record: Record, value: Any, timeout_seconds: float) -> None:
        """Place a value that the scheduler knows to be coming; returns once it is there.

        Raises as `run`.
        """
        await self._place([record], [value], (), 1, timeout_seconds, again=True)
        await self._session.wait_all([record])

    async def _place(
        self,
        records: list[Record],
        values: list[Any],
        workers: Sequence[str],
        ncopies: int,
        timeout_seconds: float,
        *,
        again: bool = False,
    ) -> None:
        """Ask where to, and send the values there; ask again for those that anybody did not take.

        Again and under the same numbers, because only then does the scheduler know where a value
        is on its way to, and notice when that worker dies.
        """
        parcels = [
            _Parcel(record, value, nbytes_of(value))
            for record, value in zip(records, values, strict=True)
        ]
        for attempt in range(ATTEMPTS_MAX):
            await asyncio.sleep(attempt * PAUSE_SECONDS)
            # What was cancelled meanwhile must not be wanted again under its old number.
            parcels = [parcel for parcel in parcels if parcel.record.status != CANCELLED]
            for run in _consecutive(parcels):
                await self._ask(run, workers, ncopies, timeout_seconds, again=again or attempt > 0)
            parcels = await self._send(parcels, raises=attempt == ATTEMPTS_MAX - 1)
            if not parcels:
                return

    async def _ask(
        self,
        parcels: Sequence[_Parcel],
        workers: Sequence[str],
        ncopies: int,
        timeout_seconds: float,
        *,
        again: bool,
    ) -> None:
        """Where these go; their numbers are consecutive."""
        nearby = "" if self._home is None or again or ncopies != 1 else self._home.address
        try:
            placements: list[Placement] = await self._session.call(
                lambda request: PlaceScatter(
                    request,
                    parcels[0].record.number,
                    [parcel.record.key for parcel in parcels],
                    [parcel.nbytes for parcel in parcels],
                    list(workers),
                    ncopies,
                    again,
                    nearby,
                ),
                timeout_seconds=timeout_seconds,
            )
        except CallTimeoutError as error:
            raise NoWorkers("scatter to", timeout_seconds) from error
        with self._session.lock:
            for parcel, placement in zip(parcels, placements, strict=True):
                parcel.placement = placement
                parcel.record.kind = kind_of(parcel.value)
                # That the worker before was lost has been said by now, so it can't come later.
                if placement.workers:
                    self._placed[parcel.record] = None
                    self._session.machine.place_again(parcel.record)

    async def _replicate(
        self, records: Sequence[Record], workers: Sequence[str], ncopies: int
    ) -> None:
        """As many copies of those that were there already; returns when they are made."""
        keys = [record.key for record in dict.fromkeys(records) if record not in self._placed]
        if keys:
            await self._session.call(
                lambda request: ReplicateTasks(request, keys, ncopies, list(workers))
            )

    async def _send(self, parcels: Sequence[_Parcel], *, raises: bool) -> list[_Parcel]:
        """Send each value to its workers; those that any of them did not take.

        Raises:
            OSError: `raises`, and there is one.
        """
        by_worker: dict[str, list[_Parcel]] = {}
        for parcel in parcels:
            for address in parcel.placement.workers:
                by_worker.setdefault(address, []).append(parcel)
        outcomes = await asyncio.gather(
            *(self._put(address, group) for address, group in by_worker.items()),
            return_exceptions=True,
        )
        left: dict[int, _Parcel] = {}
        for group, outcome in zip(by_worker.values(), outcomes, strict=True):
            if isinstance(outcome, OSError) and not raises:
                left.update((parcel.record.number, parcel) for parcel in group)
            elif outcome is not None:
                try:
                    raise outcome
                finally:
                    del outcome, outcomes  # it holds this frame, which would hold it
        return [left[number] for number in sorted(left)]

    async def _put(self, address: str, parcels: Sequence[_Parcel]) -> None:
        home = self._home
        if home is not None and address == home.address:
            values = [(p.placement.task, p.record.key, p.value, p.nbytes) for p in parcels]
            await asyncio.wrap_future(home.keep(values, self._session.epoch))
            return
        headers: list[ReplicaHeader] = []
        buffers: list[Any] = []
        for parcel in parcels:
            # A worker in this process gets the very object.
            if address.startswith("inproc:"):
                packed = hand(parcel.value)
            else:
                packed = parcel.dumped(self._session.families.written)
            task, key = parcel.placement.task, parcel.record.key
            headers.append(ReplicaHeader(task, key, parcel.nbytes, packed[0], len(packed[1])))
            buffers += packed[1]
        await self._exchange.put(address, headers, buffers, self._session.epoch)


class _Parcel:
    """One value on its way."""

    __slots__ = ("_dumped", "nbytes", "placement", "record", "value")

    def __init__(self, record: Record, value: Any, nbytes: int) -> None:
        self.record = record
        self.value = value
        self.nbytes = nbytes
        self.placement = Placement(TaskId(-1), [])  # until the scheduler has said
        self._dumped: tuple[bytes, list[Any]] | None = None

    def dumped(self, families: Sequence[str] | None) -> tuple[bytes, list[Any]]:
        """The value pickled, once however many workers get it."""
        if self._dumped is None:
            try:
                self._dumped = dump(self.value, families)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise UnpicklableValue(kind_of(self.value), user_key(self.record), why) from error
        return self._dumped


def _consecutive(parcels: Sequence[_Parcel]) -> list[list[_Parcel]]:
    """Runs of parcels whose numbers follow one another."""
    runs: list[list[_Parcel]] = []
    for parcel in parcels:
        if runs and runs[-1][-1].record.number + 1 == parcel.record.number:
            runs[-1].append(parcel)
        else:
            runs.append([parcel])
    return runs
