"""`distributed.protocol.pickle`: pickle where it suffices, cloudpickle where it does not, and what
programs registered for types of theirs in both."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any, Final

from shoal.protocol.teaching import needs_value, pickling
from shoal.protocol.ways import dumps_by_value

HIGHEST_PROTOCOL: Final = pickle.HIGHEST_PROTOCOL


def dumps(
    x: Any,
    *,
    buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None,
    protocol: int = HIGHEST_PROTOCOL,
) -> bytes:
    """Pickle `x`; what belongs to `__main__` goes by value, so that another process can load it.

    Raises:
        Exception: whatever pickle and then cloudpickle raise.
    """
    buffers: list[pickle.PickleBuffer] = []
    collect = None if buffer_callback is None else buffers.append
    try:
        stream = pickling.dumps(x, protocol, buffer_callback=collect)
        by_value = needs_value(stream)
    except Exception:  # pickle raises of every kind, and cloudpickle says what is wrong
        by_value = True
    if by_value:
        buffers.clear()
        stream = dumps_by_value(x, collect, buffers, protocol)
    if buffer_callback is not None:
        for buffer in buffers:
            buffer_callback(buffer)
    return stream


def loads(x: Any, *, buffers: Iterable[Any] = ()) -> Any:
    """What `dumps` made `x` and `buffers` of."""
    return pickle.loads(x, buffers=buffers)
