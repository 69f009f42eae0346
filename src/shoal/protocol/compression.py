"""Large buffers of results, made smaller on their way between machines where that pays.

The one who asks says what it can read, the one who answers takes the first of these that it has.
Nothing of this is asked for, and so nothing done, unless it is set.  The libraries are imported as
the first buffer is compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shoal.protocol.framing import ProtocolError

if TYPE_CHECKING:
    from typing_extensions import Buffer

NBYTES_MIN: Final = 1 << 16
"""Of a buffer; a smaller one is sent as fast as it is compressed."""
NBYTES_MAX: Final = 0x7E000000
"""Of a buffer; lz4 takes no more."""
SAMPLE_NBYTES: Final = 10_000
NSAMPLES: Final = 5
RATIO_MAX: Final = 0.8
"""What is left of the samples, and then of all; if it is more, the buffer is sent as it is."""
AUTO: Final = ("lz4", "zstd")
"""In this order: what costs less than it saves on most networks."""
AS_IT_IS: Final = ""

Mark = tuple[str, int]
"""How a buffer was compressed, and the bytes that it has without; `AS_IT_IS`: it was not."""


class Way(NamedTuple):
    """One way to compress."""

    compress: Callable[[Any], Buffer]
    decompress: Callable[[Any, int], Buffer]
    """The buffer, and how many bytes it must become; others raise."""


class Effort(NamedTuple):
    """How hard zstd tries."""

    zstd_level: int = 3
    zstd_threads: int = 0


def accepted(setting: str) -> list[str]:
    """What can be read here of what the setting asks for: "auto", or a name.

    Raises:
        ImportError: the library is not installed.
    """
    if setting != "auto":
        _way(setting, Effort())
        return [setting]
    return [name for name in AUTO if _is_there(name)]


def compress(
    buffers: Sequence[Buffer], accepts: Sequence[str], effort: Effort
) -> tuple[list[Buffer], list[Mark]]:
    """Each buffer as small as it is worth, and what was done to each.

    Cost: that of compressing 50 kB for each buffer that seems not to become smaller.
    """
    name = next((name for name in accepts if _is_there(name)), None)
    if name is None:
        return list(buffers), [(AS_IT_IS, 0)] * len(buffers)
    way = _way(name, effort)
    smaller: list[Buffer] = []
    marks: list[Mark] = []
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        found = _compressed(way, view)
        smaller.append(buffer if found is None else found)
        marks.append((AS_IT_IS, 0) if found is None else (name, view.nbytes))
    return smaller, marks


def restore(buffers: Sequence[Any], marks: Sequence[Mark]) -> list[Any]:
    """The buffers as they were, in memory that may be written to.

    Raises:
        ProtocolError: one is not what its mark says, or has none.
    """
    if len(buffers) != len(marks):
        raise ProtocolError(f"{len(buffers)} buffers have come, and {len(marks)} marks of them")
    restored = []
    for buffer, (name, nbytes) in zip(buffers, marks, strict=True):
        if name == AS_IT_IS:
            restored.append(buffer)
            continue
        if not NBYTES_MIN <= nbytes <= NBYTES_MAX:  # before memory is taken for it
            raise ProtocolError(f"A buffer of {nbytes:,} bytes is not compressed by anybody")
        try:
            found = _way(name, Effort()).decompress(buffer, nbytes)
        except Exception as error:  # each library has its own
            raise ProtocolError(f"What was compressed by {name} can't be read: {error}") from error
        if memoryview(found).nbytes != nbytes:
            raise ProtocolError(f"What was compressed by {name} has another length than before")
        restored.append(found)
    return restored


def _compressed(way: Way, view: memoryview) -> Buffer | None:
    """It, compressed; None if that does not pay."""
    if not NBYTES_MIN <= view.nbytes <= NBYTES_MAX:
        return None
    gap = (view.nbytes - SAMPLE_NBYTES) // (NSAMPLES - 1)
    sample = b"".join([view[at * gap : at * gap + SAMPLE_NBYTES] for at in range(NSAMPLES)])
    if memoryview(way.compress(sample)).nbytes > RATIO_MAX * len(sample):
        return None
    found = way.compress(view)
    return found if memoryview(found).nbytes <= RATIO_MAX * view.nbytes else None


def _is_there(name: str) -> bool:
    try:
        _way(name, Effort())
    except (ImportError, KeyError):
        return False
    return True


def _way(name: str, effort: Effort) -> Way:
    return _WAYS[name](effort)


def _lz4(effort: Effort) -> Way:
    from lz4 import block

    def compress(view: Any) -> Buffer:
        found: bytes = block.compress(view, store_size=False)
        return found

    def decompress(view: Any, nbytes: int) -> Buffer:
        found: bytearray = block.decompress(view, uncompressed_size=nbytes, return_bytearray=True)
        return found

    return Way(compress, decompress)


def _zstd(effort: Effort) -> Way:
    import zstandard

    def compress(view: Any) -> Buffer:
        compressor = zstandard.ZstdCompressor(effort.zstd_level, threads=effort.zstd_threads)
        found: bytes = compressor.compress(view)  # one can't be shared among threads
        return found

    def decompress(view: Any, nbytes: int) -> Buffer:
        room = memoryview(bytearray(nbytes + 1))  # whatever is too long shows
        filled = 0
        with zstandard.ZstdDecompressor().stream_reader(view) as reader:
            while (nread := reader.readinto(room[filled:])) > 0:
                filled += nread
        return room[:filled]

    return Way(compress, decompress)


def _zlib(effort: Effort) -> Way:
    def decompress(view: Any, nbytes: int) -> Buffer:
        return bytearray(zlib.decompressobj().decompress(view, nbytes + 1))

    return Way(zlib.compress, decompress)


_WAYS: Final[dict[str, Callable[[Effort], Way]]] = {"lz4": _lz4, "zstd": _zstd, "zlib": _zlib}
