"""numpy's arrays: what repeats one part travels as that part, and masked arrays without a copy.

Pickle has numpy's own way for other arrays, which is as good, so only programs that ask for the
family `dask` get those from here.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from shoal.protocol.families.named import load_part
from shoal.protocol.families.pickling import dumps_by_value
from shoal.protocol.families.registry import always, learn
from shoal.protocol.families.wholes import from_value, to_value

_ITEM_NBYTES_MAX = 255
"""Of items that are compared byte by byte; longer ones are taken for numbers of eight."""
_RAW_KINDS = frozenset("biufcSUMmV?")


def itemsize(dt: np.dtype[Any]) -> int:
    """Bytes after which values of this type repeat, as a compressor would have it."""
    nbytes = dt.base.itemsize
    return 8 if nbytes > _ITEM_NBYTES_MAX else nbytes


def from_array(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """Type, shape and strides, and the memory; that of arrays of objects is a pickle.

    Cost: O(1) if the array lies in one piece, in either order, else a copy.
    """
    kind = type(value)
    if value.dtype.hasobject or not _is_raw(value.dtype) or kind not in (np.ndarray, np.memmap):
        return _whole(value)
    header: dict[str, Any] = {"writeable": [bool(value.flags.writeable)]}
    if value.size and 0 in value.strides:
        header["broadcast_to"] = value.shape
        value = value[tuple(slice(0, 1 if step == 0 else None) for step in value.strides)]
    if not (value.flags.c_contiguous or value.flags.f_contiguous):
        value = np.ascontiguousarray(value)
    header |= {"dtype": _described(value.dtype), "shape": value.shape, "strides": value.strides}
    return header, [_memory(value)]


def to_array(header: dict[str, Any], frames: list[Any]) -> Any:
    """An array in the memory of its frame, or in a copy, if it is to be written to and may not."""
    if header.get("pickle"):
        return to_value(header, frames)
    frame = memoryview(frames[0]) if len(frames) == 1 else memoryview(b"".join(frames))
    writeable = header["writeable"][0]
    if writeable and frame.readonly:
        frame = memoryview(bytearray(frame))
    value: Any = np.ndarray(
        tuple(header["shape"]),
        _dtype_of(header["dtype"]),
        buffer=frame,
        strides=tuple(header["strides"]),
    )
    if "broadcast_to" in header:
        shape = tuple(header["broadcast_to"])
        steps = [
            0 if length == 1 else step
            for length, step in zip(value.shape, value.strides, strict=True)
        ]
        value = as_strided(value, shape, steps, writeable=writeable)
    elif not writeable:
        value.flags.writeable = False
    return value


def _whole(value: Any) -> tuple[dict[str, Any], list[Any]]:
    header, frames = from_value(value, _dumps)
    return header | {"pickle": True}, frames


def _dumps(value: Any, protocol: int, buffer_callback: Any) -> bytes:
    buffers: list[pickle.PickleBuffer] = []
    try:
        stream = pickle.dumps(value, protocol, buffer_callback=buffers.append)
    except Exception:
        buffers.clear()
        stream = dumps_by_value(value, protocol, buffers.append)
    for buffer in buffers:
        buffer_callback(buffer)
    return stream


def _is_raw(dtype: np.dtype[Any]) -> bool:
    """Whether bytes of this type mean the same wherever numpy is."""
    return dtype.isbuiltin != 2 and dtype.kind in _RAW_KINDS


def _described(dtype: np.dtype[Any]) -> tuple[int, Any]:
    """A text if that says all about the type, else a pickle."""
    plain = dtype.kind != "V" and np.dtype(dtype.str) == dtype and not dtype.metadata
    return (0, dtype.str) if plain else (1, pickle.dumps(dtype, 5))


def _dtype_of(described: Any) -> np.dtype[Any]:
    form, text = described
    loaded: Any = load_part(text) if form else np.dtype(text)
    found: np.dtype[Any] = loaded
    return found


def _memory(value: Any) -> memoryview:
    """The bytes of a contiguous array as they lie, which not every type gives away itself."""
    if not value.nbytes:
        return memoryview(b"")
    flat = value.ravel(order="K")
    return memoryview(flat.view(np.uint8))


def from_masked(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """Values and mask as two arrays; pickle would copy both into its stream."""
    if type(value) is not np.ma.MaskedArray:
        return _whole(value)
    header, frames = from_array(value.data)
    parts: dict[str, Any] = {"values": header, "nframes": len(frames)}
    if value.mask is not np.ma.nomask:
        parts["mask"], mask_frames = from_array(value.mask)
        frames = frames + mask_frames
    parts["fill"] = pickle.dumps(value.fill_value, 5)
    return parts, frames


def to_masked(header: dict[str, Any], frames: list[Any]) -> Any:
    """A masked array on the memory of its frames."""
    if header.get("pickle"):
        return to_value(header, frames)
    nframes = header["nframes"]
    mask: Any = np.ma.nomask
    if "mask" in header:
        mask = to_array(header["mask"], frames[nframes:])
    values = to_array(header["values"], frames[:nframes])
    fill: Any = load_part(header["fill"])
    return np.ma.MaskedArray(values, mask=mask, fill_value=fill, copy=False)


def from_constant(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """There is one `numpy.ma.masked` in each process."""
    return {}, []


def to_constant(header: dict[str, Any], frames: list[Any]) -> Any:
    """This process's `numpy.ma.masked`."""
    return np.ma.masked


def repeats(value: Any) -> bool:
    """Whether the array has one part of memory for many of its items."""
    return 0 in value.strides and type(value) is np.ndarray and not value.dtype.hasobject


def teach() -> None:
    """For the registry."""
    learn(np.ndarray, from_array, to_array, when=repeats)
    learn(np.ma.MaskedArray, from_masked, to_masked, when=always)
    learn(type(np.ma.masked), from_constant, to_constant)
