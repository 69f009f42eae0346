"""Which client is meant when none is named: the context's, else the newest default one."""

from __future__ import annotations

import socket
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from shoal.client.dask_settings import CLIENTS, SCHEDULER, SchedulerEntry, drop_in_is_ours
from shoal.client.errors import NoClient
from shoal.client.nested import client_of_task, client_of_worker, tell_of_client
from shoal.comms.addresses import parse_address
from shoal.comms.errors import AddressError
from shoal.observe.inside import TaskHost, current_task, rejoin, secede

_context: ContextVar[Any] = ContextVar("shoal_client", default=None)
_defaults: Final[list[weakref.ref[Any]]] = []  # the newest last
_reasons: Final[list[Callable[[], str]]] = []
_defaults_change: Final = threading.RLock()  # a client may be collected while one is added
_nbegun = 0  # default clients, ever
_told: SchedulerEntry | None = None  # that dask computes with the default client; None: it does not


def add_default(client: Any) -> None:
    """Make `client` the default one, until `remove_default` or until it is collected."""
    global _nbegun, _told  # noqa: PLW0603  # of the whole process, like the list beside them
    with _defaults_change:
        _nbegun += 1
        if _told is None:
            _told = SCHEDULER.begin(_scheduler())
            CLIENTS.begin()
        _defaults.append(weakref.ref(client))


def remove_default(client: Any) -> None:
    """`client` is no longer a default; the one before it is again.

    None: forget those that were collected.
    """
    global _told
    with _defaults_change:
        _defaults[:] = [ref for ref in _defaults if ref() is not None and ref() is not client]
        if not _defaults and _told is not None:
            told, _told = _told, None
            CLIENTS.end()
            SCHEDULER.end(told)


def default_clients() -> list[Any]:
    """The default clients that are there, the newest last."""
    return [client for ref in list(_defaults) if (client := ref()) is not None]


def nbegun() -> int:
    """How many default clients there have been so far in this process."""
    return _nbegun


def add_reason(reason: Callable[[], str]) -> None:
    """Where there is no client, ask `reason` why, and what to do; "" if it can't tell."""
    _reasons.append(reason)


def absence() -> NoClient:
    """The error for where there is no client."""
    for reason in _reasons:
        why = reason()
        if why:
            return NoClient(why=why)
    return NoClient()


def find_client(allow_global: bool = True, timeout: Any = None) -> Any:
    """The client of this context: of a `with`, of the task, or the default one; else None.

    Args:
        timeout: seconds to connect that of the task, if it has none yet.
    """
    client = _context.get()
    if client is not None:
        return client
    default = newest_default()
    client = client_of_task(default, timeout)
    if client is None and allow_global:
        client = default
    return client


def newest_default() -> Any:
    """The default client that was made last; None: there is none.  None is made."""
    for ref in reversed(_defaults):
        client = ref()
        if client is not None:
            return client
    return None


def current_client(allow_global: bool = True) -> Any:
    """The client of this context, or else, if allowed, the default one.

    Raises:
        ValueError: there is none.
    """
    found = find_client(allow_global)
    if found is None:
        raise absence()
    return found


def default_client(c: Any = None) -> Any:
    """The client `c`, or the one that is meant when none is named.

    Raises:
        ValueError: there is none.
    """
    return c if c is not None else current_client()


def get_client(address: Any = None, timeout: Any = None, resolve_address: bool = True) -> Any:
    """The client of this task or context, as long as it is one of `address`.

    In a task it is one of the task's own cluster, whichever others the task has clients of.

    Args:
        address: None, an address, or an object with `scheduler_address`; a new default client is
            made for it if the current one belongs to another scheduler.
        timeout: seconds to connect a new one, or a text such as "10s".
        resolve_address: whether two addresses of one host may be written differently.

    Raises:
        ValueError: no address is given, and there is no client.
    """
    found = find_client(timeout=timeout)
    task = current_task.get()
    if task is not None and found.scheduler_address != task.worker.scheduler_address:
        found = client_of_task(newest_default(), timeout)
    wanted = getattr(address, "scheduler_address", address)
    if wanted is None:
        if found is None:
            raise absence()
        return found
    if found is not None and _is_same(found.scheduler_address, wanted, resolve_address):
        return found
    from importlib import import_module  # the faces know this module; it finds them by name

    options = {} if timeout is None else {"timeout": timeout}
    return import_module("shoal.client.client").Client(address, **options)


