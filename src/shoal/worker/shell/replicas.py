"""Values to the messages that carry them between workers and clients, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Final, NamedTuple

from shoal.comms.compressing import effort
from shoal.ids import Key, TaskId
from shoal.protocol.exceptions import add_note, tell_unreadable, text_of, to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import Failure, ReplicaHeader
from shoal.protocol.payload import dump, hand, kind_of, load
from shoal.protocol.teaching import context, pickling
from shoal.shuffle.kept import KeptShards
from shoal.worker.shell.errors import UnpicklableResult

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from shoal.protocol.compression import Mark
    from shoal.storage.results import Results

LARGE_NBYTES: Final = 1_000_000
"""From this size on, values are pickled and loaded beside the loop, which others wait for."""


class Held(NamedTuple):
    """One value with its names."""

    task: TaskId
    key: Key
    value: object
    nbytes: int


def put_all(
    results: Results, values: Iterable[Held], adopt: Callable[[TaskId, KeptShards], object]
) -> None:
    """Have them among the results; `adopt` is told of those that are shards of a shuffle."""
    for task, key, value, nbytes in values:
        results.put(task, key, value, nbytes)
        if type(value) is KeptShards:
            adopt(task, value)


class Stored(NamedTuple):
    """In place of a value that is on disk: what it travels as."""

    header: bytes
    buffers: list[Buffer]


class Packed(NamedTuple):
    """Values ready for sending."""

    headers: list[ReplicaHeader]
    buffers: list[Buffer]
    failed: list[tuple[TaskId, Failure]]
    marks: Sequence[Mark] = ()
    """How the buffers were compressed, if they were."""


class Unpacked(NamedTuple):
    """Values as received."""

    held: list[Held]
    failed: list[tuple[TaskId, Failure]]


def pack(
    values: Iterable[Held],
    *,
    by_reference: bool,
    address: str,
    peer: str = "",
    families: Sequence[str] | None = None,
) -> Packed:
    """Pickle each value, or hand it over as it is; what can't be pickled has failed.

    Args:
        address: ours, for the failures, and for serializers that want to know who sends.
        peer: address of the one who asked, for serializers that want to know that.
        families: of serialisation that are asked in turn; None: the usual ones.
    """
    if families is None and not pickling.is_taught:
        return _pack(values, by_reference, address, None)
    token = context.set({"sender": {"address": address}, "recipient": {"address": peer}})
    try:
        return _pack(values, by_reference, address, families)
    finally:
        context.reset(token)


def compressed(packed: Packed, accepts: Sequence[str]) -> Packed:
    """The same, with buffers as small as pays; `accepts`: ways that the one who asked can read."""
    from shoal.protocol.compression import compress

    buffers, marks = compress(packed.buffers, accepts, effort())
    return packed._replace(buffers=buffers, marks=marks)


def _pack(
    values: Iterable[Held], by_reference: bool, address: str, families: Sequence[str] | None
) -> Packed:
    packed = Packed([], [], [])
    for task, key, value, nbytes in values:
        try:
            if isinstance(value, Stored):
                header, buffers = value
            else:
                header, buffers = hand(value) if by_reference else dump(value, families)
        except BaseException as error:
            told = _told_of(error, key, value)
            packed.failed.append((task, to_failure(told, key, address)))
            continue
        packed.headers.append(ReplicaHeader(task, key, nbytes, header, len(buffers)))
        packed.buffers.extend(buffers)
    return packed


def _told_of(error: BaseException, key: Key, value: object) -> BaseException:
    """What to say of a value that can't be pickled, since pickle names neither task nor result.

    What the value's own code raised stays what it is.
    """
    kind = kind_of(value).removeprefix("builtins.")
    if isinstance(error, TypeError | AttributeError | PicklingError | RecursionError):
        told = UnpicklableResult(to_text(key), kind, text_of(error))
        told.__cause__ = error
        return told
    add_note(error, f"Raised as the result of task {to_text(key)!r}, a {kind}, was pickled.")
    return error


def unpack(headers: Iterable[ReplicaHeader], buffers: Sequence[Buffer], address: str) -> Unpacked:
    """Load each value; what can't be loaded has failed.  `address`: ours, for the failures."""
    unpacked = Unpacked([], [])
    start = 0
    for header in headers:
        stop = start + header.nbuffers
        try:
            value = load(header.header, buffers[start:stop])
        except BaseException as error:
            tell_unreadable(error, header.key)
            failure = to_failure(error, header.key, address)
            unpacked.failed.append((header.task, failure))
        else:
            unpacked.held.append(Held(header.task, header.key, value, header.nbytes))
        start = stop
    return unpacked


def nbytes_received(headers: Iterable[ReplicaHeader], buffers: Iterable[Buffer]) -> int:
    """How much there is to load."""
    return sum([len(memoryview(buffer)) for buffer in buffers]) + sum(
        [len(header.header) for header in headers]
    )
