"""Registered serializers inside pickles: values of their types, at any depth, go through them.

What such a value becomes in the stream is its type, its header, its frames, and, for processes that
have not registered a deserializer, the sender's.  Large frames travel beside the stream like the
buffers of any other value.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

from shoal.protocol.families.errors import NoDeserializer, NotBytes
from shoal.protocol.families.registry import (
    Deserializer,
    Serializer,
    at_taught,
    dask_deserialize,
    plain,
    register_serialization,
    serializer_of,
    takes_context,
    taught,
)
from shoal.protocol.teaching import PROTOCOL, context, pickling


class Pickler(pickle.Pickler):
    """Pickle's, with registered serializers before what types say about themselves."""

    def reducer_override(self, value: Any) -> Any:
        """How to pickle what is no builtin; pickle calls this."""
        return NotImplemented if type(value) in plain else reduced(value)


class AheadPickler(pickle.Pickler):
    """For results that are pickled as soon as they are there, whoever will want them: it raises
    NotYet where a serializer wants to know who that is."""

    def reducer_override(self, value: Any) -> Any:
        """How to pickle what is no builtin; pickle calls this."""
        return NotImplemented if type(value) in plain else reduced(value, is_ahead=True)


class NotYet(Exception):
    """A value can only be pickled for somebody."""


def dumps(value: object, protocol: int, buffer_callback: Callable[..., Any] | None = None) -> bytes:
    """Like `pickle.dumps`.  Cost: 1 us more, and 0.2 us for each part that is no builtin."""
    stream = io.BytesIO()
    Pickler(stream, protocol, buffer_callback=buffer_callback).dump(value)
    return stream.getvalue()


def dumps_by_value(
    value: object, protocol: int, buffer_callback: Callable[..., Any] | None = None
) -> bytes:
    """Like `cloudpickle.dumps`."""
    stream = io.BytesIO()
    _pickler_by_value()(stream, protocol, buffer_callback=buffer_callback).dump(value)
    return stream.getvalue()


@cache
def _pickler_by_value() -> Any:
    import cloudpickle  # costs 40 ms, and many programs never need it

    class PicklerByValue(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            found = reduced(value)
            if found is NotImplemented:
                found = super().reducer_override(value)
                if found is not NotImplemented and isinstance(value, type):
                    return _class_with_its_way(value) or found
            return found

    return PicklerByValue


def _class_with_its_way(kind: type) -> Any:
    """A taught class that travels by value, with what it was taught; None: it was taught nothing.

    Those who get the class can't import the module that would teach them.
    """
    serialize, deserialize = taught(kind)
    if serialize is None:
        return None
    ways = _taken_along(serialize), _taken_along(deserialize)
    if isinstance(ways[0], str) or isinstance(ways[1], str):
        return None  # whoever makes values of it there can't send them, and will be told so
    import cloudpickle

    return _taught_class, (cloudpickle.dumps(kind, PROTOCOL), *ways)


def _taught_class(stream: bytes, serialize: bytes, deserialize: bytes) -> type:
    """What `_class_with_its_way` is loaded as."""
    kind: type = pickle.loads(stream)
    if taught(kind)[0] is None:
        register_serialization(kind, _loaded(serialize), _loaded(deserialize))
    return kind


def reduced(value: Any, *, is_ahead: bool = False) -> Any:
    """What pickle shall write for `value`; NotImplemented: what it would write anyway."""
    serialize = serializer_of(value)
    if serialize is None or isinstance(value, type):
        return NotImplemented
    if is_ahead and _wants(serialize):
        raise NotYet
    return by_serializer(value, serialize)


def by_serializer(value: Any, serialize: Serializer) -> Any:
    """What pickle shall write for `value` by its serializer."""
    kind = type(value)
    try:
        header, frames = _answer(serialize, value)
    except NotImplementedError:
        return NotImplemented
    except Exception as error:
        name = getattr(serialize, "__qualname__", repr(serialize))
        error.add_note(f"Raised by {name}, which is registered to serialise {_name_of(kind)}.")
        raise
    brought = _taken_along(dask_deserialize.find(kind))
    return _restore, (kind, brought, header, *[as_buffer(frame) for frame in frames])


def _answer(serialize: Serializer, value: Any) -> tuple[dict[str, Any], list[Any]]:
    answer: Any = serialize(value, context=context.get()) if _wants(serialize) else serialize(value)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], list | tuple):
        raise NotBytes(_name_of(type(value)), answer)
    return answer[0], list(answer[1])


_wants = lru_cache(maxsize=256)(takes_context)


def as_buffer(frame: Any) -> Any:
    """A frame in a form that pickle may leave out of its stream; what is no memory stays."""
    try:
        buffer = pickle.PickleBuffer(frame)
        buffer.raw()
    except BufferError:  # not contiguous, so it can't be sent as it lies
        return pickle.PickleBuffer(bytes(frame))
    except TypeError:
        return frame
    return buffer


@lru_cache(maxsize=256)
def _taken_along(deserialize: Callable[..., Any] | None) -> bytes | str:
    """A deserializer as bytes, or why it stays behind."""
    if deserialize is None:
        return "it has registered none"
    try:
        stream = pickle.dumps(deserialize, PROTOCOL)
        if b"__main__" not in stream:
            return stream
    except Exception:
        pass  # cloudpickle can do more
    import cloudpickle

    try:
        by_value: bytes = cloudpickle.dumps(deserialize, PROTOCOL)
        return by_value
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _restore(kind: type, brought: bytes | str, header: dict[str, Any], *frames: Any) -> Any:
    """What a value that went through a registered serializer is loaded as."""
    deserialize = dask_deserialize.find(kind)
    if deserialize is None:
        if isinstance(brought, str):
            raise NoDeserializer(_name_of(kind), brought)
        deserialize = _loaded(brought)
    return _restored(deserialize, kind, header, frames)


def restored_here(kind: type, brought: object, header: dict[str, Any], *frames: Any) -> Any:
    """As `_restore`, but only by what this process has registered itself."""
    deserialize = dask_deserialize.find(kind)
    if deserialize is None:
        raise NoDeserializer(_name_of(kind))
    return _restored(deserialize, kind, header, frames)


def _restored(
    deserialize: Deserializer, kind: type, header: dict[str, Any], frames: Iterable[Any]
) -> Any:
    try:
        return deserialize(header, [as_memory(frame) for frame in frames])
    except Exception as error:
        name = getattr(deserialize, "__qualname__", repr(deserialize))
        error.add_note(f"Raised by {name}, which is registered to deserialise {_name_of(kind)}.")
        raise


@lru_cache(maxsize=256)
def _loaded(brought: bytes) -> Callable[..., Any]:
    found: Callable[..., Any] = pickle.loads(brought)
    return found


def as_memory(frame: Any) -> Any:
    """A frame as its reader knows it."""
    return frame.raw() if isinstance(frame, pickle.PickleBuffer) else frame


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


at_taught.append(lambda: pickling.teach(AheadPickler, dumps))
