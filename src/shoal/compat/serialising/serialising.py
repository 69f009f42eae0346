"""`serialize` and `deserialize`: a value to a header and frames by the first family that can.

The header says which family it was, so that whoever reads it may refuse those that run code.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgpack
from dask.utils import typename

from shoal.compat.pickling import dumps as pickle_dumps
from shoal.compat.serialising.errors import CannotSerialize
from shoal.compat.serialising.memory import msgpack_opts
from shoal.compat.serialising.wrappers import Serialize, Serialized
from shoal.protocol.families.errors import FamilyNotAllowed
from shoal.protocol.families.registry import (
    cuda_deserialize,
    cuda_serialize,
    dask_deserialize,
    dask_serialize,
    families,
    register_serialization_family,
    takes_context,
)
from shoal.protocol.families.wholes import from_value, to_value

Parts: TypeAlias = tuple[dict[str, Any], list[Any]]
"""Header and frames."""

DEFAULT: Final = ("dask", "pickle")
_COLLECTIONS: Final = {kind.__name__: kind for kind in (list, set, tuple, dict)}
_PLAIN_KEYS: Final = (str, bytes, int, float, bool, type(None))
_TEXT_MAX: Final = 10_000


def serialize(
    x: object,
    serializers: Sequence[str] | None = None,
    on_error: Literal["message", "raise"] = "message",
    context: dict[str, Any] | None = None,
    iterate_collection: bool | None = None,
) -> Parts:
    """`x` as a header, which msgpack can write, and frames.

    Args:
        serializers: names of families in the order in which they are asked.
        on_error: "message": what went wrong travels in place of the value, and is raised where it
            arrives; "raise": it is raised here.
        context: what families and serializers with such a parameter are told.
        iterate_collection: each item of a list, tuple, set or dict on its own; None: if its first
            one is of a type with a registered serializer.

    Raises:
        KeyError: there is no family of that name.
        CannotSerialize: no family could, and `on_error` is "raise".
        ValueError: `on_error` is something else.
    """
    serializers = DEFAULT if serializers is None else serializers
    if isinstance(x, Serialized):
        return x.header, x.frames
    if isinstance(x, Serialize):
        iterate = True if _holds_marked(x.data) else None
        return serialize(x.data, serializers, on_error, context, iterate)
    if _goes_by_items(x, serializers, iterate_collection):
        return _serialize_items(x, serializers, on_error, context)
    problem: Exception | None = None
    for name in serializers:
        dumps, _, wants_context = families[name]
        try:
            header, frames = dumps(x, context=context) if wants_context else dumps(x)
        except NotImplementedError:
            continue
        except Exception as error:
            problem = error
            break
        return {**header, "serializer": name}, frames
    try:
        return _failed(x, on_error, problem)
    finally:
        del problem  # it holds this frame, which would hold it


def _failed(x: object, on_error: str, problem: Exception | None) -> Parts:
    if on_error == "message":
        text = f"Could not serialize object of type {type(x).__name__}"
        frames = [text.encode()]
        if problem is not None:
            lines = traceback.format_exception(problem)
            frames.append("".join(lines)[-_TEXT_MAX:].encode(errors="backslashreplace"))
        return {"serializer": "error"}, frames
    if on_error == "raise":
        raise CannotSerialize(type(x).__name__, _text_of(x)) from problem
    raise ValueError(f"on_error is 'message' or 'raise', not {on_error!r}")


def _text_of(x: object) -> str:
    try:
        return str(x)[:_TEXT_MAX]
    except Exception as error:  # a deep container has no text, for example
        return f"(it has no text: {type(error).__name__})"


def _goes_by_items(x: object, serializers: Sequence[str], iterate: bool | None) -> bool:
    kind = type(x)
    if kind not in _COLLECTIONS.values() or iterate is False:
        return False
    items: Any = x
    if kind is dict and not all(_is_plain_key(key) for key in items):
        return False
    if iterate:
        return True
    if (
        kind is list
        and "msgpack" in serializers
        and "pickle" not in _before("msgpack", serializers)
    ):
        return bool(items)
    return "dask" in serializers and check_dask_serializable(x)


def _before(name: str, names: Sequence[str]) -> Sequence[str]:
    return names[: list(names).index(name)]


def _holds_marked(x: object) -> bool:
    """Whether an item of a collection is itself marked to be serialised."""
    if type(x) not in _COLLECTIONS.values():
        return False
    collection: Any = x
    items = collection.values() if type(x) is dict else collection
    return any(isinstance(item, (Serialize, Serialized)) for item in items)


def _is_plain_key(key: object) -> bool:
    if type(key) is tuple:
        return all(type(part) in _PLAIN_KEYS for part in key)
    return type(key) in _PLAIN_KEYS


def _serialize_items(
    x: Any, serializers: Sequence[str], on_error: Any, context: dict[str, Any] | None
) -> Parts:
    headers: list[dict[str, Any]] = []
    frames: list[Any] = []
    lengths: list[int] = []
    for item in x.items() if type(x) is dict else x:
        value = item[1] if type(x) is dict else item
        header, part = serialize(value, serializers, on_error, context)
        if type(x) is dict:
            header = {**header, "key": item[0]}
        headers.append(header)
        frames.extend(part)
        lengths.append(len(part))
    whole: dict[str, Any] = {
        "sub-headers": headers,
        "is-collection": True,
        "frame-lengths": lengths,
        "type-serialized": type(x).__name__,
    }
    if any("compression" in header for header in headers):
        whole["compression"] = [
            name
            for header, length in zip(headers, lengths, strict=True)
            for name in header.get("compression", [None] * length)
        ]
    return whole, frames


def deserialize(
    header: dict[str, Any],
    frames: Collection[Any],
    deserializers: Iterable[str] | None = None,
) -> Any:
    """The value that `serialize` made these of.

    Args:
        deserializers: families that may be used; None: all that there are.

    Raises:
        FamilyNotAllowed: its family is not among those.
        TypeError: it could not be serialised where it came from.
        Exception: what the family raises.
    """
    if "is-collection" in header:
        return _deserialize_items(header, list(frames), deserializers)
    name = str(header.get("serializer"))
    allowed = list(families if deserializers is None else deserializers)
    if name not in allowed or name not in families:
        raise FamilyNotAllowed(name, allowed)
    return families[name].loads(header, list(frames))


def _deserialize_items(
    header: dict[str, Any], frames: list[Any], deserializers: Iterable[str] | None
) -> Any:
    kind = _COLLECTIONS[header["type-serialized"]]
    items: list[Any] = []
    at = 0
    for part, length in zip(header["sub-headers"], header["frame-lengths"], strict=True):
        value = deserialize(part, frames[at : at + length], deserializers)
        items.append((part["key"], value) if kind is dict else value)
        at += length
    return items if kind is list else kind(items)


def check_dask_serializable(x: Any) -> bool:
    """Whether the family `dask` knows the type of `x`, or of the first item of a collection, and
    so on; further items aren't looked at."""
    while type(x) in _COLLECTIONS.values():
        if not x:
            return False
        x = next(iter(x.values() if type(x) is dict else x))
    return dask_serialize.find(type(x)) is not None


