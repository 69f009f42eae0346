"""Values as frames of bounded length, and as one piece of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgpack

from shoal.compat.serialising.compressing import AnyBytes, decompress, maybe_compress
from shoal.compat.serialising.memory import (
    BIG_BYTES_SHARD_SIZE,
    frame_split_size,
    host_array_from_buffers,
    merge_memoryviews,
    msgpack_opts,
    pack_frames_prelude,
    unpack_frames,
)
from shoal.compat.serialising.serialising import deserialize, serialize


def serialize_and_split(
    x: object,
    serializers: Any = None,
    on_error: Literal["message", "raise"] = "message",
    context: dict[str, Any] | None = None,
    size: int | None = None,
) -> tuple[dict[str, Any], list[Any]]:
    """As `serialize`, with frames longer than `size` bytes cut; the header says where."""
    header, frames = serialize(x, serializers, on_error, context)
    header = dict(header)
    counts: list[int] = []
    offsets: list[int] = []
    compression: list[Any] = []
    known = header.get("compression", [None] * len(frames))
    cut: list[Any] = []
    for frame, name in zip(frames, known, strict=True):
        pieces = [frame] if name else frame_split_size(frame, n=size or BIG_BYTES_SHARD_SIZE)
        counts.append(len(pieces))
        offsets.append(len(cut))
        cut.extend(pieces)
        compression.extend([name] * len(pieces))
    header["split-num-sub-frames"] = counts
    header["split-offsets"] = offsets
    if "compression" in header:
        header["compression"] = compression
    return header, cut


def merge_and_deserialize(
    header: dict[str, Any], frames: list[Any], deserializers: Iterable[str] | None = None
) -> Any:
    """The value of `serialize_and_split`; pieces that lie side by side become one, uncopied."""
    if "split-num-sub-frames" in header:
        whole = []
        counts, offsets = header["split-num-sub-frames"], header["split-offsets"]
        for count, offset in zip(counts, offsets, strict=True):
            whole.append(frames[offset] if count == 1 else _merged(frames[offset : offset + count]))
        frames = whole
    return deserialize(header, frames, deserializers)


def _merged(pieces: list[Any]) -> Any:
    try:
        return merge_memoryviews(pieces)
    except (ValueError, TypeError):
        return host_array_from_buffers(pieces)


def serialize_bytelist(
    x: object, compression: str | Literal[False] | None = "auto", **kwargs: Any
) -> list[AnyBytes]:
    """`x` as pieces of bytes that, joined, `deserialize_bytes` reads.

    `kwargs`: for `serialize_and_split`.
    """
    header, frames = serialize_and_split(x, **kwargs)
    header["compression"], frames = compressed(header, frames, compression)
    header["count"] = len(frames)
    first: AnyBytes = msgpack.packb(header, use_bin_type=True)
    return [pack_frames_prelude([first, *frames]), first, *frames]


def serialize_bytes(x: object, **kwargs: Any) -> bytes:
    """`x` as one piece of bytes."""
    return b"".join(serialize_bytelist(x, **kwargs))


def deserialize_bytes(b: AnyBytes) -> Any:
    """The value of `serialize_bytes`, in the memory of `b` as far as it may be."""
    first, *frames = unpack_frames(b)
    header = msgpack.unpackb(first, use_list=False, **msgpack_opts) if first else {}
    return merge_and_deserialize(header, decompress(header, frames))


def compressed(
    header: dict[str, Any], frames: list[Any], compression: Any
) -> tuple[list[Any], list[Any]]:
    """How each frame is compressed now, and the frames; those that already are stay as they are."""
    names: list[Any] = []
    now: list[Any] = []
    for frame, known in zip(frames, header.get("compression", [None] * len(frames)), strict=True):
        done = (known, frame) if known else maybe_compress(frame, compression=compression)
        names.append(done[0])
        now.append(done[1])
    return names, now
