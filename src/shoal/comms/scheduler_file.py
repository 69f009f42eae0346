"""The file through which a scheduler is found on a shared file system, and let into.

It is JSON with the address and what else `distributed` puts there, and the token; so it is for its
owner's eyes only.  A file without a token, which anybody may read, is good for the address.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from shoal.comms.errors import TokenFileError

_NBYTES_MAX: Final = 1 << 20


class Found(NamedTuple):
    """What such a file says."""

    address: str
    token: bytes | None


def write_scheduler_file(path: str, identity: Mapping[str, Any], token: bytes) -> None:
    """Put the file in its place, whole, with mode 0600; a reader sees the old one or the new one.

    Raises:
        OSError: its folder is missing, or not ours to write into.
    """
    path = os.path.abspath(path)
    beside = f"{path}.{secrets.token_hex(4)}"
    text = json.dumps({**identity, "token": token.decode()}, indent=2) + "\n"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def read_scheduler_file(path: str) -> Found | None:
    """What the file says; None if it is not there, or says nothing yet.

    Raises:
        TokenFileError: it holds a token, and others may read or have written it.
    """
    try:
        with open(path, "rb") as opened:
            status = os.fstat(opened.fileno())
            said = json.loads(opened.read(_NBYTES_MAX))
        address, token = said["address"], said.get("token")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(address, str):
        return None
    if not isinstance(token, str):
        return Found(address, None)
    if status.st_uid != os.geteuid():
        raise TokenFileError.unsafe(path, f"it belongs to user {status.st_uid}, not to us")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise TokenFileError.unsafe(path, f"others may use it (mode {mode:o})")
    return Found(address, token.encode())


def remove_scheduler_file(path: str, address: str) -> None:
    """Remove the file, unless another scheduler has put its own in that place."""
    with contextlib.suppress(OSError):
        found = read_scheduler_file(path)
        if found is not None and found.address == address:
            os.unlink(path)
