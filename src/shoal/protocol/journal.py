"""What a scheduler writes down for the one that comes after it.

A journal is entries in their order; those of one step are true together or not at all.  Tasks and
codes have numbers of the journal's own, which no entry before has used for anything else.  Rules
for whoever edits this file: those of `messages.py`, since journals are read by later versions; the
tags are none of messages.  What users own is bytes here, too.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from shoal.ids import Epoch, JournalId, Key
from shoal.protocol.messages import Failure, TaskOptions
from shoal.protocol.shuffles import ShuffleDefinition

NO_CODE: Final = JournalId(0)
"""In place of a code: the value was scattered, and nothing computes it."""

OPEN: Final = 0
"""The task is to be run, as far as it is needed."""
IN_MEMORY: Final = 1
FAILED: Final = 2


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of a journal: an array that starts with its tag."""


class LifeBegun(Entry, frozen=True, tag=1):
    """From here on a scheduler of this epoch writes; it is greater than those before."""

    epoch: Epoch
    version: str = ""  # of shoal


class WorkersChanged(Entry, frozen=True, tag=2):
    """Who is connected, by address."""

    came: list[str]
    gone: list[str]


class CodeWritten(Entry, frozen=True, tag=3):
    """A pickled function, or a bundle of graph tasks."""

    number: JournalId
    payload: bytes


class TasksWritten(Entry, frozen=True, tag=4):
    """Tasks in columns, what they depend on before them; one that was written before has a run
    spec now."""

    numbers: list[JournalId]
    keys: list[Key]
    codes: list[JournalId]  # NO_CODE: a scattered value
    arguments: list[bytes | int]
    dependencies: list[list[JournalId]]
    prefixes: list[str]  # names of prefixes
    prefix_indices: list[int]
    options: list[TaskOptions]  # those that some of them have
    option_indices: list[int]


class ShuffleWritten(Entry, frozen=True, tag=5):
    """This task is the barrier of a shuffle."""

    task: JournalId
    definition: ShuffleDefinition


class TaskStands(Entry, frozen=True, tag=6):
    """How it is with a task from now on."""

    task: JournalId
    how: int = OPEN
    nbytes: int = -1  # of its result; of an actor also when that has gone
    value: bytes | None = None  # the result, if it is small; else workers have it
    kind: str = ""
    failure: Failure | None = None
    blame: int = 0  # workers that died as it ran there
    retries: int = 0  # that are left
    is_incomplete: bool = False  # it has failed as not all that it needs was known


class TasksForgotten(Entry, frozen=True, tag=7):
    """Nothing refers to these any more; their keys may come back for something else."""

    tasks: list[JournalId]


class TasksKept(Entry, frozen=True, tag=8):
    """Results that are wanted from now on, whoever goes: for a dataset, or until they end."""

    tasks: list[JournalId]
    dataset: Key | None = None


class TasksLetGo(Entry, frozen=True, tag=9):
    """The same, no longer."""

    tasks: list[JournalId]
    dataset: Key | None = None


class DatasetWritten(Entry, frozen=True, tag=10):
    """A value under a name, in place of the one before, if there was one.  It keeps nothing yet."""

    name: Key
    payload: bytes


class DatasetGone(Entry, frozen=True, tag=11):
    """And with it all that was kept for it."""

    name: Key


AnyEntry: TypeAlias = (
    LifeBegun
    | WorkersChanged
    | CodeWritten
    | TasksWritten
    | ShuffleWritten
    | TaskStands
    | TasksForgotten
    | TasksKept
    | TasksLetGo
    | DatasetWritten
    | DatasetGone
)

_encode: Final = msgspec.msgpack.Encoder().encode
_decoder: Final[msgspec.msgpack.Decoder[Any]] = msgspec.msgpack.Decoder(list[AnyEntry])


def to_body(entries: Sequence[Entry]) -> bytes:
    """The body of a record that has these entries."""
    return _encode(entries)


def from_body(body: bytes | memoryview) -> list[Entry]:
    """The entries of a record.

    Raises:
        msgspec.MsgspecError: a version of shoal has written it that knows other entries.
    """
    entries: list[Entry] = _decoder.decode(body)
    return entries
