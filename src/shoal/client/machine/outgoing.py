"""What a client has to say, in order: single calls gather in batches, releases in lists.

Pure; the machine, which decides what is said, is built on it.  Releases, cancellations and
submissions leave in the order in which they were made, because a key that is released first and
submitted again may have another value.
"""

from collections.abc import Sequence
from typing import Final

from shoal.client.machine.lineage import Lineage
from shoal.client.machine.record import Record
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.messages import (
    DefineClientCode,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    TaskOptions,
)

FUNCTIONS_MAX: Final = 1000
"""Functions that the scheduler keeps for us, ready for the next submission."""
FUNCTION_BYTES_MAX: Final = 64 * 2**20
"""Bytes of those functions together; a function may carry a large closure."""
BATCH_TASKS_MAX: Final = 4000
"""Tasks of one message, so that the scheduler absorbs a large `map` in slices."""

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


class Outgoing:
    """Numbers, functions and messages on their way out."""

    def __init__(self, functions_max: int, function_bytes_max: int) -> None:
        self._functions_max = functions_max
        self._function_bytes_max = function_bytes_max
        self.functions: dict[bytes, tuple[CodeId, int]] = {}  # digest -> code, bytes; oldest first
        self._function_bytes = 0
        self._next_number = 1
        self._next_code = 1
        self._batch: _Batch | None = None
        self._released: list[ClientTaskId] = []
        self._outgoing: list[Message] = []
        self.lineage: Lineage | None = None  # what another scheduler would have to be told

    def reserve(self, ntasks: int) -> ClientTaskId:
        """The first of `ntasks` consecutive numbers, none of which was ever used."""
        first = self._next_number
        self._next_number = first + ntasks
        return ClientTaskId(first)

    def new_code(self) -> CodeId:
        """A number for a bundle."""
        code = CodeId(self._next_code)
        self._next_code += 1
        return code

    def take_outgoing(self) -> list[Message]:
        """Everything to be sent now, in order."""
        self._close_batch()
        self._close_releases()
        outgoing = self._outgoing
        self._outgoing = []
        return outgoing

    def _discard(self) -> None:
        """Nobody is left to hear any of it, or to remember our functions."""
        self._batch = None
        self._released.clear()
        self._outgoing.clear()
        self.functions.clear()
        self._function_bytes = 0

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
        self._put(DefineClientCode(code, payload))
        while len(self.functions) > 1 and (
            len(self.functions) > self._functions_max
            or self._function_bytes > self._function_bytes_max
        ):
            oldest = next(iter(self.functions))
            forgotten, nbytes = self.functions.pop(oldest)
            self._function_bytes -= nbytes
            self.say(ForgetClientCode([forgotten]))
        return code

    def say(self, message: Message) -> None:
        """Send `message` after everything said so far."""
        self._close_batch()
        self._close_releases()
        self._put(message)

    def _put(self, message: Message) -> None:
        self._outgoing.append(message)
        if self.lineage is not None:
            self.lineage.keep(message)

    def _close_batch(self) -> None:
        if self._batch is not None:
            self._put(self._batch.to_message())
            self._batch = None

    def _close_releases(self) -> None:
        if self._released:
            self._outgoing.append(ReleaseTasks(self._released))
            self._released = []
