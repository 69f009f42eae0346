"""`distributed.utils`: texts, names and colours, for people to read."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import quote_plus

import dask.config
from dask.tokenize import tokenize
from dask.utils import parse_timedelta

palette: Final = [
    "#440154", "#471669", "#472A79", "#433C84", "#3C4D8A", "#355D8C", "#2E6C8E", "#287A8E",
    "#23898D", "#1E978A", "#20A585", "#2EB27C", "#45BF6F", "#64CB5D", "#88D547", "#AFDC2E",
    "#D7E219", "#FDE724",
]  # fmt: skip
"""Colours that can be told apart by everybody: eighteen steps of viridis."""

_RETRY_SECONDS: Final = 0.01
_HOST_IN_LINK: Final = "localhost"


def color_of(x: Any, palette: list[str] = palette) -> str:
    """The same colour for the same thing, always."""
    return palette[int(tokenize(x)[:8], 16) % len(palette)]


def format_dashboard_link(host: str, port: int | str) -> str:
    """The address of a page, as the setting `distributed.dashboard.link` writes it.

    It may name `{scheme}`, `{host}`, `{port}` and variables of the environment.
    """
    template = dask.config.get("distributed.dashboard.link", "{scheme}://{host}:{port}/status")
    if dask.config.get("distributed.scheduler.dashboard.tls.cert", None):
        scheme = "https"
    else:
        scheme = "http"
    words = {**os.environ, "scheme": scheme, "host": host or _HOST_IN_LINK, "port": port}
    return str(template).format(**words)


def clean_dashboard_address(addrs: Any, default_listen_ip: str = "") -> list[dict[str, Any]]:
    """`":8787,host:1"`, a number, or a list of those → host and port of each.

    Raises:
        ValueError: a port is no number.
    """
    if isinstance(addrs, list | tuple):
        return [found for one in addrs for found in clean_dashboard_address(one, default_listen_ip)]
    found = []
    for part in str(addrs).split(","):
        host, separator, port = part.rpartition(":")
        if not separator and not port.isdigit():
            host, port = port, "0"
        listens_on = default_listen_ip if host in ("", "0.0.0.0") else host
        found.append({"address": listens_on, "port": int(port or 0)})
    return found


@lru_cache(maxsize=10_000)
def url_escape(url: str, *args: Any, **kwargs: Any) -> str:
    """A segment of an address with what is special in it written as %xx, and blanks as +."""
    return quote_plus(url, *args, **kwargs)


def truncate_exception(e: BaseException, n: int = 10000) -> BaseException:
    """The exception itself, or, if it takes more than `n` characters to say, a shorter one."""
    if len(str(e)) <= n:
        return e
    try:
        return type(e)("Long error message", str(e)[:n])
    except Exception:  # it wants to be made in another way
        return Exception("Long error message", type(e), str(e)[:n])


def get_traceback() -> Any:
    """The traceback of the exception that is being handled, from the first frame on."""
    return sys.exc_info()[2]


def is_kernel() -> bool:
    """Whether this is a kernel of IPython, which a notebook talks with."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def json_load_robust(
    fn: str | os.PathLike[str],
    load: Callable[[Any], Any] = json.load,
    timeout: float | str | timedelta | None = None,
) -> Any:
    """Read a file that somebody may be about to write, or be writing.

    Args:
        timeout: seconds to wait for it; None: for ever.

    Raises:
        TimeoutError: it is not there, or not whole, when `timeout` has passed.
    """
    seconds = parse_timedelta(timeout)
    deadline = float("inf") if seconds is None else monotonic() + seconds
    while True:
        try:
            with open(fn, encoding="utf-8") as opened:
                return load(opened)
        except (FileNotFoundError, ValueError) as error:
            if monotonic() > deadline:
                raise TimeoutError(f"{fn} could not be read in time: {error}") from error
        sleep(_RETRY_SECONDS)  # nobody tells when another program has written a file


@contextmanager
def warn_on_duration(duration: str | float | timedelta, msg: str) -> Iterator[None]:
    """Warn with `msg`, in which `{duration}` is the time in s, if the block takes longer."""
    started_at = monotonic()
    yield
    took = monotonic() - started_at
    if took > parse_timedelta(duration):
        warnings.warn(msg.format(duration=took), stacklevel=3)


class TupleComparable:
    """Gives numbers, tuples of numbers and None one order; None is 0, a number a tuple of one."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        if obj is None:
            self.obj: tuple[Any, ...] = (0,)
        elif isinstance(obj, tuple):
            self.obj = obj
        elif isinstance(obj, int | float):
            self.obj = (obj,)
        else:
            raise ValueError(f"{obj!r} is neither a tuple, nor a number, nor None")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleComparable) and self.obj == other.obj

    def __lt__(self, other: TupleComparable) -> bool:
        return self.obj < other.obj

    def __hash__(self) -> int:
        return hash(self.obj)


def recursive_to_dict(obj: Any, *, exclude: Container[str] = (), members: bool = False) -> Any:
    """What JSON can say of an object, for looking at.

    Containers are gone into; an object with `_to_dict(exclude=)`, or `_to_dict_no_nest` where it is
    not inside another such object, says what it is; of anything else, and of what came before, its
    `repr` is taken.

    Args:
        members: of `obj` itself its public attributes instead.
    """
    if members:
        named = ((name, getattr(obj, name)) for name in dir(obj) if not name.startswith("_"))
        obj = {k: v for k, v in named if k not in exclude and not callable(v)}
    return _plain(obj, exclude, [], False)


def _plain(obj: Any, exclude: Container[str], above: list[int], nested: bool) -> Any:
    if isinstance(obj, int | float | bool | str) or obj is None:
        return obj
    if isinstance(obj, type | bytes):
        return repr(obj)
    if id(obj) in above:
        return repr(obj)
    above = [*above, id(obj)]
    for name in ("_to_dict", "_to_dict_no_nest"):
        tell = getattr(obj, name, None)
        if tell is not None and not (nested and name == "_to_dict_no_nest"):
            inside = nested or name == "_to_dict_no_nest"
            return _plain(tell(exclude=exclude), exclude, above, inside)
    if isinstance(
        obj, list | tuple | set | frozenset | deque | type({}.keys()) | type({}.values())
    ):
        return [_plain(each, exclude, above, nested) for each in obj]
    if isinstance(obj, dict):
        return {_key(k): _plain(v, exclude, above, nested) for k, v in obj.items()}
    return repr(obj)


def _key(key: Any) -> Any:
    return key if isinstance(key, int | float | bool | str) or key is None else str(key)