def _is_msgpack_serializable(v: Any) -> bool:
    """Whether msgpack writes all of `v` by itself."""
    stack = [v]
    while stack:
        part = stack.pop()
        kind = type(part)
        if kind in (list, tuple):
            stack.extend(part)
        elif kind is dict:
            stack.extend(part)
            stack.extend(part.values())
        elif kind not in _PLAIN_KEYS:
            return False
    return True


def dask_dumps(x: object, context: dict[str, Any] | None = None) -> Parts:
    """By the serializer that is registered for the type."""
    return _by_type(x, dask_serialize.find(type(x)), context)


def _by_type(x: object, dumps: Any, context: dict[str, Any] | None) -> Parts:
    if dumps is None:
        raise NotImplementedError(type(x).__name__)
    header, frames = dumps(x, context=context) if takes_context(dumps) else dumps(x)
    kind = type(x)
    told = {
        "sub-header": header,
        "type": typename(kind),
        "type-serialized": pickle_dumps(kind),
    }
    return told, frames


def dask_loads(header: dict[str, Any], frames: list[Any]) -> Any:
    """By the deserializer that is registered for the type."""
    kind = pickle.loads(header["type-serialized"])
    return dask_deserialize.dispatch(kind)(header["sub-header"], frames)


def cuda_dumps(x: object, context: dict[str, Any] | None = None) -> Parts:
    """As `dask_dumps`, by what libraries for GPUs registered."""
    try:
        dumps = cuda_serialize.dispatch(type(x))
    except TypeError:
        dumps = None
    return _by_type(x, dumps, context)


