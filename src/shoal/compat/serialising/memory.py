"""Frames: joined to one piece of memory, cut, and counted (`distributed.protocol.utils`)."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

BIG_BYTES_SHARD_SIZE: Final = 64 * 2**20
"""Longest frame that messages are cut into, in bytes."""

msgpack_opts: Final = {
    **{f"max_{kind}_len": 2**32 - 1 for kind in ("str", "bin", "array", "map", "ext")},
    "strict_map_key": False,
    "raw": False,
}
"""For `msgpack.unpackb`: nothing is too long, and keys may be of any type."""


def ensure_memoryview(obj: Any) -> memoryview:
    """The bytes of `obj` as one dimension, without a copy if they lie in one piece."""
    view = memoryview(obj)
    if not view.nbytes:
        return memoryview(bytearray())
    if not view.contiguous:
        return memoryview(bytearray(view.tobytes()))
    if view.ndim != 1 or view.format != "B":
        return memoryview(_flat(view))
    return obj if isinstance(obj, memoryview) else view


def _flat(view: memoryview) -> memoryview:
    if view.c_contiguous:
        return view.cast("B")
    from pickle import PickleBuffer  # the only one in the library that takes Fortran's order

    return PickleBuffer(view).raw()


def nbytes(frame: Any, _bytes_like: tuple[type, ...] = (bytes, bytearray)) -> int:
    """Bytes of a frame, or of anything that counts its own."""
    nbytes = None if isinstance(frame, _bytes_like) else getattr(frame, "nbytes", None)
    return len(frame) if nbytes is None else int(nbytes)


def host_array(n: int) -> memoryview:
    """Memory for `n` bytes; what is in it first, nobody knows."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return memoryview(bytearray(n))
    return memoryview(numpy.empty((n,), dtype="u1"))


def host_array_from_buffers(buffers: Iterable[Any]) -> memoryview:
    """A copy of all of them, one after another."""
    views = [ensure_memoryview(buffer) for buffer in buffers]
    whole = host_array(sum([view.nbytes for view in views]))
    at = 0
    for view in views:
        whole[at : at + view.nbytes] = view
        at += view.nbytes
    return whole


def frame_split_size(frame: Any, n: int = BIG_BYTES_SHARD_SIZE) -> list[memoryview]:
    """A frame cut into pieces of at most `n` bytes, which are views of it.

    Raises:
        ValueError: `n` is no positive number.
    """
    if n <= 0:
        raise ValueError(f"frames are cut into pieces of a positive number of bytes, not {n}")
    view = memoryview(frame)
    if view.nbytes <= n:
        return [view]
    view = ensure_memoryview(view)
    return [view[at : at + n] for at in range(0, view.nbytes, n)]


def pack_frames_prelude(frames: Collection[Any]) -> bytes:
    """How many frames there are, and how long each is, as 8-byte integers of this machine."""
    lengths = [nbytes(frame) for frame in frames]
    return struct.pack(f"{len(lengths) + 1}Q", len(lengths), *lengths)


def pack_frames(frames: Collection[Any]) -> bytes:
    """Frames as one piece; `unpack_frames` takes it apart.  Cost: one copy."""
    return b"".join([pack_frames_prelude(frames), *frames])


def unpack_frames(b: Any, *, remainder: bool = False, partial: bool = False) -> Any:
    """The frames that `pack_frames` joined, as views of `b`.

    Args:
        remainder: one more frame, with what follows after them.
        partial: `b` may end early; the answer is (frames, lengths of those that are missing).

    Raises:
        AssertionError: `b` ends early, and not `partial`.
    """
    view = memoryview(b)
    word = struct.calcsize("Q")
    (count,) = struct.unpack_from("Q", view)
    lengths = struct.unpack_from(f"{count}Q", view, word)
    at = word * (count + 1)
    frames: list[memoryview] = []
    missing: list[int] = []
    for length in lengths:
        if at + length > view.nbytes:
            missing = list(lengths[len(frames) :])
            break
        frames.append(view[at : at + length])
        at += length
    if not partial and missing:
        raise AssertionError(
            f"{len(missing)} of {count} frames are cut off: {view.nbytes} bytes are here"
        )
    if remainder:
        frames.append(view[at:])
    return (frames, missing) if partial else frames


def address_of_memoryview(mv: memoryview) -> int:
    """Where its first byte is.

    Raises:
        TypeError: it is no memoryview.
        ValueError: it can't be written to, and numpy, which knows such addresses, is missing.
    """
    if not isinstance(mv, memoryview):
        raise TypeError(f"expected memoryview, not {type(mv).__name__}")
    if mv.readonly:
        try:
            import numpy
        except ImportError:
            raise ValueError("where read-only memory is, only numpy can tell") from None
        return int(numpy.asarray(mv).__array_interface__["data"][0])
    return ctypes.addressof((ctypes.c_char * 1).from_buffer(mv))


def merge_memoryviews(mvs: Sequence[memoryview]) -> memoryview:
    """Neighbouring views of one buffer as one view, without a copy.

    Raises:
        TypeError: one of them is no memoryview.
        ValueError: they are not neighbours, of one buffer, one form, and one dimension.
    """
    if not mvs:
        return memoryview(bytearray())
    first = mvs[0]
    if not isinstance(first, memoryview):
        raise TypeError(f"Expected memoryview; got {type(first).__name__}")
    if len(mvs) == 1:
        return first
    for place, view in enumerate(mvs):
        _check_part(first, view, place)
    full = [view for view in mvs if view.nbytes]
    if not full:
        return first
    _check_neighbours(full)
    return _spanned(full, sum([view.nbytes for view in full]))


def _check_part(first: memoryview, view: memoryview, place: int) -> None:
    if not isinstance(view, memoryview):
        raise TypeError(f"expected memoryview at {place}; got {type(view).__name__}")
    if view.ndim != 1:
        raise ValueError(f"memoryview at {place} has {view.ndim} dimensions, not 1")
    if view.format != first.format:
        raise ValueError(f"inconsistent format: {view.format} vs {first.format}")
    if not view.contiguous:
        raise ValueError(f"memoryview at {place} is non-contiguous")
    if view.obj is not first.obj:
        raise ValueError(f"memoryview at {place} is of a different buffer")


def _check_neighbours(views: list[memoryview]) -> None:
    expected = address_of_memoryview(views[0])
    for place, view in enumerate(views):
        start = address_of_memoryview(view)
        if start != expected:
            raise ValueError(
                f"memoryview {place} does not start where the previous ends: "
                f"{start:#x} instead of {expected:#x}"
            )
        expected = start + view.nbytes


def _spanned(views: list[memoryview], total: int) -> memoryview:
    """One view from the first of these to the end of the last."""
    first = views[0]
    whole = memoryview(first.obj).cast("B")
    at = address_of_memoryview(first) - address_of_memoryview(whole)
    span = whole[at : at + total]
    form: Any = first.format  # of which `cast` knows those of one letter by name
    return span if form == "B" else span.cast(form)
