"""What tests look at and wait for: logs, states, leaks, exceptions, programs."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import dask.config
import psutil

F = TypeVar("F", bound=Callable[..., Any])

NO_AMM: Final = {"distributed.scheduler.active-memory-manager.start": False}
GRACE_SECONDS: Final = 5.0
_PERIOD_SECONDS: Final = 0.01
_ZYGOTE: Final = "shoal.nanny.zygote"


def _logger_of(name: str | logging.Logger) -> logging.Logger:
    """The logger that says here what the one of this name says in `distributed`."""
    if isinstance(name, logging.Logger):
        return name
    first, _, rest = name.partition(".")
    return logging.getLogger(f"shoal.{rest}".rstrip(".") if first == "distributed" else name)


@contextmanager
def captured_logger(
    logger: str | logging.Logger, level: int = logging.INFO, propagate: bool | None = None
) -> Iterator[io.StringIO]:
    """What is logged there meanwhile, from `level` on, and nowhere else."""
    found = _logger_of(logger)
    before = found.handlers[:], found.level, found.propagate
    text = io.StringIO()
    found.handlers[:] = [logging.StreamHandler(text)]
    found.setLevel(level)
    if propagate is not None:
        found.propagate = propagate
    try:
        yield text
    finally:
        found.handlers[:], level_before, found.propagate = before
        found.setLevel(level_before)


@contextmanager
def captured_handler(handler: logging.StreamHandler[Any]) -> Iterator[io.StringIO]:
    """What a handler writes meanwhile."""
    text = io.StringIO()
    before = handler.setStream(text)
    try:
        yield text
    finally:
        if before is not None:
            handler.setStream(before)


async def async_poll_for(
    predicate: Callable[[], Any],
    timeout: float = 15,
    fail_func: Callable[[], Any] | None = None,
    period: float = 0.05,
) -> None:
    """Wait until `predicate` holds; it may be a coroutine function.

    Raises:
        AssertionError: it didn't within `timeout` seconds; `fail_func` is called first.
    """
    deadline = time.monotonic() + timeout
    while True:
        held = predicate()
        if await held if asyncio.iscoroutine(held) else held:
            return
        if time.monotonic() > deadline:
            _give_up(timeout, fail_func)
        await asyncio.sleep(period)


def poll_for(
    predicate: Callable[[], Any],
    timeout: float = 15,
    fail_func: Callable[[], Any] | None = None,
    period: float = 0.05,
) -> None:
    """As `async_poll_for`, without a loop."""
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            _give_up(timeout, fail_func)
        time.sleep(period)


def _give_up(timeout: float, fail_func: Callable[[], Any] | None) -> None:
    if fail_func is not None:
        fail_func()
    raise AssertionError(f"it did not come true within {timeout:g} s")


async def wait_for_state(
    key: Any, state: str | Sequence[str], dask_worker: Any, *, interval: float = _PERIOD_SECONDS
) -> None:
    """Wait until a task is in a state, or one of several, on a worker or a scheduler."""
    states = {state} if isinstance(state, str) else set(state)
    while True:
        tasks = getattr(dask_worker, "state", dask_worker).tasks
        if key in tasks and tasks[key].state in states:
            return
        await asyncio.sleep(interval)


@contextmanager
def raises_with_cause(
    expected_exception: type[BaseException] | tuple[type[BaseException], ...],
    match: str | None,
    expected_cause: type[BaseException] | tuple[type[BaseException], ...],
    match_cause: str | None,
    *more_causes: Any,
) -> Iterator[None]:
    """An exception with a chain of causes: each a type and what its text must match, or None."""
    import pytest

    with pytest.raises(expected_exception, match=match) as caught:
        yield
    error: BaseException | None = caught.value
    chain = (expected_cause, match_cause, *more_causes)
    for kind, pattern in zip(chain[::2], chain[1::2], strict=True):
        assert error is not None
        error = error.__cause__
        assert isinstance(error, kind), f"the cause is {error!r}, and no {kind}"
        assert pattern is None or re.search(pattern, str(error)), f"{error!r} is not {pattern!r}"


@contextmanager
def ensure_no_new_clients() -> Iterator[None]:
    """Fail if the default client is another one afterwards."""
    from shoal.client.current import find_client

    before = find_client()
    yield
    assert find_client() is before, "a new default client was left behind"


@contextmanager
def new_config(new_config: Mapping[str, Any]) -> Iterator[None]:
    """Only this configuration, instead of what there is."""
    before = dict(dask.config.config)
    dask.config.config.clear()
    dask.config.config.update(new_config)
    try:
        yield
    finally:
        dask.config.config.clear()
        dask.config.config.update(before)


@contextmanager
def save_sys_modules() -> Iterator[None]:
    """Forget what is imported and added to the path meanwhile."""
    modules, path = dict(sys.modules), sys.path[:]
    try:
        yield
    finally:
        sys.path[:] = path
        for name in [name for name in sys.modules if name not in modules]:
            del sys.modules[name]


def nodebug(func: F) -> F:
    """For tests that need the full speed: there is no debug mode here that would slow them."""
    return func


def relative_frame_linenumber(frame: FrameType) -> int:
    """The line of a frame, counted from the first of its function."""
    return frame.f_lineno - frame.f_code.co_firstlineno


@contextmanager
def popen(
    args: Sequence[str],
    capture_output: bool = False,
    terminate_timeout: float = 10,
    kill_timeout: float = 5,
    **kwargs: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """A program of this environment, which must still run at the end, and is interrupted then.

    Raises:
        FileNotFoundError: this environment has no such program.
    """
    program = Path(sysconfig.get_path("scripts")) / args[0]
    if capture_output:
        kwargs.update(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process = subprocess.Popen([os.fspath(program), *args[1:]], **kwargs)
    try:
        yield process
        assert process.poll() is None, f"{args[0]} ended by itself: {process.returncode}"
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=terminate_timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=kill_timeout)


def _children() -> list[psutil.Process]:
    """Processes that this one has started, and those that its zygotes have forked for it.

    The zygotes themselves stay until the interpreter ends.
    """
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        try:
            is_zygote = _ZYGOTE in " ".join(child.cmdline())
            found += child.children() if is_zygote else [child]
        except psutil.NoSuchProcess:
            pass  # it has just ended
    return found


@contextmanager
def clean(threads: bool = True, instances: bool = True, processes: bool = True) -> Iterator[None]:
    """Fail if a thread of shoal's, or a child process, is left behind, after some grace."""
    old_threads = set(threading.enumerate())
    old_children = {child.pid for child in _children()} if processes else set()
    yield
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threading.enumerate() if threads else ():
        if thread not in old_threads and thread.name.startswith("shoal"):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"the thread {thread.name!r} was left behind"
    if processes:
        new = [child for child in _children() if child.pid not in old_children]
        _, alive = psutil.wait_procs(new, timeout=max(0.0, deadline - time.monotonic()))
        assert not alive, f"child processes were left behind: {alive}"
