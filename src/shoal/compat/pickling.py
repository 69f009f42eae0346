"""`distributed.protocol`: pickle where it suffices, cloudpickle where it does not."""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import cloudpickle

HIGHEST_PROTOCOL: Final = pickle.HIGHEST_PROTOCOL


def dumps(
    x: Any,
    *,
    buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None,
    protocol: int = HIGHEST_PROTOCOL,
) -> bytes:
    """Pickle `x`; what belongs to `__main__` goes by value, so that another process can load it."""
    _teach_arrow()
    buffers: list[pickle.PickleBuffer] = []
    collect = None if buffer_callback is None else buffers.append
    try:
        stream = pickle.dumps(x, protocol, buffer_callback=collect)
        if b"__main__" in stream:
            raise pickle.PicklingError("by value")
    except Exception:  # pickle raises of every kind, and cloudpickle says what is wrong
        buffers.clear()
        stream = cloudpickle.dumps(x, protocol, buffer_callback=collect)
    if buffer_callback is not None:
        for buffer in buffers:
            buffer_callback(buffer)
    return stream


def _teach_arrow() -> None:
    """Collections that read Parquet by Arrow hold descriptions of files, which lack a way."""
    filesystems: Any = sys.modules.get("pyarrow.fs")
    if filesystems is not None and filesystems.FileInfo not in copyreg.dispatch_table:
        copyreg.pickle(filesystems.FileInfo, _reduce_file_info)


def _reduce_file_info(info: Any) -> tuple[Any, ...]:
    return _file_info, (type(info), info.path, info.type, info.size, info.mtime_ns)


def _file_info(kind: Any, path: str, type: Any, size: int | None, mtime_ns: int | None) -> Any:
    return kind(path, type, size=size, mtime_ns=mtime_ns)


def loads(x: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """What `dumps` made `x` and `buffers` of."""
    return pickle.loads(x, buffers=buffers)


def to_frames(msg: Any) -> list[Any]:
    """A message as frames: the pickle, then the large buffers beside it, which are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    stream = dumps(msg, buffer_callback=buffers.append)
    return [stream, *(buffer.raw() for buffer in buffers)]


def from_frames(frames: Sequence[Any]) -> Any:
    """What `to_frames` made these of.  As with any pickle: only from whom you trust."""
    stream, *buffers = frames
    return loads(bytes(stream), buffers=buffers)
