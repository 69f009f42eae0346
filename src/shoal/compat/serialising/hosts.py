"""For tests of libraries: whose memory an array is on (`distributed.protocol.utils_test`)."""

from __future__ import annotations

from typing import Any


def get_host_array(a: Any) -> Any:
    """What owns the memory of an array: an array, or whatever its buffer belongs to."""
    while True:
        base = a.base
        if base is None:
            return a
        if isinstance(base, memoryview):
            return base.obj
        if not hasattr(base, "base"):
            return base
        a = base
