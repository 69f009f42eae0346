"""Bytes, arrays of the standard library, and views of memory, each as the memory that it is.

Pickle copies the first three into its stream, which costs as much as it takes to send them;
`payload` has its own way for bytes.  Views of memory it can't pickle at all.
"""

from __future__ import annotations

from array import array
from typing import Any

from shoal.protocol.families.registry import always, learn


def joined(frames: list[Any]) -> Any:
    """The one frame that has something in it, or all of them as one."""
    full = [frame for frame in frames if memoryview(frame).nbytes]
    return full[0] if len(full) == 1 else b"".join(full)


def from_bytes(value: bytes | bytearray) -> tuple[dict[str, Any], list[Any]]:
    """The value itself is its frame."""
    return {}, [value]


def to_bytes(header: dict[str, Any], frames: list[Any]) -> bytes:
    """Bytes of one frame or of several."""
    frame = joined(frames)
    return frame if isinstance(frame, bytes) else bytes(frame)


def to_bytearray(header: dict[str, Any], frames: list[Any]) -> bytearray:
    """A bytearray of one frame or of several."""
    frame = joined(frames)
    return frame if isinstance(frame, bytearray) else bytearray(frame)


def from_array(value: array[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Its type of item, and its memory."""
    return {"typecode": value.typecode}, [memoryview(value)]


def to_array(header: dict[str, Any], frames: list[Any]) -> array[Any]:
    """An array with a copy of the frames."""
    value = array(header["typecode"])
    value.frombytes(memoryview(joined(frames)).cast("B"))
    return value


def from_memoryview(value: memoryview) -> tuple[dict[str, Any], list[Any]]:
    """Its form, and its memory.

    Raises:
        TypeError: it refers to Python objects, or is empty in several dimensions.
    """
    if value.format == "O":
        raise TypeError("A memoryview of Python objects has no bytes that mean anything elsewhere.")
    if not value.nbytes and value.ndim != 1:
        raise TypeError("A memoryview that is empty has a form only if it has one dimension.")
    if not value.c_contiguous:
        return {"format": value.format, "shape": value.shape}, [value.tobytes()]
    return {"format": value.format, "shape": value.shape}, [value]


def to_memoryview(header: dict[str, Any], frames: list[Any]) -> memoryview:
    """A view of the frame, or of a copy of several."""
    view = memoryview(joined(frames))
    if not view.nbytes:
        return view.cast("B").cast(header["format"])
    return view.cast("B").cast(header["format"], tuple(header["shape"]))


def teach() -> None:
    """For the registry."""
    learn(bytes, from_bytes, to_bytes)
    learn(bytearray, from_bytes, to_bytearray)
    learn(array, from_array, to_array)
    learn(memoryview, from_memoryview, to_memoryview, when=always)