def client_of(worker: TaskHost) -> Any:
    """The client that tasks of a worker have; a default one of this process, if that can be."""
    return client_of_worker(worker, newest_default())


def _is_same(address: str, other: Any, resolve: bool) -> bool:
    """Whether two addresses mean one scheduler; `resolve`: names of hosts may be looked up."""
    if address == other or not resolve or not isinstance(other, str):
        return bool(address == other)
    try:
        one, two = parse_address(address), parse_address(other)
        if (one.scheme, one.port, one.name) != (two.scheme, two.port, two.name):
            return False
        return _numbers_of(one.host) == _numbers_of(two.host)
    except (AddressError, OSError):
        return False


def _numbers_of(host: str) -> str:
    return str(socket.getaddrinfo(host, 1, type=socket.SOCK_STREAM)[0][4][0])


@contextmanager
def as_current(client: Any) -> Iterator[None]:
    """`client` is the one meant in this context, for dask as well, whatever its setting was."""
    entered = enter(client, for_dask=True)
    try:
        yield
    finally:
        leave(entered)


@contextmanager
def temp_default_client(c: Any) -> Iterator[None]:
    """As `as_current`, by an old name."""
    with as_current(c):
        yield


@contextmanager
def worker_client(timeout: Any = None, separate_thread: bool = True) -> Iterator[Any]:
    """The client of a task, for a `with` statement in it.

    Args:
        timeout: seconds to connect a new client, or a text such as "10s".
        separate_thread: have the task secede for as long as the statement lasts, so that it holds
            no slot; it waits for one at the end.  Where it is False, others run in its place only
            while it waits for what it has submitted.

    Raises:
        ValueError: there is no client.
        OSError: the scheduler can't be reached in time.
    """
    client = get_client(timeout=timeout)
    task = current_task.get()
    secedes = separate_thread and task is not None and not task.has_seceded
    if task is not None:
        tell_of_client("worker-client", task.worker, client, timeout)
    if secedes:
        secede()
    try:
        with as_current(client):
            yield client
    finally:
        if secedes:
            rejoin()


def local_client(*args: Any, **kwargs: Any) -> Any:
    """As `worker_client`, by an old name."""
    warnings.warn("local_client has moved to worker_client", stacklevel=2)
    return worker_client(*args, **kwargs)


def enter(client: Any, *, for_dask: bool = False) -> Any:
    """As `as_current`, for `with` statements on a client; give what it returns to `leave`.

    Args:
        for_dask: dask computes with it as well.  Dask's setting is the process's, not the
            context's.
    """
    token = _context.set(client)
    return token, SCHEDULER.begin(_scheduler()) if for_dask else None


def leave(entered: Any) -> None:
    """End what `enter` began; nothing happens in another context than its own."""
    token, told = entered
    if told is not None:
        SCHEDULER.end(told)
    try:
        _context.reset(token)
    except ValueError:
        pass  # a generator or fixture that was entered in one context and left in another


class CurrentClient:
    """What `dask.config` holds as its scheduler: whichever client is current as dask computes.

    Dask looks for `persist` beside `get`, and compares `get` by equality.
    """

    def get(self, dsk: Any, keys: Any, **options: Any) -> Any:
        """See `Client.get`."""
        return default_client().get(dsk, keys, **options)

    def persist(self, collections: Any, **options: Any) -> Any:
        """See `Client.persist`."""
        return default_client().persist(collections, **options)


CURRENT: Final = CurrentClient()


def _scheduler() -> Any:
    """What to tell dask: the name that users know if it leads to us, else our own object.

    Dask looks the name up in the package `distributed`, which may be missing, or be another one.
    """
    return "dask.distributed" if drop_in_is_ours() else CURRENT.get
