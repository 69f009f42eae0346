"""Results to the client: small ones are here already, large ones are fetched from their holders.

Holders are asked directly, each for all it is asked for at once; then, where none can be reached,
the scheduler fetches for us; and where the result has gone meanwhile, it is waited for again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

from shoal.client.blocking import taken
from shoal.client.errors import ResultUnreachable
from shoal.client.future import ACTORS, exception_of, user_key
from shoal.client.incoming import Delivery
from shoal.client.machine import CANCELLED, ERROR, FINISHED, UNRESOLVED, Record
from shoal.client.machine.wants import LOST_DEPENDENCIES
from shoal.client.session import Session
from shoal.comms import OutcomeUnknown
from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.exchange import ReplicaExchange
from shoal.errors import FutureCancelledError, FuturesCancelledError
from shoal.ids import TaskId
from shoal.protocol.exceptions import from_failure, tell_unreadable
from shoal.protocol.messages import Replicas
from shoal.protocol.payload import load
from shoal.protocol.transfers import FetchThroughScheduler

REQUEST_BYTES_MAX: Final = 64 * 2**20
"""Results asked of one worker in one request; one result is always allowed."""
REQUEST_TASKS_MAX: Final = 2000
HOLDERS_MAX: Final = 16
"""Workers fetched from at once."""
LOAD_ASIDE_NBYTES_MIN: Final = 2**20
"""Streams from here on are unpickled in a thread, so that the loop stays responsive."""
MISSING_SECONDS_MAX: Final = 30.0
"""How long a result may be nowhere to be found while the scheduler believes in it."""
PAUSE_SECONDS_MIN: Final = 0.02
PAUSE_SECONDS_MAX: Final = 1.0

_OURS: Final = os.path.dirname(__file__) + os.sep

FAILED: Final = object()
"""Stands for a result that was skipped."""


class Gathering:
    """One gather under way.

    Args:
        skip: leave out what failed instead of raising.
        direct: ask holders; False: only through the scheduler.
        face: the client that the user holds, by way of which actors are called.
    """

    def __init__(
        self,
        session: Session,
        exchange: ReplicaExchange,
        *,
        skip: bool = False,
        direct: bool = True,
        missing_seconds_max: float = MISSING_SECONDS_MAX,
        face: Any = None,
    ) -> None:
        self._face = face
        self._missing_seconds_max = missing_seconds_max
        self._session = session
        self._exchange = exchange
        self._skip = skip
        self._direct = direct
        self._unreachable: dict[str, str] = {}  # holder -> why
        self._error: BaseException | None = None
        self.values: dict[Record, Any] = {}

    async def run(self, records: Sequence[Record]) -> dict[Record, Any]:
        """Wait for all records; their values, or FAILED where one was skipped.

        Raises:
            BaseException: what the first failed task raised, with its traceback.
            FutureCancelledError: a task was cancelled.
            ResultUnreachable: a result exists, but can't be brought here.
        """
        left = list(dict.fromkeys(records))
        pause_seconds = PAUSE_SECONDS_MIN
        give_up_at = None
        while left:
            if any(record.status in UNRESOLVED for record in left):
                give_up_at = None  # the scheduler knows that it is gone, and sees to it
            await self._session.wait_all(left, until_failed=not self._skip)
            far = self._take_near(left)
            self._raise_error()
            if self._session.machine.astray:
                give_up_at = None  # the scheduler that is back will say where they are
                await self._session.wait_found(far)
            left = await self._fetch(far)
            self._raise_error()
            if not left:
                break
            now = time.monotonic()
            give_up_at = give_up_at or now + self._missing_seconds_max
            if now > give_up_at:
                record = left[0]
                why = "; ".join(f"{a}: {w}" for a, w in self._unreachable.items())
                raise ResultUnreachable(user_key(record), record.holders, why or "it is not there")
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
            self._unreachable.clear()
        return self.values

    def _take_near(self, records: Sequence[Record]) -> list[Record]:
        """Take what came along with the news; the rest has to be fetched."""
        far = []
        values = self.values
        for record in records:
            if record.status == FINISHED:
                if record.value is not None:
                    try:
                        values[record] = load_near(record, self._face)
                    except BaseException as error:
                        self._fail(record, error)
                else:
                    far.append(record)
            elif record.status in (ERROR, CANCELLED):
                self._fail(record, outcome_error(record))
            else:
                far.append(record)  # lost again, or not waited for since another failed
        return far

    def _raise_error(self) -> None:
        if self._error is not None and not self._skip:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # it holds this frame, which would hold it

    def _fail(self, record: Record, error: BaseException) -> None:
        """There will be no value.  The error is raised by `run` alone, since what a user's value
        raises (a SystemExit, or an OSError like the network's own) must not be taken for ours."""
        self.values[record] = FAILED
        if self._error is None:  # an exception may well be false
            self._error = error

    async def _fetch(self, far: list[Record]) -> list[Record]:
        """Fetch what can be; those that nobody gave."""
        left = far
        while self._direct and left:
            groups = self._group(left)
            if not groups:
                break
            limit = asyncio.Semaphore(HOLDERS_MAX)
            work = [self._fetch_from(a, group, limit) for a, group in groups.items()]
            await _all(work)
            left = [record for record in left if record not in self.values]
        left = [record for record in left if record.status == FINISHED]
        if left:
            await self._fetch_through_scheduler(left)
        return [record for record in far if record not in self.values]

    def _group(self, records: Sequence[Record]) -> dict[str, list[Record]]:
        """By holder: each record goes to the one that has least to send so far."""
        groups: dict[str, list[Record]] = {}
        nbytes: dict[str, int] = {}
        for record in records:
            holders = [a for a in record.holders if a not in self._unreachable]
            if holders and record.status == FINISHED:
                address = min(holders, key=lambda a: nbytes.get(a, 0))
                nbytes[address] = nbytes.get(address, 0) + record.nbytes + 1000
                groups.setdefault(address, []).append(record)
        return groups

    async def _fetch_from(
        self, address: str, records: list[Record], limit: asyncio.Semaphore
    ) -> None:
        async with limit:
            try:
                for group in _requests(records):
                    asked = {record.task: record for record in group}
                    replicas, buffers = await self._exchange.get(
                        address,
                        list(asked),
                        self._session.epoch,
                        sum(record.nbytes for record in group),
                    )
                    if await self._take(replicas, buffers, asked):
                        # It lacks some of them: another holder, or the scheduler, may have them.
                        self._unreachable[address] = "it no longer has it"
            except OSError as error:  # the network's; what values raise is kept apart
                self._unreachable[address] = str(error)

    async def _fetch_through_scheduler(self, records: list[Record]) -> None:
        session = self._session
        for group in _requests(records):
            if session.is_away:
                return
            asked = {record.task: record for record in group}
            try:
                delivery: Delivery = await session.call(
                    partial(FetchThroughScheduler, tasks=list(asked))
                )
            except OutcomeUnknown:
                return  # it is asked for again once the scheduler is back
            await self._take(delivery.message, delivery.buffers, asked)

    async def _take(
        self, replicas: Replicas, buffers: list[Any], by_task: dict[TaskId, Record]
    ) -> bool:
        """Take values out of Replicas and their buffers; whether any was missing.

        Args:
            by_task: as they were asked for: a scheduler that came back numbers them anew.
        """
        at = 0
        for header in replicas.replicas:
            mine = buffers[at : at + header.nbuffers]
            at += header.nbuffers
            record = by_task.pop(header.task, None)
            if record is None:
                continue
            try:
                stream = self._session.families.guard(header.header)
                self.values[record] = await _load(stream, mine)
            except BaseException as error:
                if is_our_cancellation(error):
                    raise
                tell_unreadable(error, record.key)
                self._fail(record, error)
        for task, failure in replicas.failed:
            record = by_task.pop(TaskId(task), None)
            if record is not None:
                self._fail(record, from_failure(failure))
        return bool(by_task)


async def _load(stream: bytes, buffers: Sequence[Any]) -> object:
    """The value of one replica's header; within a process it is the object itself."""
    if type(stream) is not bytes or len(stream) < LOAD_ASIDE_NBYTES_MIN:
        return load(stream, buffers)
    return taken([await asyncio.to_thread(_loaded, stream, buffers)])


def _loaded(stream: bytes, buffers: Sequence[Any]) -> tuple[object, BaseException | None]:
    """The value, or what was raised: what a thread raises (StopIteration, SystemExit) is not
    always what whoever awaits it is given."""
    try:
        return load(stream, buffers), None
    except BaseException as error:
        return None, error


def load_near(record: Record, face: Any = None) -> object:
    """The value that came along with the news that it is there.

    Args:
        face: the client that asks; an actor lives for as long as its proxy is kept there.

    Raises:
        BaseException: whatever the value's own code raises, with a note that tells the task.
    """
    assert record.value is not None
    try:
        if record.kind and face is not None:  # of small values only that of actors is told
            loaded: object = import_module(ACTORS).loaded_for(face, record.value)
            return loaded
        return load(record.value)
    except BaseException as error:
        tell_unreadable(error, record.key)
        raise


def from_where_it_was_raised(error: BaseException) -> BaseException:
    """`error` without the frames of this client at the top of its traceback, which say nothing to
    whoever waits for a result."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return BaseException.with_traceback(error, trace)  # it may forbid that it is changed


def outcome_error(record: Record) -> BaseException:
    """What to raise for a record that ended without a result."""
    exception = exception_of(record)
    if exception is not None:
        return exception
    return _cancelled_error(record)


def _cancelled_error(record: Record) -> FutureCancelledError:
    if record.status != CANCELLED and record.failure is not None:  # it was lost
        return FutureCancelledError(user_key(record), LOST_DEPENDENCIES, record.failure.text)
    reason, _, said = record.reason.partition("\n")
    return FutureCancelledError(user_key(record), reason, said or None)


def cancelled_errors(records: Iterable[Record]) -> FuturesCancelledError | None:
    """What to raise for those that were cancelled; None if none was."""
    errors = [_cancelled_error(record) for record in records if record.is_gone]
    return FuturesCancelledError.of(errors) if errors else None


def _requests(records: Sequence[Record]) -> list[list[Record]]:
    """Groups of a bounded size, each for one request."""
    groups: list[list[Record]] = []
    nbytes = 0
    for record in records:
        fits = nbytes + record.nbytes <= REQUEST_BYTES_MAX
        if groups and fits and len(groups[-1]) < REQUEST_TASKS_MAX:
            groups[-1].append(record)
            nbytes += record.nbytes
        else:
            groups.append([record])
            nbytes = record.nbytes
    return groups


async def _all(work: Sequence[Any]) -> None:
    """Run all; if one raises, the others end before it is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
