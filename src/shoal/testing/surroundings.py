"""What surrounds a test: configuration, limits of the system, ports, networks, certificates."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from shoal.testing.bodies import inc

_LOOPBACK_6: Final = "::1"

_GC_NBYTES: Final = 16
"""What `sys.getsizeof` adds for the garbage collector."""


def has_ipv6() -> bool:
    """Whether this machine can speak IPv6 with itself."""
    if not socket.has_ipv6 or os.environ.get("DISABLE_IPV6") == "1":
        return False
    try:
        with (
            socket.create_server((_LOOPBACK_6, 0), family=socket.AF_INET6) as listening,
            socket.create_connection(listening.getsockname()[:2], timeout=1),
        ):
            return True
    except OSError:
        return False


def requires_ipv6(test_func: Callable[..., Any]) -> Callable[..., Any]:
    """Skip a test where there is no IPv6."""
    import pytest

    skipping = pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
    skipped: Callable[..., Any] = skipping(test_func)
    return skipped


def bump_rlimit(limit: int, desired: int) -> None:
    """Raise a limit of this process (of `resource`), or skip the test if that can't be done."""
    import resource

    import pytest

    soft, hard = resource.getrlimit(limit)
    if soft >= desired:
        return
    try:
        resource.setrlimit(limit, (desired, max(hard, desired)))
    except (OSError, ValueError) as error:
        pytest.skip(f"this limit of the system can't be raised to {desired}: {error}")


@contextmanager
def new_config_file(c: Mapping[str, Any]) -> Iterator[None]:
    """Only this configuration, read from a file, as the variable DASK_CONFIG names one."""
    before = os.environ.get("DASK_CONFIG")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(json.dumps(dict(c)), encoding="utf-8")  # which is YAML as well
        os.environ["DASK_CONFIG"] = str(path)
        try:
            yield
        finally:
            if before is None:
                del os.environ["DASK_CONFIG"]
            else:
                os.environ["DASK_CONFIG"] = before


def nodebug_setup_module(module: Any) -> None:
    """For modules that need the full speed: there is no debug mode here that would slow them."""
    logging.getLogger("shoal").debug("the tests of %s run at full speed, as all do", module)


def nodebug_teardown_module(module: Any) -> None:
    """The end of what `nodebug_setup_module` began."""
    logging.getLogger("shoal").debug("the tests of %s are done", module)


def has_pytestmark(test_func: Callable[..., Any], name: str) -> bool:
    """Whether a test has the mark `pytest.mark.<name>`."""
    return any(mark.name == name for mark in getattr(test_func, "pytestmark", ()))


def get_cert(filename: str) -> str:
    """The path of a certificate among the tests of `distributed`.

    Raises:
        FileNotFoundError: they are not installed: the package does not have them.
    """
    package = importlib.util.find_spec("distributed")
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    for folder in folders:
        path = Path(folder) / "tests" / filename
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{filename} is in no folder `tests` of {folders}")


class SizeOf:
    """Says that it has a size, without having it."""

    __slots__ = ("_nbytes",)

    def __init__(self, n: int) -> None:
        """Raises TypeError, ValueError: `n` is no number of bytes that an object can have."""
        if not isinstance(n, int):
            raise TypeError(f"Expected integer, got {type(n).__name__}")
        if n <= _GC_NBYTES:
            raise ValueError(f"Expected a number larger than {_GC_NBYTES}, got {n}")
        self._nbytes = n

    def __sizeof__(self) -> int:
        return self._nbytes - _GC_NBYTES


def gen_nbytes(nbytes: int) -> SizeOf:
    """What a task returns that is to have a result of that size."""
    return SizeOf(nbytes)


def lock_inc(x: Any, lock: Any) -> Any:
    """One more, while `lock` is held."""
    with lock:
        return inc(x)


def wait_for_log_line(match: bytes, stream: IO[bytes] | None, max_lines: int | None = 10) -> bytes:
    """Read lines of a program's output until one has `match` in it; that line.

    Raises:
        AssertionError: none of `max_lines` lines has (None: the output ended).
    """
    assert stream is not None, "there is no output to read: start the program with a pipe"
    nlines = 0
    while max_lines is None or nlines < max_lines:
        line = stream.readline()
        print(line.decode(errors="replace"), end="")  # for whoever looks at a failure
        if match in line:
            return line
        if not line:
            break
        nlines += 1
    raise AssertionError(f"{match!r} is in none of {nlines} lines")


async def padded_time(before: float = 0.05, after: float = 0.05) -> float:
    """The time, which is surely later than a moment ago, and earlier than in a moment."""
    import asyncio

    await asyncio.sleep(before)
    now = time.time()
    await asyncio.sleep(after)
    return now


def get_dashboard_port(client: Any) -> int:
    """The port of the scheduler's page."""
    from urllib.parse import urlsplit

    port = urlsplit(client.dashboard_link).port
    assert port is not None, f"{client.dashboard_link} has no port"
    return int(port)
