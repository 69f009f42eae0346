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
from shoal.observe.inside import TaskHost, current_task

_making: Final = threading.Lock()
_client_by_host: Final[weakref.WeakKeyDictionary[TaskHost, Any]] = weakref.WeakKeyDictionary()
_async_client_by_host: Final[weakref.WeakKeyDictionary[TaskHost, Any]] = weakref.WeakKeyDictionary()

SERVES_TASKS: Final[ContextVar[bool]] = ContextVar("serves_tasks", default=False)
"""Whether the client that is made is one of those: of many, which few ask for members, and which
tell nobody what tasks print."""


def client_of_task(default: Any) -> Any:
    """The client of the worker whose task asks; None outside of tasks.

    In a task that is a coroutine, it is an asynchronous client that has still to be awaited.

    Args:
        default: the client that would be meant outside of tasks; if it can serve the task as
            well, that saves a connection.

    Raises:
        OSError: the scheduler can't be reached, or doesn't let a client in.
    """
    task = current_task.get()
    if task is None:
        return None
    host = task.worker
    loop = _running_loop()
    if default is not None and _serves(default, host, loop):
        return default
    if loop is not None:  # the worker's, where all tasks run that are coroutines: they share it
        return _open_client(_async_client_by_host, host, asynchronous=True)
    with _making:
        return _open_client(_client_by_host, host, asynchronous=False)


def _open_client(clients: MutableMapping[TaskHost, Any], host: TaskHost, **kwargs: bool) -> Any:
    client = clients.get(host)
    if client is None or client.status == "closed":
        client = clients[host] = _new(host, **kwargs)
    return client


def _new(host: TaskHost, *, asynchronous: bool) -> Any:
    """Made in a context of its own, since it outlives the task that asks for it."""
    client = Context().run(
        _made_for_tasks,
        import_module("shoal.client.client").Client,  # the faces know this module, not it them
        host.scheduler_address,
        security=host.client_keyring,
        set_as_default=False,
        asynchronous=asynchronous,
        name="worker",
    )
    CLIENTS.begin()
    for end in (client.close_soon, CLIENTS.end):
        host.before_close.append(end)
    return client


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
