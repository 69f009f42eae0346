"""The client of tasks: each worker has one, made when a task first asks, closed with the worker."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import MutableMapping
from contextvars import Context, ContextVar
from importlib import import_module
from typing import Any, Final

from shoal.client.dask_settings import CLIENTS
from shoal.client.options import connect_seconds
from shoal.observe.inside import TaskHost, current_task
from shoal.units import to_seconds

_making: Final = threading.Lock()
_client_by_host: Final[weakref.WeakKeyDictionary[TaskHost, Any]] = weakref.WeakKeyDictionary()
_async_client_by_host: Final[weakref.WeakKeyDictionary[TaskHost, Any]] = weakref.WeakKeyDictionary()

SERVES_TASKS: Final[ContextVar[bool]] = ContextVar("serves_tasks", default=False)
"""Whether the client that is made is one of those: of many, which few ask for members, and which
tell nobody what tasks print."""


NO_TIME_SECONDS: Final = 1e-6
"""What no time at all is taken for, as a limit on connecting."""

_told_of: Final[weakref.WeakSet[TaskHost]] = weakref.WeakSet()
"""Whose tasks have asked for a client, as was told under a topic."""


def client_of_task(default: Any, timeout: Any = None) -> Any:
    """The client of the worker whose task asks; None outside of tasks.

    In a task that is a coroutine, it is an asynchronous client that has still to be awaited.

    Args:
        default: the client that would be meant outside of tasks; if it can serve the task as
            well, that saves a connection.
        timeout: seconds to connect, or a text such as "10s"; None: the setting's.

    Raises:
        OSError: the scheduler can't be reached, or doesn't let a client in.
    """
    task = current_task.get()
    if task is None:
        return None
    client = client_of_worker(task.worker, default, timeout)
    if task.worker not in _told_of:
        _told_of.add(task.worker)
        tell_of_client("worker-get-client", task.worker, client, timeout)
    return client


def client_of_worker(host: TaskHost, default: Any = None, timeout: Any = None) -> Any:
    """The client of a worker's tasks; on a loop, an asynchronous one.  See `client_of_task`."""
    loop = _running_loop()
    if default is not None and _serves(default, host, loop):
        return default
    if default is not None and loop is None and _serves(default, host, host.loop):
        return import_module("shoal.client.sharing").blocking_face(default)
    options = {} if timeout is None else {"timeout": max(to_seconds(timeout), NO_TIME_SECONDS)}
    if loop is not None:  # the worker's, where all tasks run that are coroutines: they share it
        return _open_client(_async_client_by_host, host, asynchronous=True, **options)
    with _making:
        return _open_client(_client_by_host, host, asynchronous=False, **options)


def tell_of_client(topic: str, host: TaskHost, client: Any, timeout: Any) -> None:
    """Tell that a task has a client, as programs expect it."""
    seconds = connect_seconds(None) if timeout is None else to_seconds(timeout)
    host.log_event(topic, {"timeout": seconds, "client": client.id})


def _open_client(clients: MutableMapping[TaskHost, Any], host: TaskHost, **options: Any) -> Any:
    client = clients.get(host)
    if client is None or client.status == "closed":
        client = clients[host] = _new(host, **options)
    return client


def _new(host: TaskHost, **options: Any) -> Any:
    """Made in a context of its own, since it outlives the task that asks for it."""
    client = Context().run(
        _made_for_tasks,
        import_module("shoal.client.client").Client,  # the faces know this module, not it them
        host.scheduler_address,
        security=host.client_keyring,
        set_as_default=False,
        direct_to_workers=True,
        name="worker",
        **options,
    )
    CLIENTS.begin()
    end = _End(client)
    host.before_close.append(end)
    if host.is_closing:  # it may have called what was there before that
        end()
    return client


class _End:
    """Lets a client of tasks go, once, whoever says so first."""

    def __init__(self, client: Any) -> None:
        self._left = [client]

    def __call__(self) -> None:
        try:
            client = self._left.pop()
        except IndexError:
            return
        client.close_soon()
        CLIENTS.end()


def _made_for_tasks(client_class: Any, *args: Any, **kwargs: Any) -> Any:
    SERVES_TASKS.set(True)
    return client_class(*args, **kwargs)


def _serves(client: Any, host: TaskHost, loop: asyncio.AbstractEventLoop | None) -> bool:
    """Whether a client has the scheduler of the task, and waits in the way that the task may."""
    if client.status != "running" or client.scheduler_address != host.scheduler_address:
        return False
    if loop is None:
        return bool(client.is_blocking)
    return bool(not client.is_blocking and client.loop is loop)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
