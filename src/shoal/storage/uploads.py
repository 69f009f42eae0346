"""Files that users send to other processes: kept in a folder, and importable from there.

The same on workers, on nannies and in the scheduler.  What was imported before from a file of that
name is imported anew, so that tasks which look it up by its module find what was sent last.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from shoal.storage.errors import NotAFileName

SKIPPED_WORDS: Final = (".git", ".github", ".pytest_cache", "__pycache__", "tests", "docs")
"""Parts of paths that are left out of a folder which is sent, unless others are named."""

ARCHIVES: Final = (".egg", ".zip", ".pyz")
"""Endings of files that Python imports from the inside."""

_RUNS: Final = stat.S_IXUSR
"""Of a file's mode, the bit that travels: its owner may run it."""

_loading: Final = threading.RLock()
"""Several workers of one process may be sent the same file at once."""


def keep_file(folder: str, name: str, content: bytes, *, load: bool = True) -> list[str]:
    """Write a file into `folder`, whole; a reader sees the old one or the new one.

    Args:
        name: without a path.
        load: import it, if it is a module or an archive of modules.

    Returns:
        Names of the modules that were imported.

    Raises:
        NotAFileName: `name` has a path.
        OSError: it can't be written.
        BaseException: whatever its modules raise when they are imported; the file stays.

    Cost: writing it, and importing it, in the calling thread.
    """
    path = _within(folder, name)
    _replace(path, content)
    return load_file(path) if load else []


def keep_folder(folder: str, name: str, content: bytes) -> str:
    """Unpack what `pack_folder` packed into `folder`/`name`; returns that path.

    It can be imported as a package, or its modules can once its path was added.  Modules that were
    imported from there before are forgotten, so that the next import finds the new ones.  Scripts
    that could be run where they come from can be run there; nothing is written anywhere else.

    Raises:
        NotAFileName: `name` has a path.
        OSError, zipfile.BadZipFile: it can't be unpacked.
    """
    path = _within(folder, name)
    path.mkdir(parents=True, exist_ok=True)
    with _loading:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for inside in archive.infolist():
                _unpack(archive, inside, path)
        add_to_path(folder)
        sys.path_importer_cache.pop(str(path), None)
        _forget_modules([path.name])
        _forget_modules_of(path)
    return str(path)


def pack_folder(
    path: str,
    skip_words: Iterable[str] = SKIPPED_WORDS,
    skip: Iterable[Callable[[str], bool]] = (),
) -> bytes:
    """The files below a folder, as an archive.

    Args:
        skip_words: files with such a part in their path are left out.
        skip: asked with each file's path; True leaves it out.

    Raises:
        NotADirectoryError: there is no such folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise NotADirectoryError(path)
    words, tests = frozenset(skip_words), tuple(skip)
    packed = io.BytesIO()
    # Files of builds that are the same each time are dated 1970, which an archive can't say.
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for found in sorted(root.rglob("*")):
            inside = found.relative_to(root)
            is_skipped = found.suffix == ".pyc" or not words.isdisjoint(inside.parts)
            if found.is_file() and not is_skipped and not any(t(str(found)) for t in tests):
                archive.write(found, inside)
    return packed.getvalue()


def load_file(path: str | Path) -> list[str]:
    """Import a module, or all that is in an archive; returns the names, [] of any other file.

    Raises:
        BaseException: whatever is raised by what is imported.
    """
    path = Path(path)
    with _loading:
        if path.suffix == ".py":
            add_to_path(str(path.parent))
            _drop_compiled(path)
            return [_import_module(path.stem)]
        if path.suffix in ARCHIVES:
            add_to_path(str(path))
            names = list(dict.fromkeys(_modules_in(path)))
            _forget_modules(names)
            for name in names:
                importlib.import_module(name)
            return names
    return []


def add_to_path(entry: str) -> None:
    """Have Python look for modules there first."""
    if entry not in sys.path:
        sys.path.insert(0, entry)
    sys.path_importer_cache.pop(entry, None)  # it knows the files that were there before
    importlib.invalidate_caches()


def forget_path(folder: str) -> None:
    """Look for modules in `folder`, and in archives there, no more; what was imported stays."""
    inside = folder.rstrip(os.sep) + os.sep
    sys.path[:] = [entry for entry in sys.path if not f"{entry}{os.sep}".startswith(inside)]


def _within(folder: str, name: str) -> Path:
    if not name or name in (".", "..") or os.path.basename(name) != name or "\0" in name:
        raise NotAFileName(name)
    return Path(folder) / name


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _unpack(archive: zipfile.ZipFile, inside: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack one member below `folder`, whatever path it claims."""
    written = Path(archive.extract(inside, folder))
    if written.suffix == ".py":
        _drop_compiled(written)
    runs = inside.external_attr >> 16 & _RUNS
    if runs and not inside.is_dir():
        written.chmod(written.stat().st_mode | runs)


def _drop_compiled(path: Path) -> None:
    """What Python compiled of an older file could pass for that of one of the same second."""
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _import_module(name: str) -> str:
    """Import a module; again, in place, if it was imported before and is found there."""
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__spec__", None) is not None:
        importlib.reload(module)
    else:
        sys.modules.pop(name, None)
        importlib.import_module(name)
    return name


def _modules_in(archive: Path) -> Iterator[str]:
    """Names of the modules and packages at the top of an archive."""
    with zipfile.ZipFile(archive) as opened:
        for inside in opened.namelist():
            first, _, rest = inside.partition("/")
            if rest == "__init__.py":
                yield first
            elif not rest and first.endswith(".py") and first != "__main__.py":
                yield first.removesuffix(".py")


def _forget_modules_of(folder: Path) -> None:
    """Likewise those whose files are below a folder, by whatever names they were imported."""
    inside = str(folder) + os.sep
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and file.startswith(inside):
            del sys.modules[name]


def _forget_modules(names: Iterable[str]) -> None:
    """Have the next import of these, and of what is inside of them, look anew."""
    gone = tuple(names)
    for module in list(sys.modules):
        if module.partition(".")[0] in gone:
            del sys.modules[module]
    importlib.invalidate_caches()
