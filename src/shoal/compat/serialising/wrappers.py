"""What marks values in messages of old: to be serialised, already serialised, to be pickled."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import dask.sizeof
import dask.tokenize

from shoal.compat.serialising.memory import nbytes

T = TypeVar("T")

_sizeof: Any = dask.sizeof.sizeof  # dask ships annotations for half of its functions
_normalize_token: Any = dask.tokenize.normalize_token


class Serialize:
    """A value in a message that is to travel by its family, and to be left alone on its way."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"<Serialize: {self.data}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Serialize) and bool(other.data == self.data)

    def __hash__(self) -> int:
        return hash(self.data)


to_serialize = Serialize
"""Marks a value to be serialised."""


class _Frames:
    """A header and its frames."""

    def __init__(self, header: dict[str, Any], frames: Any) -> None:
        self.header = header
        self.frames = frames

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Frames) or type(other) is not type(self):
            return False
        return bool(other.header == self.header and other.frames == self.frames)

    __hash__ = None  # type: ignore[assignment]  # frames may change


class Serialized(_Frames):
    """What a Serialize became, as those see it who only pass it on."""


class Pickled(_Frames):
    """What a ToPickle became."""


class ToPickle(Generic[T]):
    """A value in a message that whoever reads the message unpickles, the scheduler as well."""

    def __init__(self, data: T) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"<ToPickle: {self.data}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToPickle) and bool(other.data == self.data)

    def __hash__(self) -> int:
        return hash(self.data)


def _sizeof_marked(obj: Any) -> int:
    return int(_sizeof(obj.data))


def _sizeof_frames(obj: Any) -> int:
    return int(_sizeof(obj.header)) + sum([nbytes(frame) for frame in obj.frames])


def _normalized(obj: Any) -> list[Any]:
    return [obj.header, *obj.frames]


_sizeof.register((Serialize, ToPickle), _sizeof_marked)
_sizeof.register((Serialized, Pickled), _sizeof_frames)
_normalize_token.register(Serialized, _normalized)
