"""What users own (functions, arguments, values) to opaque bytes and back.

A value becomes a header, which is a pickle stream, and the large buffers that the stream refers
to, which travel beside it and are never copied.  Plain pickle comes first, since it is several
times faster; cloudpickle takes over when that fails, and for whatever lives in `__main__`, which
is another module in every process.  Values of types that a program registered a serializer for go
through that, wherever they are (see `teaching`).

Nothing here may be called by a scheduler: to load is to run code that somebody else wrote.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from shoal.protocol import ways
from shoal.protocol.measuring import nbytes_at_a_glance
from shoal.protocol.teaching import (
    BETTER_NAMES,
    MAIN,
    PROTOCOL,
    has_better_way,
    holds_copies,
    is_by_value,
    pickling,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

OUT_OF_BAND_NBYTES_MIN: Final = 16 * 1024
"""A smaller buffer costs less inside the stream than as a piece of its own."""

NBUFFERS_MAX: Final = 1000
"""Of one value; further ones go into the stream, since a frame has a limit for them as well."""

DEFAULT_NBYTES: Final = 1_000_000
"""Assumed size in memory of a value that can't be measured."""

_NBYTES_MAX: Final = 2**50  # of one value; thousands of them still add up to what fits a message
_QUALIFIED_NAME: Final = type.__dict__["__qualname__"]
_CONTAINERS: Final = frozenset((list, tuple, dict, set, frozenset))
_SCALARS: Final = frozenset((type(None), bool, float, complex))
_MEASURED_BY_PYTHON: Final = _SCALARS | {int, str, bytes, bytearray}

_inputs: ContextVar[Sequence[object] | None] = ContextVar("inputs", default=None)


class InputRef:
    """Stands for a run's input in pickled arguments: loading it gives the input itself."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        """`index`: place of the input among the run's inputs."""
        self.index = index

    def __reduce__(self) -> tuple[Callable[[int], object], tuple[int]]:
        return _input, (self.index,)

    def __repr__(self) -> str:
        return f"InputRef({self.index})"


