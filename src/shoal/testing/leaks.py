"""What a test must not leave behind: threads, child processes, default clients, settings."""

from __future__ import annotations

import copy
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import dask.config
import psutil

GRACE_SECONDS: Final = 5.0
_ZYGOTE: Final = "shoal.nanny.zygote"
_TRACKER: Final = "multiprocessing.resource_tracker"
_STAYING_THREADS: Final = (
    "asyncio_",
    "ThreadPoolExecutor",
    "pymp-",
    "Thread-auth",
)
"""How the names of threads begin that a process starts once and keeps, whoever asked first."""

PLUGINS: Final = ["shoal.testing.pytest_leaks"]
"""For pytest, which loads what a module has under the name `pytest_plugins`."""

original_config: Final[dict[str, Any]] = copy.deepcopy(dask.config.config)
"""Dask's configuration as it was when this module was imported."""


def reset_config() -> None:
    """Undo what was set since then."""
    dask.config.config.clear()
    dask.config.config.update(copy.deepcopy(original_config))


def children() -> list[psutil.Process]:
    """Processes that this one has started, and those that its zygotes have forked for it.

    The zygotes themselves stay until the interpreter ends.
    """
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        try:
            command = " ".join(child.cmdline())
            if _TRACKER not in command:  # which ends with this process
                found += child.children() if _ZYGOTE in command else [child]
        except psutil.NoSuchProcess:
            pass  # it has just ended
    return found


def wait_active_children(timeout: float) -> list[psutil.Process]:
    """Child processes that are still there after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    for process in multiprocessing.active_children():  # who want to hear of their ends themselves
        process.join(max(0.0, deadline - time.monotonic()))
    _, alive = psutil.wait_procs(children(), timeout=max(0.0, deadline - time.monotonic()))
    return list(alive)


def term_or_kill_active_children(timeout: float) -> None:
    """End child processes: asked to first, and made to after `timeout` seconds."""
    for child in children():
        _signal(child, "terminate")
    for child in wait_active_children(timeout):
        _signal(child, "kill")
    wait_active_children(timeout)


def _signal(process: psutil.Process, how: str) -> None:
    try:
        getattr(process, how)()
    except psutil.NoSuchProcess:
        pass  # it ended by itself


@contextmanager
def check_process_leak(
    check: bool = True, check_timeout: float = 40, term_timeout: float = 3
) -> Iterator[None]:
    """Begin without child processes, and fail if any is left `check_timeout` seconds after the end.

    Args:
        check: False: those that are left are ended, and nothing is said.
        term_timeout: seconds that a process gets to end when it is told to.
    """
    term_or_kill_active_children(term_timeout)
    try:
        yield
        if check:
            left = wait_active_children(check_timeout)
            assert not left, f"child processes were left behind: {left}"
    finally:
        term_or_kill_active_children(term_timeout)


@contextmanager
def check_thread_leak() -> Iterator[None]:
    """Fail if a thread is left behind, after some grace; one that a process keeps is none."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threading.enumerate():
        if thread in before or thread.name.startswith(_STAYING_THREADS):
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), f"the thread {thread.name!r} was left behind"


@contextmanager
def check_instances() -> Iterator[None]:
    """Fail if a default client is left behind."""
    from shoal.client.current import find_client

    before = find_client()
    yield
    left = find_client()
    assert left is None or left is before, f"a client was left behind: {left!r}"


@contextmanager
def clean(threads: bool = True, instances: bool = True, processes: bool = True) -> Iterator[None]:
    """Fail if a thread of shoal's, a child process or a default client is left, after some grace.

    Configuration that was set meanwhile is undone.
    """
    before = copy.deepcopy(dask.config.config)
    with ExitStack() as checks:
        if threads:
            checks.enter_context(_no_new_threads_of_ours())
        if processes:
            checks.enter_context(_no_new_children())
        if instances:
            checks.enter_context(check_instances())
        try:
            yield
        finally:
            dask.config.config.clear()
            dask.config.config.update(before)


@contextmanager
def _no_new_threads_of_ours() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threading.enumerate():
        if thread not in before and thread.name.startswith("shoal"):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"the thread {thread.name!r} was left behind"


@contextmanager
def _no_new_children() -> Iterator[None]:
    before = {child.pid for child in children()}
    yield
    new = [child for child in children() if child.pid not in before]
    _, alive = psutil.wait_procs(new, timeout=GRACE_SECONDS)
    assert not alive, f"child processes were left behind: {alive}"
