"""`distributed.utils`: small functions that programs import from there."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from xml.etree import ElementTree

import dask.config
import psutil
from dask.utils import parse_timedelta

from shoal.comms.addresses import outward_ip

T = TypeVar("T")


class Deadline:
    """An instant until which something may take; `None` is never."""

    def __init__(self, expires_at: float | None = None) -> None:
        """`expires_at`: on the wall clock, in seconds."""
        self.started_at_mono = time.monotonic()
        self.started_at = time.time()
        self._duration = None if expires_at is None else expires_at - self.started_at

    @classmethod
    def after(cls, duration: float | None = None) -> Deadline:
        """`duration` seconds from now."""
        return cls(None if duration is None else time.time() + duration)

    @property
    def expires(self) -> bool:
        """Whether it ever does."""
        return self._duration is not None

    @property
    def expires_at_mono(self) -> float | None:
        """When it does, on the clock that nobody sets."""
        return None if self._duration is None else self.started_at_mono + self._duration

    @property
    def expires_at(self) -> float | None:
        """When it does, on the wall clock as that is now."""
        remaining = self._remaining
        return None if remaining is None else time.time() + remaining

    @property
    def duration(self) -> float | None:
        """Seconds from its start to its end."""
        return self._duration

    @property
    def elapsed(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.started_at_mono

    @property
    def _remaining(self) -> float | None:
        return None if self._duration is None else self._duration - self.elapsed

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, never negative."""
        remaining = self._remaining
        return None if remaining is None else max(0.0, remaining)

    @property
    def expired(self) -> bool:
        """Whether it has passed."""
        return self.remaining == 0


def sync(
    loop: Any,
    func: Callable[..., Coroutine[Any, Any, T]],
    *args: Any,
    callback_timeout: float | str | None = None,
    **kwargs: Any,
) -> T:
    """Call a function on a loop that runs in another thread, and wait for it, and for the coroutine
    that it returns, if it does.

    Raises:
        RuntimeError: the loop is closed, or the caller's own.
        TimeoutError: `callback_timeout` passed.
    """
    loop = getattr(loop, "asyncio_loop", loop)
    try:
        is_ours = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_ours = False
    if is_ours:
        raise RuntimeError("Cannot use sync on the loop that would have to do the work")
    if loop.is_closed():
        raise RuntimeError("The IOLoop is closed, so nothing can be run on it")

    async def call() -> T:
        work: Any = func(*args, **kwargs)
        result: T = await work if inspect.isawaitable(work) else work
        return result

    future = asyncio.run_coroutine_threadsafe(call(), loop)
    try:
        return future.result(parse_timedelta(callback_timeout))
    except BaseException:
        future.cancel()
        raise


async def wait_for(fut: Any, timeout: float | None) -> Any:
    """As `asyncio.wait_for`."""
    return await asyncio.wait_for(fut, timeout)


def asyncio_run(
    main: Coroutine[Any, Any, T],
    *,
    debug: bool | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """As `asyncio.run`, on a loop of one's own making."""
    with asyncio.Runner(debug=debug, loop_factory=loop_factory) as runner:
        return runner.run(main)


def get_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes loops as the configuration wants them; None: asyncio's own way."""
    if dask.config.get("distributed.admin.event-loop", "asyncio") != "uvloop":
        return None
    factory: Callable[[], asyncio.AbstractEventLoop]
    factory = importlib.import_module("uvloop").new_event_loop
    return factory


def iscoroutinefunction(f: Any) -> bool:
    """Whether calling it, or the function inside of a partial, makes something to await."""
    while isinstance(f, functools.partial):
        f = f.func
    return inspect.iscoroutinefunction(f)


is_coroutine_function = iscoroutinefunction


def has_arg(func: Callable[..., Any], argname: str) -> bool:
    """Whether a function takes an argument of this name."""
    try:
        return argname in inspect.signature(func).parameters
    except (TypeError, ValueError):
        return False


def import_term(name: str) -> Any:
    """`"package.module.name"` → what it names."""
    module, _, attribute = name.rpartition(".")
    found = importlib.import_module(module or name)
    return getattr(found, attribute) if module else found


def get_ip(host: str = "8.8.8.8", port: int = 80) -> str:
    """This host's IPv4 address as others see it."""
    return outward_ip()


def get_ip_interface(ifname: str) -> str:
    """The IPv4 address of a network interface of this machine.

    Raises:
        ValueError: there is no such interface, or it has no IPv4 address.
    """
    addresses = psutil.net_if_addrs()
    if ifname not in addresses:
        names = ", ".join(map(repr, addresses))
        raise ValueError(f"{ifname!r} is no network interface of this host, which has {names}")
    for address in addresses[ifname]:
        if address.family is socket.AF_INET:
            return str(address.address)
    raise ValueError(f"the interface {ifname!r} has no IPv4 address")


def get_ipv6(host: str = "2001:4860:4860::8888", port: int = 80) -> str:
    """This host's IPv6 address as others see it."""
    return outward_ip(socket.AF_INET6)


def ensure_ip(hostname: str) -> str:
    """The numbers of a host name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return str(socket.getaddrinfo(hostname, 1, family, socket.SOCK_STREAM)[0][4][0])
        except socket.gaierror:
            continue
    raise socket.gaierror(f"no address is known for {hostname!r}")


def open_port(host: str = "") -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


def parse_ports(port: int | str | list[int] | tuple[int, ...] | None) -> list[int] | list[None]:
    """`"9000:9002"` → `[9000, 9001, 9002]`; a number → itself in a list; None → `[None]`."""
    if port is None:
        return [None]
    if isinstance(port, str):
        first, separator, last = port.partition(":")
        if not separator:
            return [int(first)]
        if int(last) < int(first):
            raise ValueError(f"port_stop must be greater than port_start, not {port!r}")
        return list(range(int(first), int(last) + 1))
    ports = list(port) if isinstance(port, list | tuple) else [port]
    if not all(isinstance(each, int) for each in ports):
        raise TypeError(f"a port is a number or a range such as '9000:9002', not {port!r}")
    return ports


def get_mp_context() -> Any:
    """How the configuration wants processes of `multiprocessing` to be made."""
    method = dask.config.get("distributed.worker.multiprocessing-method", "spawn")
    return multiprocessing.get_context(method)


def is_valid_xml(text: str) -> bool:
    """True for a text that can be parsed as XML; raises otherwise."""
    return ElementTree.fromstring(text) is not None


@contextmanager
def tmp_text(filename: str, text: str) -> Iterator[str]:
    """The path of a file that holds `text`, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, filename)
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(text)
        yield path


def exponential_backoff(
    attempt: int, multiplier: float, exponential_base: float, max_interval: float
) -> float:
    """How long to wait before a further attempt: each time longer, up to a limit (same unit)."""
    try:
        return float(min(max_interval, multiplier * exponential_base**attempt))
    except OverflowError:
        return max_interval
