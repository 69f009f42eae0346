"""The file through which a scheduler is found on a shared file system, and let into.

It is JSON with the address and what else `distributed` puts there, and the token; so it is for its
owner's eyes only.  A file without a token, which anybody may read, is good for the address.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.comms.private import check_private, write_private

_NBYTES_MAX: Final = 1 << 20


class Found(NamedTuple):
    """What such a file says."""

    address: str
    token: bytes | None


def write_scheduler_file(path: str, identity: Mapping[str, Any], token: bytes | None) -> None:
    """Put the file in its place, whole, with mode 0600; a reader sees the old one or the new one.

    Without a token whoever reads it has to have that from elsewhere.

    Raises:
        OSError: its folder is missing, or not ours to write into.
    """
    said = dict(identity) if token is None else {**identity, "token": token.decode()}
    text = json.dumps(said, indent=2)
    write_private(Path(os.path.abspath(path)), text.encode())


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
    check_private(status, Path(path))
    return Found(address, token.encode())


def remove_scheduler_file(path: str, address: str) -> None:
    """Remove the file, unless another scheduler has put its own in that place."""
    with contextlib.suppress(OSError):
        found = read_scheduler_file(path)
        if found is not None and found.address == address:
            os.unlink(path)
