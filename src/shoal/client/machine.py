"""What a client knows of its tasks: what it wants, what it was told, what it has to say.

Events are method calls; what follows from them waits in `take_outgoing` (messages for the
scheduler, in order) and `take_resolved` (records whose waiters are to be told).  Nothing here
waits, sends or locks; the session calls all of it under one lock.

Two rules for whoever edits this.  A number is used for one want only, so a late Release or answer
can't touch a newer want of the same key.  And releases, cancellations and submissions leave in the
order in which they were made, because a key that is released first and submitted again may have
another value.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from shoal.client.record import (
    CANCELLED,
    ERROR,
    FINISHED,
    LOST,
    PENDING,
    UNRESOLVED,
    Record,
)
from shoal.ids import ClientTaskId, CodeId, Epoch, Key
from shoal.protocol.messages import (
    CancelTasks,
    ClientWelcome,
    DefineClientCode,
    Failure,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
    TaskOptions,
    WantKey,
)

__all__ = [
    "CANCELLED",
    "ERROR",
    "FINISHED",
    "LOST",
    "PENDING",
    "UNRESOLVED",
    "ClientMachine",
    "Record",
]

FUNCTIONS_MAX: Final = 1000
"""Functions that the scheduler keeps for us, ready for the next submission."""
FUNCTION_BYTES_MAX: Final = 64 * 2**20
"""Bytes of those functions together; a function may carry a large closure."""
BATCH_TASKS_MAX: Final = 4000
"""Tasks of one message, so that the scheduler absorbs a large `map` in slices."""

CONNECTION_LOST: Final = "scheduler-connection-lost"
LOST_DEPENDENCIES: Final = "lost dependencies"


_NO_NUMBERS: Final[list[ClientTaskId]] = []
"""Shared, since a list for each task is what the garbage collector would count."""


class _Batch:
    """Tasks with the same options, in columns, on their way to become one SubmitTasks."""

    __slots__ = (
        "arguments",
        "codes",
        "dependencies",
        "first",
        "keys",
        "options",
        "prefix_indices",
        "prefixes",
    )

    def __init__(self, first: ClientTaskId, options: TaskOptions | None) -> None:
        self.first = first
        self.options = options
        self.keys: list[Key] = []
        self.codes: list[CodeId] = []
        self.arguments: list[bytes | int] = []
        self.dependencies: list[list[ClientTaskId]] = []
        self.prefixes: dict[str, int] = {}
        self.prefix_indices: list[int] = []

    def to_message(self) -> SubmitTasks:
        codes = self.codes
        if len(codes) > 1 and codes.count(codes[0]) == len(codes):
            codes = codes[:1]
        return SubmitTasks(
            first=self.first,
            keys=self.keys,
            codes=codes,
            arguments=self.arguments,
            dependencies=self.dependencies if any(self.dependencies) else [],
            prefixes=list(self.prefixes),
            prefix_indices=self.prefix_indices if len(self.prefixes) > 1 else [],
            options=self.options,
        )


class ClientMachine:
    """The client's state; every method is O(its arguments) unless it says otherwise."""

    def __init__(
        self,
        functions_max: int = FUNCTIONS_MAX,
        function_bytes_max: int = FUNCTION_BYTES_MAX,
    ) -> None:
        self._functions_max = functions_max
        self._function_bytes_max = function_bytes_max
        self.epoch: Epoch | None = None  # None until welcomed, and after the connection was lost
        self.hopeless: Failure | None = None  # why nothing that is waited for will come
        self.scheduler_id = ""
        self.services: dict[str, int] = {}  # what else the scheduler's process serves -> its port
        self.records: dict[Key, Record] = {}  # live wants by key: what a new future may share
        self.by_number: dict[ClientTaskId, Record] = {}  # wants that the scheduler may answer
        self.functions: dict[bytes, tuple[CodeId, int]] = {}  # digest -> code, bytes; oldest first
        self._function_bytes = 0
        self._next_number = 1
        self._next_code = 1
        self._batch: _Batch | None = None
        self._released: list[ClientTaskId] = []
        self._outgoing: list[Message] = []
        self._resolved: list[Record] = []

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
            self._say(WantKey(record.number, key))
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
            record.nfutures += 1
            records.append(record)
        return records, new

    def place_again(self, record: Record) -> None:
        """A scattered value is on its way once more: that it was lost is no longer true."""
        if record.status == ERROR:
            record.failure = None
            record.status = PENDING

    def reserve(self, ntasks: int) -> ClientTaskId:
        """The first of `ntasks` consecutive numbers, none of which was ever used."""
        first = self._next_number
        self._next_number = first + ntasks
        return ClientTaskId(first)

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
        for code, payload in bundles:
            self._outgoing.append(DefineClientCode(code, payload))
        self._say(slice_)
        if bundles:
            self._outgoing.append(ForgetClientCode([code for code, _ in bundles]))
        return records

    def new_code(self) -> CodeId:
        """A number for a bundle."""
        code = CodeId(self._next_code)
        self._next_code += 1
        return code

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

    def cancel(self, records: Iterable[Record], *, force: bool = False, reason: str = "") -> None:
        """End these wants now; what depends on them the scheduler will tell."""
        numbers = []
        for record in records:
            if record.number in self.by_number:
                numbers.append(record.number)
            self._cancel(record, reason or "unknown")
        if numbers:
            self._say(CancelTasks(numbers, force, reason))

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

    def say(self, message: Message) -> None:
        """Send `message` after everything said so far."""
        self._say(message)

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
        """A result has gone; a small one we hold ourselves, so for us it has not."""
        record = self.by_number.get(message.task)
        if record is None or record.value is not None:
            return
        record.holders = []
        record.status = LOST

    def on_task_cancelled(self, message: TaskCancelled) -> None:
        """The scheduler has let go of the want."""
        record = self.by_number.get(message.task)
        if record is not None:
            self._cancel(record, message.reason or "unknown")

    def connection_lost(self, reason: str = CONNECTION_LOST) -> None:
        """End every want that the scheduler still had to answer, or whose value is elsewhere.

        Small results and errors that are here stay readable.
        """
        self.epoch = None
        self._batch = None
        self._released.clear()
        self._outgoing.clear()
        for record in list(self.by_number.values()):
            if record.value is None and record.status != ERROR:
                self._cancel(record, reason)
            else:
                del self.by_number[record.number]
        self.records.clear()
        self.functions.clear()
        self._function_bytes = 0

    # --- what is to be done ------------------------------------------------------------------

    def take_outgoing(self) -> list[Message]:
        """Everything to be sent now, in order."""
        self._close_batch()
        self._close_releases()
        outgoing = self._outgoing
        self._outgoing = []
        return outgoing

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

    def _append(
        self,
        record: Record,
        code: CodeId,
        argument: bytes | int,
        needs: Sequence[Record],
        prefix: str,
        options: TaskOptions | None,
    ) -> None:
        """Add a task to the open batch, or to a new one if it doesn't fit in there."""
        batch = self._batch
        if self._released:
            self._close_releases()
        if (
            batch is None
            or batch.first + len(batch.keys) != record.number
            or (batch.options is not options and batch.options != options)
            or len(batch.keys) >= BATCH_TASKS_MAX
        ):
            self._close_batch()
            batch = self._batch = _Batch(record.number, options)
        batch.keys.append(record.key)
        batch.codes.append(code)
        batch.arguments.append(argument)
        batch.dependencies.append([need.number for need in needs] if needs else _NO_NUMBERS)
        prefixes = batch.prefixes
        index = prefixes.get(prefix)
        if index is None:
            index = prefixes[prefix] = len(prefixes)
        batch.prefix_indices.append(index)

    def _define_function(self, digest: bytes, payload: bytes) -> CodeId:
        """The code of a function, said to the scheduler if it isn't there; the oldest goes."""
        known = self.functions.pop(digest, None)
        if known is not None:
            self.functions[digest] = known  # now the youngest
            return known[0]
        code = self.new_code()
        self.functions[digest] = (code, len(payload))
        self._function_bytes += len(payload)
        self._outgoing.append(DefineClientCode(code, payload))
        while len(self.functions) > 1 and (
            len(self.functions) > self._functions_max
            or self._function_bytes > self._function_bytes_max
        ):
            oldest = next(iter(self.functions))
            forgotten, nbytes = self.functions.pop(oldest)
            self._function_bytes -= nbytes
            self._say(ForgetClientCode([forgotten]))
        return code

    def _cancel(self, record: Record, reason: str) -> None:
        if self.records.get(record.key) is record:
            del self.records[record.key]
        self.by_number.pop(record.number, None)
        if record.status != CANCELLED:
            record.reason = reason
            record.value = None
            record.failure = None
            record.holders = []
            self._resolve(record, CANCELLED)

    def _resolve(self, record: Record, status: str) -> None:
        record.status = status
        self._resolved.append(record)

    def _say(self, message: Message) -> None:
        self._close_batch()
        self._close_releases()
        self._outgoing.append(message)

    def _close_batch(self) -> None:
        if self._batch is not None:
            self._outgoing.append(self._batch.to_message())
            self._batch = None

    def _close_releases(self) -> None:
        if self._released:
            self._outgoing.append(ReleaseTasks(self._released))
            self._released = []
