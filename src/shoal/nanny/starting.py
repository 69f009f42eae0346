"""Starting a process: forked from a zygote where that can be had, else a fresh interpreter."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shoal.nanny.bootstrap import command_of
from shoal.nanny.children import Child, ForkedChild, NotStarted, SpawnedChild
from shoal.nanny.errors import CannotFork
from shoal.nanny.zygotes import discard, zygote_for

_ATTEMPTS: Final = 2
"""With as many zygotes: one that was killed is noticed when it does not answer."""

_logger = logging.getLogger("shoal.nanny")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a process shall have from the start."""

    what: str
    """For people, such as "worker 0"."""

    entry: str
    """The module whose `main` is called with the document."""

    environ: Mapping[str, str]
    channel: int
    """Becomes its standard input; it reads a document there."""

    errors: int
    """Becomes its stderr, until it is ready."""

    inherited: Sequence[int]
    """Other descriptors, under the numbers that they have here."""

    kill_above_nbytes: int = 0
    """Resident memory above which it is killed; 0: never."""

    interval_seconds: float = 1.0
    """How often to look at its memory."""


async def start_process(wish: Wish, method: str) -> Child:
    """Start a process; returns when it runs.

    Args:
        method: "fork", "spawn", or "auto": fork where that is sound.

    Raises:
        OSError: the system has no process for us.
        CannotFork: `method` is "fork", and there is nothing to fork from.
    """
    if method == "fork" or (method == "auto" and sys.platform == "linux"):
        try:
            return await _fork(wish)
        except NotStarted as refusal:
            if method == "fork":
                raise CannotFork(wish.what, refusal.reason) from None
            _logger.info("The process of %s is spawned, as %s", wish.what, refusal.reason)
    return _spawn(wish)


async def _fork(wish: Wish) -> ForkedChild:
    for attempt in range(1, _ATTEMPTS + 1):
        zygote = zygote_for(wish.environ)
        report, theirs = socket.socketpair()
        child = ForkedChild(report, wish.kill_above_nbytes, wish.interval_seconds)
        try:
            with theirs, _output() as output:
                standard = (theirs.fileno(), wish.channel, output, wish.errors)
                with contextlib.suppress(OSError):  # it is gone: the report says so, too
                    zygote.fork(
                        (*standard, *wish.inherited), wish.kill_above_nbytes, wish.interval_seconds
                    )
            await child.started()
        except NotStarted as refusal:
            child.release()
            if not refusal.is_gone:
                raise
            words = zygote.last_words()
            discard(zygote)
            if attempt == _ATTEMPTS:
                said = f", and wrote:\n{words}" if words else ""
                raise NotStarted(f"{refusal.reason}{said}") from None
        except BaseException:
            child.release()
            raise
        else:
            return child
    raise AssertionError("an attempt returns or raises")


def _spawn(wish: Wish) -> SpawnedChild:
    popen = subprocess.Popen(
        command_of(wish.entry),
        stdin=wish.channel,
        stderr=wish.errors,
        pass_fds=wish.inherited,
        env=wish.environ,
        process_group=0,  # Ctrl-C is for us, who close it in good order
    )
    return SpawnedChild(popen, wish.kill_above_nbytes, wish.interval_seconds)


@contextlib.contextmanager
def _output() -> Iterator[int]:
    """A descriptor of our standard output."""
    descriptor = duplicate(1)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def duplicate(standard: int) -> int:
    """A descriptor of a standard stream of ours, or of nothing where there is none."""
    try:
        return os.dup(standard)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
