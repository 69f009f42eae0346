"""The watch sees each kind of thing that a test may leave behind."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from time import monotonic

import pytest

from shoal.nanny.process import ServiceProcess
from tests.leaks import Watch
from tests.unit.nanny.birth import SECONDS_MAX, born, process_of

GRACE_SECONDS = 0.02  # for what will not go by itself


def test_a_test_that_leaves_nothing_is_clean() -> None:
    assert Watch().leaked(GRACE_SECONDS) == []


@pytest.mark.parametrize(
    ("name", "daemon", "seen"),
    [
        ("somebody", False, True),
        ("shoal-io-0", True, True),
        ("somebody-daemon", True, False),
    ],
)
def test_threads_of_ours_and_those_that_hold_the_exit_are_seen(
    name: str, daemon: bool, seen: bool
) -> None:
    watch = Watch()
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name=name, daemon=daemon)
    thread.start()
    found = watch.leaked(GRACE_SECONDS)
    go.set()
    thread.join()
    assert found == ([f"thread {name!r} is still running"] if seen else [])


def test_a_thread_that_ends_in_time_is_no_leak() -> None:
    watch = Watch()
    thread = threading.Thread(target=threading.Event().wait, args=(0.05,))
    thread.start()
    assert watch.leaked() == []


def test_a_child_process_is_seen() -> None:
    watch = Watch()
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        found = watch.leaked(GRACE_SECONDS)
        child.communicate(b"\n")
    assert any(f"child process {child.pid} " in text for text in found)


def test_a_socket_is_seen_with_its_number() -> None:
    watch = Watch()
    with socket.socket() as left_open:
        found = watch.leaked(GRACE_SECONDS)
        number = left_open.fileno()
    assert len(found) == 1
    assert found[0].startswith(f"descriptor {number} (socket:")


async def _fail() -> None:
    raise ValueError("nobody looked")


async def _drop_failed_task() -> None:
    task = asyncio.ensure_future(_fail())
    await asyncio.wait([task])


async def _drop_failed_future() -> None:
    asyncio.get_running_loop().create_future().set_exception(ValueError("nobody looked"))


@pytest.mark.leaks("the exception is dropped on purpose, and the outer watch sees it too")
@pytest.mark.parametrize("drop", [_drop_failed_task, _drop_failed_future])
def test_an_exception_that_nobody_retrieved_is_seen(drop: Callable[[], object]) -> None:
    watch = Watch()
    asyncio.run(drop())  # type: ignore[arg-type]
    found = watch.leaked(GRACE_SECONDS)
    assert len(found) == 1
    assert "exception was never retrieved (ValueError('nobody looked'))" in found[0]


async def _rest() -> None:
    async with born("rest"):
        pass


async def _leave(process: ServiceProcess) -> None:
    await process.start()
    await process.ready(SECONDS_MAX)


def test_what_others_are_forked_from_is_no_leak_but_what_it_has_forked_is() -> None:
    watch = Watch()
    asyncio.run(_rest())
    assert watch.leaked() == []
    watch = Watch()
    process = process_of("rest")
    asyncio.run(_leave(process))
    found = watch.leaked(GRACE_SECONDS)
    process.close_now(monotonic() + SECONDS_MAX)
    assert any(f"child process {process.pid} " in text for text in found)
