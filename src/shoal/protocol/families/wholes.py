"""Values as a pickle with its buffers beside it: what most libraries need, and no more.

Here for programs that ask for the family `dask` or `pickle` by name; what shoal sends by itself
goes through `payload`, which does the same with less ado.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from shoal.protocol.families.named import load_part
from shoal.protocol.teaching import PROTOCOL


def from_value(
    value: Any, dumps: Callable[..., bytes] | None = None, protocol: int = PROTOCOL
) -> tuple[dict[str, Any], list[Any]]:
    """The stream and the buffers as frames; the header says which of those may be written to.

    `dumps`: what pickles, if not pickle.
    """
    buffers: list[pickle.PickleBuffer] = []
    collect = buffers.append if protocol >= PROTOCOL else None
    stream = (dumps or pickle.dumps)(value, protocol=protocol, buffer_callback=collect)
    frames = [_raw(buffer) for buffer in buffers]
    writeable = tuple([not frame.readonly for frame in frames])
    return {"writeable": writeable}, [stream, *frames]


def to_value(header: dict[str, Any], frames: list[Any]) -> Any:
    """The value, in the memory of its frames as far as they are as they were."""
    stream, *rest = frames
    buffers = [
        as_was(frame, writeable)
        for frame, writeable in zip(rest, header["writeable"], strict=False)
    ]
    return load_part(stream, buffers)


def as_was(frame: Any, writeable: bool) -> memoryview:
    """The frame to be written to or not, as it was where it came from; a copy if need be."""
    view = memoryview(frame)
    if writeable and view.readonly:
        return memoryview(bytearray(view))
    return view if writeable else view.toreadonly()


def _raw(buffer: pickle.PickleBuffer) -> memoryview:
    try:
        return buffer.raw()
    except BufferError:  # not contiguous
        return memoryview(memoryview(buffer).tobytes())
