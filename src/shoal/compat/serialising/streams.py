"""Messages of old to and from frames without holding up the loop (`distributed.comm.utils`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Literal

from dask.sizeof import sizeof

from shoal.compat.serialising.memory import nbytes
from shoal.compat.serialising.messages import dumps, loads

OFFLOAD_THRESHOLD: Final = 10 * 2**20
"""Bytes from which on a message is written and read beside the loop, in a thread."""


async def to_frames(
    msg: Any,
    allow_offload: bool = True,
    serializers: Any = None,
    on_error: Literal["message", "raise"] = "message",
    context: dict[str, Any] | None = None,
    frame_split_size: int | None = None,
) -> list[Any]:
    """As `dumps`; a large message in a thread, unless `allow_offload` is False.

    Raises:
        ValueError: it is nested too deeply.
    """
    write = partial(dumps, msg, serializers, on_error, context, frame_split_size)
    if not allow_offload or not _is_large(msg):
        return write()
    return await asyncio.to_thread(write)


def _is_large(msg: Any) -> bool:
    try:
        return bool(sizeof(msg) > OFFLOAD_THRESHOLD)
    except RecursionError:  # as deep as that it has little in it
        return False


async def from_frames(
    frames: Iterable[Any],
    deserialize: bool = True,
    deserializers: Iterable[str] | None = None,
    allow_offload: bool = True,
) -> Any:
    """As `loads`; many bytes in a thread, unless `allow_offload` is False."""
    frames = list(frames)
    read = partial(loads, frames, deserialize, deserializers)
    total = sum([nbytes(frame) for frame in frames])
    if not allow_offload or not deserialize or total <= OFFLOAD_THRESHOLD:
        return read()
    return await asyncio.to_thread(read)
