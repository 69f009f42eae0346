"""`distributed.utils`: files, their bytes, and modules that are loaded from them."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from pickle import PickleBuffer
from types import ModuleType
from typing import IO, Any, Final

_ARCHIVES: Final = (".egg", ".zip", ".pyz")
_BLOCK_BYTES: Final = 2**16


def ensure_memoryview(obj: bytes | bytearray | memoryview | PickleBuffer) -> memoryview:
    """The bytes of a buffer, one after the other; copied only if they are scattered."""
    view = memoryview(obj)
    if not view.nbytes:
        return memoryview(bytearray())  # a view without items can't be cast
    if view.contiguous:
        return view.cast("B") if view.ndim == 1 or view.c_contiguous else PickleBuffer(view).raw()
    return memoryview(bytearray(view))


def import_file(path: str) -> list[ModuleType]:
    """Load the modules of a file: itself (.py), or those at the top of an archive.

    Those that are loaded already are loaded anew.
    """
    found = Path(path)
    if found.suffix == ".py":
        place, names = str(found.parent), [found.stem]
    elif found.suffix in _ARCHIVES:
        place, names = str(found), _modules_in(found)
    else:
        return []
    importlib.invalidate_caches()
    sys.path.insert(0, place)
    try:
        return [_load(name) for name in names]
    finally:
        if found.suffix == ".py":  # an archive's own modules may import each other later
            sys.path.remove(place)


def _modules_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        paths = [Path(name) for name in opened.namelist() if name.endswith(".py")]
    names = {path.parts[0].removesuffix(".py") for path in paths if len(path.parts) <= 2}
    return sorted(name for name in names if name.isidentifier() and name != "__main__")


def _load(name: str) -> ModuleType:
    if name in sys.modules:
        del sys.modules[name]
    return importlib.import_module(name)


def seek_delimiter(file: IO[bytes], delimiter: bytes, blocksize: int) -> None:
    """Go to the byte after the next delimiter; to the end if there is none, and not at all from
    the beginning, where a part begins anyhow."""
    if file.tell() == 0:
        return
    last = b""
    while True:
        block = file.read(blocksize)
        if not block:
            return
        seen = last + block
        at = seen.find(delimiter)
        if at >= 0:
            file.seek(file.tell() - len(seen) + at + len(delimiter))
            return
        last = seen[-len(delimiter) :]


def read_block(f: IO[bytes], offset: int, length: int, delimiter: bytes | None = None) -> bytes:
    """Bytes of a file; with a delimiter from after the next one on, up to one after the end."""
    if delimiter is not None:
        f.seek(offset)
        seek_delimiter(f, delimiter, _BLOCK_BYTES)
        start = f.tell()
        f.seek(start + length - (start - offset))
        seek_delimiter(f, delimiter, _BLOCK_BYTES)
        offset, length = start, f.tell() - start
    f.seek(offset)
    return f.read(length)


def get_fileno_limit() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return 512
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def nbytes(frame: Any, _bytes_like: Any = (bytes, bytearray)) -> int:
    """How many bytes a buffer has."""
    if isinstance(frame, _bytes_like):
        return len(frame)
    try:
        return int(frame.nbytes)
    except AttributeError:
        length: int = len(frame)
        return length
