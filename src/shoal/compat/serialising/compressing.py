"""Compression of frames (`distributed.protocol.compression`): which there are, and whether it pays.

What shoal itself compresses on its way between machines is told in `protocol/compression.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import dask.config

from shoal.compat.serialising.memory import ensure_memoryview

AnyBytes: TypeAlias = bytes | bytearray | memoryview

NBYTES_MAX: Final = 2**31
"""More than this is not compressed; some libraries can't, and it would take too long."""


class Compression(NamedTuple):
    """One way to compress."""

    name: str | None
    compress: Callable[[AnyBytes], AnyBytes]
    decompress: Callable[[AnyBytes], AnyBytes]


def identity(x: Any) -> Any:
    """What it is given."""
    return x


_NONE: Final = Compression(None, identity, identity)

compressions: Final[dict[str | Literal[False] | None, Compression]] = {
    None: _NONE,
    False: _NONE,
    "auto": _NONE,
    "zlib": Compression("zlib", zlib.compress, zlib.decompress),
}
"""By name; others may be added.  `auto` is the fastest that is installed, or none."""


def _learn_snappy() -> None:
    import snappy

    compressions["snappy"] = Compression(
        "snappy", lambda v: _as_bytes(snappy.compress(_plain(v))), _decompress_snappy
    )
    compressions["auto"] = compressions["snappy"]


def _decompress_snappy(v: AnyBytes) -> AnyBytes:
    import snappy

    return _as_bytes(snappy.decompress(bytes(v)))


def _learn_lz4() -> None:
    import lz4.block

    def decompress(v: AnyBytes) -> AnyBytes:
        found: bytearray = lz4.block.decompress(v, return_bytearray=True)
        return found  # to be written to, so that an array on it needs no copy

    compressions["lz4"] = Compression("lz4", lambda v: lz4.block.compress(_plain(v)), decompress)
    compressions["auto"] = compressions["lz4"]


def _learn_zstd() -> None:
    import zstandard

    def compress(v: AnyBytes) -> AnyBytes:
        found: bytes = zstandard.ZstdCompressor(level=3).compress(v)  # one can't be shared
        return found

    def decompress(v: AnyBytes) -> AnyBytes:
        found: bytes = zstandard.ZstdDecompressor().decompress(v)
        return found

    compressions["zstd"] = Compression("zstd", compress, decompress)


def _plain(v: AnyBytes) -> AnyBytes:
    return ensure_memoryview(v)


def _as_bytes(v: Any) -> bytes:
    return v if isinstance(v, bytes) else bytes(v)


for _learn in (_learn_snappy, _learn_lz4, _learn_zstd):  # the later is the better `auto`
    try:
        _learn()
    except ImportError:
        pass  # then there is one less


def get_compression_settings(key: str) -> str | None:
    """The name of the compression that a setting of dask's asks for.

    Raises:
        ValueError: there is none of that name here.
    """
    name = dask.config.get(key, False)
    if name not in compressions:
        known = ", ".join(repr(known) for known in compressions)
        raise ValueError(
            f"Invalid compression setting {key}={name}: that is none of {known}. "
            "The libraries lz4, python-snappy and zstandard bring others."
        )
    return compressions[name].name


def maybe_compress(
    payload: AnyBytes,
    *,
    min_size: int = 10_000,
    sample_size: int = 10_000,
    nsamples: int = 5,
    min_ratio: float = 0.7,
    compression: str | Literal[False] | None = "auto",
) -> tuple[str | None, AnyBytes]:
    """(name, compressed) if it pays, else (None, payload).

    Args:
        min_size: bytes below which it is not tried.
        sample_size, nsamples: bytes of each sample, and their number, that are tried first.
        min_ratio: it pays if what is left of the samples, and of all, is less than this.

    Cost: that of compressing the samples, 50 kB, where it does not pay.
    """
    way = compressions[compression]
    view = ensure_memoryview(payload)
    if way.name is None or not min_size <= view.nbytes <= NBYTES_MAX:
        return None, payload
    sample = byte_sample(view, sample_size, nsamples)
    if len(way.compress(sample)) > min_ratio * sample.nbytes:
        return None, payload
    compressed = way.compress(view)
    if len(compressed) > min_ratio * view.nbytes:
        return None, payload
    return way.name, compressed


def byte_sample(b: memoryview, size: int, n: int) -> memoryview:
    """`n` pieces of `size` bytes, evenly spread, as one; all of it, if that is no more."""
    if n * size >= b.nbytes:
        return b
    gap = (b.nbytes - size) // max(1, n - 1)
    return memoryview(b"".join([b[at * gap : at * gap + size] for at in range(n)]))


def decompress(header: dict[str, Any], frames: Iterable[AnyBytes]) -> list[AnyBytes]:
    """Frames as they were before they were compressed as their header says."""
    return [
        compressions[name].decompress(frame)
        for name, frame in zip(header["compression"], frames, strict=True)
    ]
