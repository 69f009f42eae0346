"""What futures ask of the client that they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from shoal.client.absent import Absent
from shoal.client.blocking import CALLBACKS
from shoal.client.errors import ClientClosed, ForeignFuture, UnpicklableClient
from shoal.client.future import Future, exception_of
from shoal.client.gathering import Gathering, from_where_it_was_raised, outcome_error
from shoal.client.lateness import late
from shoal.client.machine import CANCELLED, Record
from shoal.client.session import Session
from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.exchange import ReplicaExchange
from shoal.units import to_seconds

if TYPE_CHECKING:
    from shoal.client.borrowing import Borrowing


class Answering(Absent):
    """The part of the asynchronous client that knows of results."""

    def __init__(self, name: str, direct_to_workers: bool | None) -> None:
        """`name`: how the scheduler knows the client; unique."""
        self.id = name
        self.session = Session(name)
        self.direct_to_workers = direct_to_workers
        self._exchange: ReplicaExchange | None = None  # with workers, once we know the keys
        self._borrowing: Borrowing | None = None  # once other clients' futures are used

    def __reduce__(self) -> NoReturn:
        raise UnpicklableClient

    @property
    def face(self) -> Any:
        """The client that the user holds."""
        return self

    def finish(self, work: Any) -> Any:
        """The result of a coroutine, or here: the coroutine itself."""
        return work

    def future_result(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.result`."""
        return self.await_future(future, timeout)

    def future_exception(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.exception`."""
        return self.await_exception(future, timeout)

    def future_traceback(self, future: Future, timeout: Any = None) -> Any:
        """See `Future.traceback`."""
        return self.await_traceback(future, timeout)

    async def await_future(
        self, future: Future, timeout: Any = None, *, told_seconds: float | None = None
    ) -> Any:
        """The result of one future.

        Args:
            told_seconds: how long it was waited for, as the user knows it, if the timeout is only
                what is left of that.
        """
        record = future.record
        seconds = None if timeout is None else to_seconds(timeout)
        try:
            async with asyncio.timeout(seconds) as limit:
                values = await self.gathering().run([record])
        except BaseException as error:
            if isinstance(error, TimeoutError) and limit.expired():  # else the task raised it
                raise await late(self.session, record, told_seconds or seconds) from None
            if is_our_cancellation(error):
                raise
            raise from_where_it_was_raised(error)  # noqa: B904  # it is the error itself
        return values[record]

    async def await_results(self, records: list[Record]) -> dict[Record, Any]:
        """Results of records that have ended, fetched together; FAILED for those without one."""
        return await self.gathering(skip=True).run(records)

    async def await_exception(self, future: Future, timeout: Any = None) -> BaseException | None:
        """What the task raised."""
        record = future.record
        seconds = None if timeout is None else to_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                await self.session.wait_all([record])
        except TimeoutError:
            raise await late(self.session, record, seconds) from None
        return outcome_error(record) if record.status == CANCELLED else exception_of(record)

    async def await_traceback(self, future: Future, timeout: Any = None) -> TracebackType | None:
        """Where the task raised."""
        error = await self.await_exception(future, timeout)
        return None if error is None else error.__traceback__

    def add_done_callback(self, future: Future, fn: Callable[[Future], object]) -> None:
        """See `Future.add_done_callback`."""
        if not self.session.watch(future.record, lambda record: CALLBACKS.put(fn, future)):
            CALLBACKS.put(fn, future)

    def record_of(self, future: Future) -> Record:
        """What is known of a future.

        Raises:
            ForeignFuture: it is another client's.
        """
        record = future.record
        if future.face.session is not self.session:
            raise ForeignFuture(future.key)
        return record

    def input_of(self, future: Future) -> Record:
        """As `record_of`, for what a task needs: another client's future, of the same scheduler,
        is wanted by this client as well, for as long as that future is there.

        Raises:
            ForeignFuture: it is a client's of another scheduler.
        """
        record = future.record
        if future.face.session is self.session:
            return record
        from shoal.client.borrowing import Borrowing  # few programs have two clients

        with self.session.lock:
            if self._borrowing is None:
                self._borrowing = Borrowing(self.session, self.face)
        return self._borrowing.record_of(future)

    def gathering(self, *, skip: bool = False, direct: bool | None = None) -> Gathering:
        """A gather to be run once."""
        if direct is None:
            direct = self.direct_to_workers is not False
        return Gathering(self.session, self.exchange, skip=skip, direct=direct, face=self.face)

    @property
    def exchange(self) -> ReplicaExchange:
        """The way to workers' memory; raises ClientClosed before the client was started."""
        if self._exchange is None:
            raise ClientClosed(self.id, self.session.status, self.session.ending_reason)
        return self._exchange
