"""`distributed.protocol.pickle`: pickle where it suffices, cloudpickle where it does not."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
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


def loads(x: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """What `dumps` made `x` and `buffers` of."""
    return pickle.loads(x, buffers=buffers)
