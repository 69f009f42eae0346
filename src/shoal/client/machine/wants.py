"""What a client knows of its tasks: what it wants, and what it was told.

Events are method calls; what follows from them waits in `take_outgoing` (messages for the
scheduler, see `outgoing`) and `take_resolved` (records whose waiters are to be told).  Nothing
here waits, sends or locks; the session calls all of it under one lock.

For whoever edits this: a number is used for one want only, so a late Release or answer can't touch
a newer want of the same key.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from shoal.client.machine.outgoing import FUNCTION_BYTES_MAX, FUNCTIONS_MAX
from shoal.client.machine.record import (
    CANCELLED,
    ERROR,
    FINISHED,
    LOST,
    PENDING,
    UNRESOLVED,
    Record,
)
from shoal.client.machine.returning import Returning
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.holding import RetryTasks, TaskRetried
from shoal.protocol.messages import (
    CancelTasks,
    ClientWelcome,
    DefineClientCode,
    Failure,
    ForgetClientCode,
    Message,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
    TaskOptions,
    WantKey,
)

CONNECTION_LOST: Final = "scheduler-connection-lost"
LOST_DEPENDENCIES: Final = "lost dependencies"


class ClientMachine(Returning):
    """The client's state; every method is O(its arguments) unless it says otherwise."""

    def __init__(
        self,
        functions_max: int = FUNCTIONS_MAX,
        function_bytes_max: int = FUNCTION_BYTES_MAX,
    ) -> None:
        super().__init__(functions_max, function_bytes_max)
        self.hopeless: Failure | None = None  # why nothing that is waited for will come
        self.scheduler_id = ""
        self.services: dict[str, int] = {}  # what else the scheduler's process serves -> its port
        self.started_at = 0.0  # of the scheduler, in seconds since the epoch
        self.versions_met: tuple[dict[str, str], dict[str, dict[str, str]]] = {}, {}
        """Of the scheduler, and of workers that have others than we: as it was when we came."""

    # --- what the user does ------------------------------------------------------------------

    def submit(
        self,
        function: tuple[bytes, bytes],
        prefix: str,
        keys: Sequence[Key],
        arguments: Sequence[bytes | int],
        dependencies: Sequence[Sequence[Record]] = (),
        options: TaskOptions | None = None,
    ) -> list[Record]:
        """Want the results of calls of one function; each record gains one future.

        Args:
            function: (digest, pickle) of the function.
            dependencies: of each task; () if none has any.

        A key that is wanted already is not submitted again.  A task whose dependency was cancelled
        is cancelled at once.
        """
        code = self._define_function(*function)
        records: list[Record] = []
        known = self.records
        for i, key in enumerate(keys):
            record = known.get(key)
            if record is None:
                needs = dependencies[i] if dependencies else ()
                record = Record(key, self.reserve(1))
                if needs and any(need.status == CANCELLED for need in needs):
                    self._cancel(record, LOST_DEPENDENCIES)
                else:
                    if self.unsaid:
                        self._say_unsaid([need.number for need in needs])
                    known[key] = self.by_number[record.number] = record
                    self._append(record, code, arguments[i], needs, prefix, options)
            record.nfutures += 1
            records.append(record)
        return records

    def want(self, key: Key) -> Record:
        """Want a key that somebody else submitted; the record gains one future."""
        record = self.records.get(key)
        if record is None:
            record = self._new_record(key)
            self.say(WantKey(record.number, key))
        record.nfutures += 1
        return record

    def want_scattered(self, keys: Sequence[Key]) -> tuple[list[Record], list[Record]]:
        """Want values that this client is about to place; each record gains one future.

        Returns:
            The records in the order of `keys`, and those of them that are new: their numbers are
            consecutive, and the session has to place them with a PlaceScatter.
        """
        records, new = [], []
        for key in keys:
            record = self.records.get(key)
            if record is None:
                record = self._new_record(key)
                new.append(record)
                if self.lineage is not None:
                    self._close_batch()
                    self.lineage.keep_scattered(record.number, key)
            record.nfutures += 1
            records.append(record)
        return records, new

    def place_again(self, record: Record) -> None:
        """A scattered value is on its way once more: that it was lost is no longer true."""
        if record.status == ERROR:
            record.failure = None
            record.status = PENDING
            self.unsaid.pop(record.number, None)

    def submit_slice(
        self,
        bundles: Sequence[tuple[CodeId, bytes]],
        slice_: SubmitTasks,
        wanted_keys: Sequence[Key],
    ) -> list[Record]:
        """Send a part of a graph with the bundles that its tasks are in, and let go of those.

        Args:
            slice_: its `wanted` are the places of `wanted_keys`.

        Returns:
            A record for each of `wanted_keys`, with one more future.  A key that is wanted already
            keeps its record, and is not wanted a second time.
        """
        records, wanted = [], []
        for key, i in zip(wanted_keys, slice_.wanted or (), strict=True):
            record = self.records.get(key)
            if record is None:
                record = Record(key, ClientTaskId(slice_.first + i))
                self.records[key] = self.by_number[record.number] = record
                wanted.append(i)
            record.nfutures += 1
            records.append(record)
        if len(wanted) != len(wanted_keys):
            slice_ = msgspec.structs.replace(slice_, wanted=wanted)
        if self.unsaid:
            self._say_unsaid([number for needs in slice_.dependencies for number in needs])
        for code, payload in bundles:
            self._put(DefineClientCode(code, payload))
        self.say(slice_)
        if bundles:
            self._outgoing.append(ForgetClientCode([code for code, _ in bundles]))
        return records

    def hold(self, record: Record) -> None:
        """One more future of this record."""
        record.nfutures += 1

    def release(self, records: Iterable[Record]) -> None:
        """One future less of each; the last one lets go of the want."""
        for record in records:
            record.nfutures -= 1
            if record.nfutures:
                continue
            self._let_go(record)

    def _let_go(self, record: Record) -> None:
        """End the want, if there is one still."""
        if self.records.get(record.key) is record:
            del self.records[record.key]
        if self.by_number.pop(record.number, None) is not None:
            if self._batch is not None:
                self._close_batch()
            self._released.append(record.number)
            if self.lineage is not None:
                self._strike(record)

    def cancel(self, records: Iterable[Record], *, force: bool = False, reason: str = "") -> None:
        """End these wants now; what depends on them the scheduler will tell."""
        numbers = []
        for record in records:
            if record.number in self.by_number and record.number not in self.unsaid:
                numbers.append(record.number)
            self._cancel(record, reason or "unknown")
        if numbers:
            self.say(CancelTasks(numbers, force, reason))

    def fail(self, record: Record, failure: Failure) -> None:
        """A want that can't be met: its value could not be placed, its graph not be built.

        The scheduler is told to let go of it, or it would wait for a value that nobody sends.
        """
        if record.status in UNRESOLVED:
            record.failure = failure
            self._let_go(record)
            self._resolve(record, ERROR)

    def may_end(self, record: Record) -> bool:
        """Whether to wait for it; False: it has ended, or does so now, as it can't come."""
        if self.hopeless is not None:
            self.fail(record, self.hopeless)
        return record.status in UNRESOLVED

    def fail_unsent(self, message: Message, failure: Failure) -> None:
        """The scheduler will not hear `message`, so it won't answer what was asked in it."""
        if isinstance(message, SubmitTasks):
            for number in range(message.first, message.first + len(message.keys)):
                record = self.by_number.get(ClientTaskId(number))
                if record is not None:
                    self.fail(record, failure)

    def retry(self, records: Iterable[Record]) -> None:
        """Want the results of failed tasks once more, and of those that these failed with.

        One that the scheduler knows nothing of, as its failure is our own, stays as it is.
        """
        failed = dict.fromkeys(records)
        for record in list(failed):
            origin = None if record.failure is None else self.records.get(record.failure.origin)
            if origin is not None:
                failed[origin] = None
        numbers = []
        for record in failed:
            if record.status == ERROR and record.number in self.by_number:
                numbers.append(record.number)
                record.failure = None
                record.status = PENDING
        if self.unsaid:
            unsaid = [number for number in numbers if number in self.unsaid]
            numbers = [number for number in numbers if number not in self.unsaid]
            self._say_unsaid(unsaid)
        if numbers:
            self.say(RetryTasks(numbers))

    # --- what the scheduler says -------------------------------------------------------------

    def receive(self, messages: Iterable[Message]) -> None:
        """Take in what the scheduler says; an answer to a want that is gone changes nothing."""
        for message in messages:
            if type(message) is TaskInMemory:
                self.on_task_in_memory(message)
            elif type(message) is TaskErred:
                self.on_task_erred(message)
            elif type(message) is TaskLost:
                self.on_task_lost(message)
            elif type(message) is TaskRetried:
                self.on_task_retried(message)
            elif type(message) is TaskCancelled:
                self.on_task_cancelled(message)
            elif type(message) is ClientWelcome:
                self.on_client_welcome(message)
            else:
                raise AssertionError(f"{type(message).__name__} is not for the client's machine")

    def on_client_welcome(self, message: ClientWelcome) -> None:
        """From now on we are in `message.epoch`."""
        self.epoch = message.epoch
        self.scheduler_id = message.scheduler_id
        self.services = message.services
        self.started_at = message.started_at
        self.versions_met = message.versions, message.workers_versions
        if self.is_away:
            self._say_again()

    def on_task_in_memory(self, message: TaskInMemory) -> None:
        """A result is there, for the first time, again, or at other holders."""
        record = self.by_number.get(message.task)
        if record is None:
            return
        record.task = message.id
        record.nbytes = message.nbytes
        record.holders = message.holders
        if message.value is not None:
            record.value = message.value
        if message.kind:
            record.kind = message.kind
        record.failure = None
        if record.status != FINISHED:
            self._resolve(record, FINISHED)
        elif self.astray:
            self._find(record)

    def on_task_erred(self, message: TaskErred) -> None:
        """A wanted task failed for good."""
        record = self.by_number.get(message.task)
        if record is None:
            return
        record.failure = message.failure
        record.value = None
        record.holders = []
        self._resolve(record, ERROR)

    def on_task_lost(self, message: TaskLost) -> None:
        """A result has gone; a small one we hold ourselves, so for us it has not.

        An error is no result: it stays until somebody has the task tried again.
        """
        record = self.by_number.get(message.task)
        if record is None or record.value is not None or record.status == ERROR:
            return
        record.holders = []
        record.status = LOST
        if self.astray:
            self._find(record)

    def on_task_retried(self, message: TaskRetried) -> None:
        """It had failed, and somebody has it tried again."""
        record = self.by_number.get(message.task)
        if record is not None and record.status == ERROR:
            record.failure = None
            record.status = PENDING

    def on_task_cancelled(self, message: TaskCancelled) -> None:
        """The scheduler has let go of the want."""
        if self.lineage is not None:
            self.lineage.cancelled.pop(message.task, None)
        record = self.by_number.get(message.task)
        if record is not None:
            self._cancel(record, message.reason or "unknown")

    def connection_lost(self, reason: str = CONNECTION_LOST) -> None:
        """End every want that the scheduler still had to answer, or whose value is elsewhere.

        Small results and errors that are here stay readable.
        """
        self.epoch, self.is_away, self.lineage = None, False, None
        self._discard()
        self.astray.clear()
        self.unsaid.clear()
        for record in list(self.by_number.values()):
            if record.value is None and record.status != ERROR:
                self._cancel(record, reason)
            else:
                del self.by_number[record.number]
        self.records.clear()

    def take_resolved(self) -> list[Record]:
        """Records that ended since, once each time they did."""
        resolved = self._resolved
        self._resolved = []
        return resolved

    # --- parts -------------------------------------------------------------------------------

    def _new_record(self, key: Key) -> Record:
        record = Record(key, self.reserve(1))
        self.records[key] = self.by_number[record.number] = record
        return record

    def _cancel(self, record: Record, reason: str) -> None:
        if self.records.get(record.key) is record:
            del self.records[record.key]
        self.by_number.pop(record.number, None)
        if self.lineage is not None:
            self._strike(record)
        if record.status != CANCELLED:
            record.reason = reason
            record.value = None
            record.failure = None
            record.holders = []
            self._resolve(record, CANCELLED)

    def _resolve(self, record: Record, status: str) -> None:
        record.status = status
        self._resolved.append(record)
        if self.astray:
            self.astray.pop(record.number, None)
