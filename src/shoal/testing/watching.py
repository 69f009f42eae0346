"""What tests look at and wait for: logs, states, exceptions, programs."""

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
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import dask.config

F = TypeVar("F", bound=Callable[..., Any])

NO_AMM: Final = {"distributed.scheduler.active-memory-manager.start": False}
_PERIOD_SECONDS: Final = 0.01
_STATE_SECONDS_MAX: Final = 15.0


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


@contextmanager
def captured_context_meter() -> Iterator[defaultdict[Any, float]]:
    """Label and unit → the sum of what is measured meanwhile (see `compat/metering.py`)."""
    from shoal.compat.metering import context_meter

    sums: defaultdict[Any, float] = defaultdict(int)

    def add(label: Any, value: float, unit: str) -> None:
        sums[(*label, unit) if isinstance(label, tuple) else (label, unit)] += value

    with context_meter.add_callback(add):
        yield sums


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
    key: Any,
    state: str | Sequence[str],
    dask_worker: Any,
    *,
    interval: float = _PERIOD_SECONDS,
    timeout: float = _STATE_SECONDS_MAX,
) -> None:
    """Wait until a task is in a state, or one of several, on a worker or a scheduler.

    If it is cancelled, or gives up, it prints in which state the task is.

    Raises:
        AssertionError: it is in none of them after `timeout` seconds.
    """
    states = {state} if isinstance(state, str) else set(state)
    deadline = time.monotonic() + timeout
    found: str | None = None
    try:
        while True:
            tasks = getattr(dask_worker, "state", dask_worker).tasks
            found = tasks[key].state if key in tasks else None
            if found in states:
                return
            if time.monotonic() > deadline:
                wanted = " or ".join(sorted(states))
                shown = found or "not there"
                raise AssertionError(f"{key!r} is {shown}, and not {wanted}, after {timeout:g} s")
            await asyncio.sleep(interval)
    except (asyncio.CancelledError, AssertionError):
        where = getattr(dask_worker, "address", dask_worker)
        if found is None:
            print(f"tasks[{key!r}] not found on {where}")
        else:
            print(f"tasks[{key!r}].state={found!r} on {where}; expected {state=}")
        raise


@contextmanager
def raises_with_cause(
    expected_exception: type[BaseException] | tuple[type[BaseException], ...],
    match: str | None,
    expected_cause: type[BaseException] | tuple[type[BaseException], ...],
    match_cause: str | None,
    *more_causes: Any,
) -> Iterator[None]:
    """An exception with a chain of causes: each a type and what its text must match, or None.

    As with `pytest.raises`, one of another type is raised itself.
    """
    import pytest

    with pytest.raises(expected_exception, match=match) as caught:
        yield
    error: BaseException | None = caught.value
    chain = (expected_cause, match_cause, *more_causes)
    for kind, pattern in zip(chain[::2], chain[1::2], strict=True):
        assert error is not None
        error = error.__cause__
        if error is not None and not isinstance(error, kind):
            raise error
        assert error is not None, f"there is no cause, and no {kind}"
        assert pattern is None or re.search(pattern, str(error)), f"{error!r} is not {pattern!r}"


@contextmanager
def ensure_no_new_clients() -> Iterator[None]:
    """Fail if a default client was begun meanwhile, ended or not."""
    from shoal.client.current import nbegun

    before = nbegun()
    yield
    nnew = nbegun() - before
    assert not nnew, f"{nnew} default clients were begun"


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
    """A program of this environment, or an absolute path; interrupted at the end if it runs still.

    What it wrote is printed, if it was captured.

    Args:
        terminate_timeout: seconds that it may take to end when it is interrupted.
        kill_timeout: seconds that it may take when it is killed.

    Raises:
        FileNotFoundError: there is no such program.
        subprocess.TimeoutExpired: it had to be killed.
    """
    program = Path(sysconfig.get_path("scripts")) / args[0]
    if not program.exists():
        raise FileNotFoundError(
            f"{program} is not there: install the package that brings it, or provide an absolute "
            "path to an existing installation to popen"
        )
    if capture_output:
        kwargs.update(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process = subprocess.Popen([os.fspath(program), *args[1:]], **kwargs)
    try:
        yield process
    finally:
        output: bytes | None = None
        try:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            # Whoever has asked for its output gets the same once more.
            output, _ = process.communicate(timeout=terminate_timeout)
        finally:
            if process.poll() is None:
                process.kill()
                output, _ = process.communicate(timeout=kill_timeout)
            if capture_output:
                print(f"------ stdout: returncode {process.returncode}, {args} ------")
                print((output or b"").decode(errors="replace"))
