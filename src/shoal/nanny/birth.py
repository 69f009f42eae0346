"""How the copy of a zygote becomes a process of its own, as if it had been started afresh."""

from __future__ import annotations

import gc
import os
import signal
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from shoal.nanny.bootstrap import read_document
from shoal.nanny.descriptors import close_all_but, place
from shoal.nanny.surroundings import take_on
from shoal.nanny.warming import reseed


@dataclass(frozen=True, slots=True)
class Birth:
    """What a new process has been given: descriptors, under whatever numbers they came."""

    channel: int
    """To its owner: the document comes on it."""

    output: int
    errors: int
    """What it writes to stderr before it is ready."""

    inherited: Sequence[int]
    """The others, in the order of the document's `descriptors`."""


def live(birth: Birth) -> None:
    """Be that process, until it ends.  Returns, or raises, when it has nothing left to do."""
    os.setpgid(0, 0)  # Ctrl-C is for the owner, which closes us in good order
    _restore_signals()
    _take_standard_streams(birth)
    close_all_but(birth.inherited)
    document = read_document(0)
    if document is None:
        return  # the owner has changed its mind, or died
    place(birth.inherited, document["descriptors"])
    take_on(document["surroundings"], document["path"])
    _forget_the_zygote()
    import_module(document["entry"]).main(document)


def _restore_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_standard_streams(birth: Birth) -> None:
    for number, descriptor in enumerate((birth.channel, birth.output, birth.errors)):
        os.dup2(descriptor, number)
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]


def _forget_the_zygote() -> None:
    """Nothing of it is to be seen, and nothing that must differ is the same in its other copies.

    `random` seeds itself after a fork; OpenSSL and the system's source of chance know of forks.
    """
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = ["-c"]
    process = sys.modules.get("multiprocessing.process")
    if process is not None:  # its key was drawn when it was imported
        process.current_process().authkey = os.urandom(32)
    reseed()
    gc.enable()