def dump(value: object, families: Sequence[str] | None = None) -> tuple[bytes, list[Buffer]]:
    """`value` as a header and its large buffers, which still are the memory of `value`.

    A large pickle stream is a buffer as well, so that nothing on its way copies it.

    `families`: names of those that are asked in turn; None: the usual ones (see `families.named`).

    Raises:
        Exception: whatever pickle and then cloudpickle raise, or a family does.

    Cost: under 1 us for small values; O(1) in bytes that are out of band, else O(nbytes).
    """
    buffers: list[Buffer] = []

    def in_band(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous, so it can't be sent as it lies
            return True
        if raw.nbytes < OUT_OF_BAND_NBYTES_MIN or len(buffers) >= NBUFFERS_MAX:
            return True
        buffers.append(raw)
        return False

    if families is not None:
        stream = ways.dumps_named(value, families, in_band, buffers)
        if stream is not None:
            return split(stream, buffers)
    kind = type(value)
    if (kind is bytes or kind is bytearray) and (len(cast(bytes, value)) >= OUT_OF_BAND_NBYTES_MIN):
        value = _Bytes(cast("bytes | bytearray", value))
    dumps = pickling.dumps
    if kind.__name__ in BETTER_NAMES and has_better_way(value):
        dumps = ways.dumps_by_family
    try:
        header = dumps(value, PROTOCOL, buffer_callback=in_band)
        if MAIN not in header and not is_by_value():
            if len(header) >= OUT_OF_BAND_NBYTES_MIN and holds_copies(header):
                buffers.clear()
                header = ways.dumps_by_family(value, PROTOCOL, buffer_callback=in_band)
            return split(header, buffers)
    except Exception:
        pass  # cloudpickle can do more; if it can't either, its error is the one to show
    buffers.clear()
    return split(ways.dumps_by_value(value, in_band, buffers), buffers)


def hand(value: object) -> tuple[bytes, list[Buffer]]:
    """`value` itself in place of what `dump` would give, for a peer in the same process.

    The types lie, since such a peer gets messages as they are; `load` gives the value back.
    """
    return cast(bytes, _Handed(value)), []


def load(header: bytes, buffers: Iterable[Buffer] = ()) -> object:
    """The value that `dump` or `hand` made these of; it lives in the memory of `buffers`.

    What fails is tried once more, since in long computations such failures may be of the moment.

    Raises:
        BaseException: whatever the value's own code raises.
    """
    claimed: object = header
    if type(claimed) is not bytes:
        if isinstance(claimed, _Handed):
            return claimed.value
        if isinstance(claimed, Guarded):
            return ways.load_named(claimed, buffers, claimed.families)
    try:
        return pickle.loads(header, buffers=buffers)
    except Exception:
        pass  # memory may have been short, or a module half imported by another thread
    return pickle.loads(header, buffers=buffers)


def dump_small(value: object, nbytes_max: int) -> bytes | None:
    """`value` pickled if that takes at most `nbytes_max` bytes, else None; None if it can't be.

    Cost: 0.3 us for builtin scalars, about 2 us for others; large values are given up as soon as
    they exceed the limit, before their buffers are copied.
    """
    kind = type(value)
    try:
        if kind in _SCALARS:
            return pickle.dumps(value, PROTOCOL)
        if kind is int:
            if cast(int, value).bit_length() > 8 * nbytes_max:
                return None
        elif kind is str or kind is bytes or kind is bytearray:
            if len(cast(bytes, value)) > nbytes_max:
                return None
        elif kind in _CONTAINERS and len(cast("list[object]", value)) > nbytes_max:
            return None  # each item takes at least a byte
        else:
            return _dump_bounded(value, nbytes_max)
        header = pickle.dumps(value, PROTOCOL)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None  # too large, or not to be pickled this way; whoever fetches it will be told
    return header if len(header) <= nbytes_max else None


def dump_function(function: object) -> bytes:
    """A function, or a bundle of graph tasks, as bytes.

    Raises:
        Exception: whatever pickle and then cloudpickle raise.

    Cost: 0.6 us for a function of a module, 20 us for a lambda.
    """
    return _dumps(function)


def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """The arguments of a call as bytes; they may hold InputRefs at any depth.

    Raises:
        Exception: whatever pickle and then cloudpickle raise.

    Cost: 0.3 us for small arguments.
    """
    return _dumps((args, kwargs))


def load_call(
    argument: bytes, inputs: Sequence[object] = ()
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The `(args, kwargs)` of `dump_call`, each InputRef replaced by the input it stands for.

    Raises:
        BaseException: whatever the arguments' own code raises.
    """
    if not inputs:
        return cast("tuple[tuple[Any, ...], dict[str, Any]]", pickle.loads(argument))
    token = _inputs.set(inputs)
    try:
        return cast("tuple[tuple[Any, ...], dict[str, Any]]", pickle.loads(argument))
    finally:
        _inputs.reset(token)


def nbytes_of(value: object) -> int:
    """How much memory `value` takes, in bytes; a guess of 1 MB where nobody can tell.

    Raises nothing but KeyboardInterrupt, whatever the value's own code does.  Cost: 0.1 us for
    builtin scalars and texts, some microseconds for others.
    """
    try:
        if type(value) in _MEASURED_BY_PYTHON:
            return sys.getsizeof(value)
        nbytes = nbytes_at_a_glance(value)
        if nbytes is not None:
            return nbytes
        from dask.sizeof import sizeof

        nbytes = sizeof(value)
        if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
            nbytes = int(nbytes) if isinstance(nbytes, float) else DEFAULT_NBYTES
        measured = int(nbytes)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return DEFAULT_NBYTES
    return min(measured, _NBYTES_MAX) if measured >= 0 else DEFAULT_NBYTES


def kind_of(value: object) -> str:
    """The type of a value as "module.qualname", for display.  Never raises.  Cost: 0.2 us."""
    kind = type(value)
    try:
        name = f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # its metaclass has other ideas; the class's own name is there still
        name = str(_QUALIFIED_NAME.__get__(kind))
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


class Guarded(bytes):
    """A header whose value is loaded only if it is of these families."""

    families: Sequence[str]

    @classmethod
    def of(cls, header: bytes, families: Sequence[str]) -> bytes:
        """The header, guarded; a value that is handed over is not read at all."""
        claimed: object = header
        if not isinstance(claimed, bytes):
            return header
        guarded = cls(header)
        guarded.families = families
        return guarded


class _Handed:
    """Carries a value by reference."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __len__(self) -> int:
        """There is nothing to load."""
        return 0


class _Bytes:
    """Lets plain bytes travel as a buffer; pickle would copy them into its stream."""

    __slots__ = ("value",)

    def __init__(self, value: bytes | bytearray) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type, tuple[pickle.PickleBuffer]]:
        return type(self.value), (pickle.PickleBuffer(self.value),)


class TooLarge(Exception):
    """The stream has outgrown its limit."""


class _BoundedStream:
    """Collects what a pickler writes until there is too much of it."""

    __slots__ = ("nbytes_left", "parts")

    def __init__(self, nbytes_max: int) -> None:
        self.nbytes_left = nbytes_max
        self.parts: list[bytes] = []

    def write(self, part: Any) -> None:
        self.nbytes_left -= len(part)
        if self.nbytes_left < 0:
            raise TooLarge
        self.parts.append(bytes(part))

    def refuse_large(self, buffer: pickle.PickleBuffer) -> bool:
        """Called before a buffer is copied into the stream."""
        try:
            nbytes = buffer.raw().nbytes
        except BufferError:
            return True
        if nbytes > self.nbytes_left:
            raise TooLarge
        return True


def split(stream: bytes, buffers: list[Buffer]) -> tuple[bytes, list[Buffer]]:
    """A pickle stream and its buffers as `dump` gives them: a long stream is a buffer as well."""
    if len(stream) < OUT_OF_BAND_NBYTES_MIN:
        return stream, buffers
    pieces: list[Buffer] = [stream, *buffers]
    return pickle.dumps(_Nested(pieces), PROTOCOL, buffer_callback=lambda _: False), pieces


class _Nested:
    """A stream and its buffers, all of them out of band."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[Buffer]) -> None:
        self.pieces = pieces

    def __reduce__(self) -> tuple[Callable[..., object], tuple[pickle.PickleBuffer, ...]]:
        return _load_nested, tuple([pickle.PickleBuffer(piece) for piece in self.pieces])


def _load_nested(stream: Buffer, *buffers: Buffer) -> object:
    return pickle.loads(cast(bytes, stream), buffers=buffers)


def _dump_bounded(value: object, nbytes_max: int) -> bytes | None:
    stream = _BoundedStream(nbytes_max)
    pickler = pickling.Pickler
    if type(value).__name__ in BETTER_NAMES and has_better_way(value):
        pickler = ways.family_pickler
    pickler(stream, PROTOCOL, buffer_callback=stream.refuse_large).dump(value)
    header = b"".join(stream.parts)
    return None if MAIN in header or is_by_value() else header


def _dumps(value: object) -> bytes:
    try:
        stream = pickling.dumps(value, PROTOCOL)
        if MAIN not in stream and not is_by_value():
            return stream
    except Exception:
        pass  # as in `dump`
    return ways.dumps_by_value(value)


def _input(index: int) -> object:
    """What an InputRef is loaded as."""
    inputs = _inputs.get()
    if inputs is None:
        raise RuntimeError(
            f"These arguments refer to input {index} of a run, but they were read outside of one. "
            "Pass futures to submit or map only, and let the worker read them."
        )
    return inputs[index]
