"""Messages of old as frames (`distributed.protocol.core`): msgpack, and beside it what it can't.

Kept for programs that write and read such frames themselves; shoal's own messages are typed.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from importlib import import_module
from typing import Any, Final, Literal

import msgpack

from shoal.compat.pickling import dumps as pickle_dumps
from shoal.compat.serialising.compressing import decompress
from shoal.compat.serialising.errors import NotPlain
from shoal.compat.serialising.memory import msgpack_opts
from shoal.compat.serialising.splitting import (
    compressed,
    merge_and_deserialize,
    serialize_and_split,
)
from shoal.compat.serialising.wrappers import Pickled, Serialize, Serialized, ToPickle

logger: Final = logging.getLogger("shoal.protocol.core")

_SERIALIZED: Final = "__Serialized__"
_PICKLED: Final = "__Pickled__"
_plain_only: Final[ContextVar[bool]] = ContextVar("plain_only", default=False)


@contextmanager
def plain_only() -> Iterator[None]:
    """Within it, `loads` reads nothing that could run code: whose message it is isn't known yet.

    Marked values stay as they are; a message with a pickle, or with the name of a class, raises.
    """
    before = _plain_only.set(True)
    try:
        yield
    finally:
        _plain_only.reset(before)


def dumps(
    msg: Any,
    serializers: Any = None,
    on_error: Literal["message", "raise"] = "message",
    context: dict[str, Any] | None = None,
    frame_split_size: int | None = None,
) -> list[Any]:
    """A message as frames: what msgpack writes, then header and frames of each marked value.

    Args:
        serializers, on_error: as for `serialize`, of marked values.
        context: `compression` in it names how frames are compressed, where that pays.
        frame_split_size: bytes of the longest frame.

    Raises:
        ValueError: it is nested too deeply.
    """
    writer = _Writer(serializers, on_error, context, frame_split_size)
    first = msgpack.packb(msg, default=writer.on_unknown, use_bin_type=True)
    return [first, *writer.frames]


class _Writer:
    """Collects the frames beside one message."""

    def __init__(
        self,
        serializers: Any,
        on_error: Literal["message", "raise"],
        context: dict[str, Any] | None,
        frame_split_size: int | None,
    ) -> None:
        self.frames: list[Any] = []
        self._options = (serializers, on_error, context, frame_split_size)
        self._compression = (context or {}).get("compression")

    def on_unknown(self, value: Any) -> Any:
        """What msgpack shall write for a value of a kind that it doesn't know."""
        if isinstance(value, (Serialize, Serialized)):
            return {_SERIALIZED: self._add(*self._serialized(value))}
        if isinstance(value, ToPickle):
            return {_PICKLED: self._add(*_pickled(value.data))}
        if isinstance(value, Pickled):
            return {_PICKLED: self._add(dict(value.header), list(value.frames))}
        if isinstance(value, Enum):
            kind = type(value)
            return {
                "__Enum__": True,
                "name": value.name,
                "__module__": kind.__module__,
                "__name__": kind.__name__,
            }
        if isinstance(value, (set, frozenset)):
            return {"__Set__": True, "as-list": list(value)}
        logger.info(
            "Failed to serialize (can not serialize %r object); falling back to pickle. "
            "Be aware that this may degrade performance.",
            _type_name(value),
        )
        return {_PICKLED: self._add(*_pickled(value))}

    def _serialized(self, value: Serialize | Serialized) -> tuple[dict[str, Any], list[Any]]:
        if isinstance(value, Serialized):
            return dict(value.header), list(value.frames)
        serializers, on_error, context, size = self._options
        header, frames = serialize_and_split(value, serializers, on_error, context, size)
        header["compression"], frames = compressed(header, frames, self._compression)
        return header, frames

    def _add(self, header: dict[str, Any], frames: list[Any]) -> int:
        """Where the header of these is, as the place of a frame of the message."""
        place = len(self.frames) + 1
        header["num-sub-frames"] = len(frames)
        self.frames.append(msgpack.packb(header, default=_plain, use_bin_type=True))
        self.frames.extend(frames)
        return place


def _pickled(value: Any) -> tuple[dict[str, Any], list[Any]]:
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle_dumps(value, buffer_callback=buffers.append)
    frames = [buffer.raw() for buffer in buffers]
    return {"pickled-obj": stream, "compression": [None] * len(frames)}, frames


def _plain(value: Any) -> Any:
    """What a header may hold beside what msgpack knows: numbers of numpy, say."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"a header of frames can't hold a {_type_name(value)}")
    return item()


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def loads(frames: Any, deserialize: bool = True, deserializers: Iterable[str] | None = None) -> Any:
    """The message that `dumps` made these frames of; its sequences are tuples.

    Args:
        deserialize: False leaves marked values as Serialized, for those who pass them on.
        deserializers: families that may be used; None: all.

    Raises:
        FamilyNotAllowed: a value is of another.
        TypeError: a value could not be serialised.
        NotPlain: it holds what `plain_only` forbids.
    """
    frames = list(frames)
    plain = _plain_only.get()

    def on_map(found: dict[Any, Any]) -> Any:
        if _SERIALIZED in found:
            header, parts = _parts(frames, found[_SERIALIZED])
            if plain or not deserialize:
                return Serialized(header, parts)
            if "compression" in header:
                parts = decompress(header, parts)
            return merge_and_deserialize(header, parts, deserializers)
        if plain and (_PICKLED in found or "__Enum__" in found):
            raise NotPlain
        if _PICKLED in found:
            header, parts = _parts(frames, found[_PICKLED])
            return pickle.loads(header["pickled-obj"], buffers=parts)
        if "__Enum__" in found:
            kind = getattr(import_module(found["__module__"]), found["__name__"])
            return kind[found["name"]]
        if "__Set__" in found:
            return set(found["as-list"])
        return found

    return msgpack.unpackb(frames[0], object_hook=on_map, use_list=False, **msgpack_opts)


def _parts(frames: list[Any], place: int) -> tuple[dict[str, Any], list[Any]]:
    header = msgpack.unpackb(frames[place], use_list=False, **msgpack_opts)
    count = header.pop("num-sub-frames")
    return header, frames[place + 1 : place + 1 + count]


def nested_deserialize(x: Any, emulate_deserialize: bool = True) -> Any:
    """A copy of a message with marked values as who reads it would see them.

    `emulate_deserialize`: False unpickles what is marked to be pickled, and nothing else.
    """
    if isinstance(x, ToPickle):
        return x.data
    if emulate_deserialize and isinstance(x, Serialize):
        return x.data
    if emulate_deserialize and isinstance(x, Serialized):
        return merge_and_deserialize(x.header, list(x.frames))
    if type(x) is dict:
        return {key: nested_deserialize(value, emulate_deserialize) for key, value in x.items()}
    if type(x) in (list, tuple, set, frozenset):
        return type(x)([nested_deserialize(value, emulate_deserialize) for value in x])
    return x