def cuda_loads(header: dict[str, Any], frames: list[Any]) -> Any:
    """As `dask_loads`, by what libraries for GPUs registered."""
    kind = pickle.loads(header["type-serialized"])
    return cuda_deserialize.dispatch(kind)(header["sub-header"], frames)


def pickle_family_dumps(x: object, context: dict[str, Any] | None = None) -> Parts:
    """A pickle, and its buffers beside it."""
    protocol = (context or {}).get("pickle-protocol", pickle.HIGHEST_PROTOCOL)
    return from_value(x, pickle_dumps, protocol)


def msgpack_dumps(x: object) -> Parts:
    """What msgpack writes; what it can't is left to others."""
    try:
        frame = msgpack.packb(x, use_bin_type=True)
    except Exception:
        raise NotImplementedError from None
    return {}, [frame]


def msgpack_loads(header: dict[str, Any], frames: list[Any]) -> Any:
    """What msgpack reads; sequences are tuples."""
    return msgpack.unpackb(b"".join(frames), use_list=False, **msgpack_opts)


def error_loads(header: dict[str, Any], frames: list[Any]) -> Any:
    """Raises TypeError: what went wrong where the value was to be serialised."""
    raise TypeError("\n".join([bytes(frame).decode(errors="replace") for frame in frames]))


def _no_dumps(x: object) -> Parts:
    raise NotImplementedError("errors are only read")


register_serialization_family("dask", dask_dumps, dask_loads)
register_serialization_family("pickle", pickle_family_dumps, to_value)
register_serialization_family("msgpack", msgpack_dumps, msgpack_loads)
register_serialization_family("error", _no_dumps, error_loads)
register_serialization_family("cuda", cuda_dumps, cuda_loads)


def register_generic(
    cls: type,
    serializer_name: str = "dask",
    serialize_func: Any = dask_serialize,
    deserialize_func: Any = dask_deserialize,
) -> None:
    """Have values of `cls` travel attribute by attribute, each by the family that suits it.

    For classes whose values are nothing but their `__dict__`.

    Args:
        serializer_name: the family of the two functions.
        serialize_func, deserialize_func: the dispatches to register in.
    """

    def dumps(x: Any) -> Parts:
        return _from_attributes(x, serializer_name)

    serialize_func.register(cls)(dumps)
    deserialize_func.register(cls)(_to_attributes)


def _from_attributes(x: Any, serializer_name: str) -> Parts:
    simple: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    frames: list[Any] = []
    for name, value in x.__dict__.items():
        if _is_msgpack_serializable(value) and type(value) is not list:
            simple[name] = value
            continue
        header, part = serialize(value, [serializer_name, "pickle"], "raise")
        parts[name] = {"header": header, "start": len(frames), "stop": len(frames) + len(part)}
        frames.extend(part)
    kind = pickle_dumps(type(x))
    return {"type-serialized": kind, "simple": simple, "complex": parts}, frames


def _to_attributes(header: dict[str, Any], frames: list[Any]) -> Any:
    kind = pickle.loads(header["type-serialized"])
    made = object.__new__(kind)
    made.__dict__.update(header["simple"])
    for name, part in header["complex"].items():
        value = deserialize(part["header"], frames[part["start"] : part["stop"]])
        made.__dict__[name] = value
    return made
