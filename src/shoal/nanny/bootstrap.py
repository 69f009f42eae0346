"""How an interpreter that we start comes to our code: its command line, and its first document.

The document goes to its standard input, a socket: nothing secret stands in a command line or in an
environment, and the user's `__main__` is never imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from shoal.nanny.warming import wants_threads

_LENGTH_BYTES: Final = 4

_BOOTSTRAP: Final = """\
import json, os, sys
def exactly(nbytes):
    pieces = b""
    while len(pieces) < nbytes:
        piece = os.read(0, nbytes - len(pieces))
        if not piece:
            raise SystemExit(0)
        pieces += piece
    return pieces
document = json.loads(exactly(int.from_bytes(exactly(4), "little")))
sys.path[:] = document["path"]
from {entry} import main
main(document)
"""
"""The path is set before anything of ours or the user's is imported."""

_READ_AT_START: Final = ("PYTHON", "MALLOC_", "GLIBC_", "LD_", "DYLD_", "LANG", "LC_")
"""Variables whose names start so are read as a process starts, and never again."""


def command_of(entry: str) -> list[str]:
    """The command that runs `main(document)` of the module `entry`, flags as of this interpreter.

    A document is to be written to the standard input of the process, as `to_bytes` has it.
    """
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-c", _BOOTSTRAP.format(entry=entry)]


def kind_of_interpreter(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What can't change in an interpreter that runs: its command line, and some variables.

    And what a zygote may not have imported already, if its libraries shall have threads.
    """
    fixed = sorted(f"{k}={v}" for k, v in environ.items() if k.startswith(_READ_AT_START))
    threads = ["threads"] if wants_threads(environ) else []
    return (*command_of(""), *fixed, *threads)


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """`document` as it is written to a process that has just started."""
    text = json.dumps(document).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def read_document(descriptor: int) -> dict[str, Any] | None:
    """What `to_bytes` has written; None if the writer went away before."""
    length = _read(descriptor, _LENGTH_BYTES)
    text = length and _read(descriptor, int.from_bytes(length, "little"))
    if not text:
        return None
    document: dict[str, Any] = json.loads(text)
    return document


def _read(descriptor: int, nbytes: int) -> bytes:
    """So many bytes, or none."""
    pieces = bytearray()
    while len(pieces) < nbytes:
        try:
            piece = os.read(descriptor, nbytes - len(pieces))
        except ConnectionError:
            piece = b""
        if not piece:
            return b""
        pieces += piece
    return bytes(pieces)
