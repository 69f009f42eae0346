"""Objects that are known by their names: what all kinds of coordination have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import uuid4

from dask.utils import parse_timedelta

from shoal.client.coordination.errors import NotBound
from shoal.client.current import absence, find_client
from shoal.observe.inside import RunningTask, current_task, waiting_for_tasks
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import Message

PATIENCE_SECONDS: Final = 0.1
"""A task that waits for longer has a substitute meanwhile; for less that would not pay."""

WAIT_SECONDS_MIN: Final = 0.1
"""Whoever wants something within less would not even hear that it is there."""


class Claims:
    """The numbers of a session's claims, to whatever it is; each is used once."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> int:
        """A number; from any thread."""
        return next(self._numbers)


class Named:
    """All objects of one kind and name are one, for all clients and tasks of a cluster.

    It may be made before there is a client, and be pickled: whoever uses it asks the client of
    the task or context that it is used in.  With an asynchronous client, and on the loop of a
    blocking one, what waits returns coroutines.  An object that is not used costs nothing, however
    many tasks it is sent to.

    Args:
        name: a text, or whatever a key can be; a new name if None.
        client: whom to ask; None: the one that is meant where it is used.

    Raises:
        ValueError: at its use, there is no client (a RuntimeError as well).
    """

    def __init__(self, name: Any = None, client: Any = None) -> None:
        has_name = name is not None and name != ""
        self.name: Any = name if has_name else f"{type(self).__name__.lower()}-{uuid4().hex}"
        self._on_wire = name_on_wire(self.name)
        self._client = client

    @property
    def client(self) -> Any:
        """The client that is asked when it is used here; None: there is none."""
        return self._client if self._client is not None else find_client()

    @property
    def _face(self) -> Any:
        """As `client`, but there must be one."""
        client = self.client
        if client is None:
            raise NotBound(repr(self), absence().why)
        return client

    def _run(
        self,
        work: Callable[..., Coroutine[Any, Any, Any]],
        *args: Any,
        asynchronous: bool | None = None,
    ) -> Any:
        """What `work(session, *args)` returns; where the client's methods return coroutines, or
        `asynchronous` says so, something to be awaited that gives it."""
        client = self._face
        return client.sync(_run_with, client, work, args, asynchronous=asynchronous)

    def _ask(self, call: type[Message], **fields: Any) -> Any:
        """As `_run`, the scheduler's answer to a call about this name."""
        return self._run(_call, partial(call, name=self._on_wire, **fields))

    def _say(self, message: Message) -> Any:
        """Say something to the scheduler that it does not answer; waits for nothing."""
        client = self._face
        if is_to_be_connected(client):
            return asyncio.ensure_future(_say_with(client, message))
        client.session.say(message)
        return Done(None) if client.asynchronous else None

    def _arguments(self) -> tuple[Any, ...]:
        """With these the same object is made elsewhere."""
        return (self.name,)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, *self._arguments()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


def name_on_wire(name: Any) -> str:
    """A name as the scheduler knows it; a list is taken for a tuple.

    Raises:
        TypeError: it is no str, bytes, int, float or tuple of those.
    """
    return to_canonical(tuple(name) if isinstance(name, list) else name)


def is_to_be_connected(client: Any) -> bool:
    """Whether a client has to be awaited first, as the one that coroutines of tasks share may."""
    return not client.is_blocking and client.status in ("newly-created", "connecting")


async def connected(client: Any) -> Any:
    """The session of a client, once it has one."""
    if is_to_be_connected(client):
        await client
    return client.session


async def _run_with(
    client: Any, work: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...]
) -> Any:
    return await work(await connected(client), *args)


async def _call(session: Any, make: Callable[[int], Message]) -> Any:
    return await session.call(make)


async def _say_with(client: Any, message: Message) -> None:
    (await connected(client)).say(message)


class Done:
    """What is done already, for whoever awaits it; nobody has to."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        """`value`: what it gives."""
        self._value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self._value


def seconds_of(timeout: Any) -> float | None:
    """A timeout in seconds, from those or a text such as "10s"; None: no limit."""
    return None if timeout is None else float(parse_timedelta(timeout))


def calling_task() -> RunningTask | None:
    """The task that the caller is part of."""
    return current_task.get()


def key_of(task: RunningTask | None) -> str:
    """For whom something is claimed; "" outside of tasks."""
    return "" if task is None else task.key


async def call_for(
    task: RunningTask | None,
    session: Any,
    make: Callable[[int], Message],
    timeout_seconds: float | None = None,
) -> Any:
    """As `session.call`; a task that waits long has a substitute in its thread meanwhile."""
    if task is None:
        return await session.call(make, timeout_seconds=timeout_seconds)
    waiting = waiting_for_tasks(task)
    declared: list[bool] = []

    def declare() -> None:
        waiting.__enter__()
        declared.append(True)

    timer = session.loop.call_later(PATIENCE_SECONDS, declare)
    try:
        return await session.call(make, timeout_seconds=timeout_seconds)
    finally:
        timer.cancel()
        if declared:
            waiting.__exit__(None, None, None)
