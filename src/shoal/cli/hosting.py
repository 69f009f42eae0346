"""A service in the foreground: until a signal or its own end, and with nothing left of it."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import FrameType
from typing import Any, Final

import click

from shoal.cli.errors import CannotWrite
from shoal.errors import ShoalError

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class AlreadyTold(Exception):
    """A service has failed, and its log has said why: the exit code is 1."""


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `work` on a loop of its own; a signal cancels it, and it closes what it started.

    A second signal ends the process at once.

    Raises:
        click.ClickException: what went wrong, for people.
        click.exceptions.Exit: they know it already.
    """
    from shoal.config.telling import tell_of_unheeded
    from shoal.deploy.child import configure_log, loop_factory

    try:
        configure_log(logging.WARNING)
        tell_of_unheeded()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_until_signal(work()))
    except Exception as error:
        first = _first_of(error)
        if isinstance(first, AlreadyTold):
            raise click.exceptions.Exit(1) from None
        if not _is_for_people(first):
            raise
        raise click.ClickException(str(first)) from first


async def host(
    services: Sequence[Any],
    waiting: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> None:
    """Start services, say where each is, and stay until all have closed; or until we have to go,
    or one can't start, and then all are closed.

    Args:
        waiting: entered as a service starts, and left when it has.

    Raises:
        AlreadyTold: one of them has given up.
        BaseExceptionGroup: what kept them from starting.
    """
    async with asyncio.TaskGroup() as group:
        for service in services:
            group.create_task(_stay(service, waiting()))
    if any(getattr(service, "failure", None) for service in services):
        raise AlreadyTold  # by the log, as it happened


async def _stay(service: Any, waiting: contextlib.AbstractContextManager[None]) -> None:
    """Start it, say where it is, and stay until it has closed; close it if we have to go."""
    try:
        with waiting:
            await service
        click.echo(service.address)
        await service.finished()
    finally:
        await service.close()


def _is_for_people(error: Exception) -> bool:
    """Whether it tells what to do; others are bugs, and show where."""
    from shoal.comms.errors import AddressError
    from shoal.config import SettingError

    return isinstance(error, ShoalError | OSError | AddressError | SettingError)


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    signals: list[int] = []

    def on_signal(number: int) -> None:
        signals.append(number)
        if len(signals) > 1:  # what was asked to close does not: its processes see us go
            os._exit(128 + number)
        task.cancel(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await task
    except asyncio.CancelledError:
        if not signals:
            raise
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    signal.signal(signal.SIGTERM, _end_at_once)
    atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)  # Python takes ours away soon


def signal_of(cancelled: asyncio.CancelledError) -> int | None:
    """Which signal has cancelled the work of `run`; None if it was something else."""
    return cancelled.args[0] if cancelled.args else None


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """All that we had is closed: who asks for our end just then is not told that it went wrong."""
    os._exit(0)


def _first_of(error: Exception) -> Exception:
    """The error itself, or the first of a group."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.contextmanager
def pid_file(path: str | None) -> Iterator[None]:
    """Keep our process id in a file; it is removed unless another process has replaced it.

    Raises:
        CannotWrite: it can't be written.
    """
    if not path:
        yield
        return
    ours = f"{os.getpid()}\n"
    try:
        with open(path, "w", encoding="ascii") as opened:
            opened.write(ours)
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as opened:
                is_ours = opened.read() == ours
            if is_ours:
                os.unlink(path)


def allow_many_connections() -> None:
    """Raise this process's own limit of open files to half of what the system lets it have."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard // 2), hard))
