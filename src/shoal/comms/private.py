"""Files that hold a secret: whole or not there at all, ours alone, and refused if they are not."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from shoal.comms.errors import TokenFileError

TOKEN_BYTES_MAX: Final = 4096


def make_private_directory(path: Path) -> None:
    """Make `path`, and be sure that it is a directory of ours that others can't enter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        check_private(os.fstat(descriptor), path)
    finally:
        os.close(descriptor)


def check_private(status: os.stat_result, path: Path) -> None:
    """Raises TokenFileError if what has this status is not ours alone."""
    if status.st_uid != os.geteuid():
        raise TokenFileError.unsafe(str(path), f"it belongs to user {status.st_uid}, not to us")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise TokenFileError.unsafe(str(path), f"others may use it (mode {mode:o})")


def read_private(path: Path) -> bytes:
    """What a file of ours holds.  Raises TokenFileError if it is not ours alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise TokenFileError.unsafe(str(path), error.strerror or "it can't be opened") from error
    with open(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise TokenFileError.unsafe(str(path), "it is not a plain file")
        check_private(status, path)
        return opened.read(TOKEN_BYTES_MAX).strip()


def write_private(path: Path, text: bytes, *, exclusive: bool = False) -> None:
    """Write a line, or more, whole or not at all; others never see it, nor a part of it.

    Raises:
        FileExistsError: `exclusive`, and there is one.
        OSError: the folder is missing, or not ours to write into.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(text + b"\n")
        if exclusive:
            os.link(beside, path)
            os.unlink(beside)
        else:
            os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
