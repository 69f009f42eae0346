"""Objects that are known by their names: what all kinds of coordination have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from uuid import uuid4

from shoal.client.current import default_client
from shoal.protocol.messages import Message


class Named:
    """All objects of one kind and name are one, for all clients and tasks of a cluster.

    It may be made before there is a client, and be pickled: whoever uses it asks the client of
    the task or context that it is used in.  With an asynchronous client, and on the loop of a
    blocking one, what waits returns coroutines.

    Args:
        name: a new name if None.
        client: whom to ask; None: the one that is meant where it is used.
    """

    def __init__(self, name: str | None = None, client: Any = None) -> None:
        self.name = name or f"{type(self).__name__.lower()}-{uuid4().hex}"
        self._client = client

    @property
    def client(self) -> Any:
        """The client that is asked when it is used here.

        Raises:
            ValueError: there is none.
        """
        return default_client(self._client)

    def _run(self, work: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Any:
        """What `work(session, *args)` returns; where the client's methods return coroutines, one
        of that."""
        client = self.client
        return client.sync(work, client.session, *args)

    def _ask(self, call: type[Message], **fields: Any) -> Any:
        """As `_run`, the scheduler's answer to a call about this name."""
        client = self.client
        return client.sync(client.session.call, partial(call, name=self.name, **fields))

    def _say(self, message: Message) -> Any:
        """Say something to the scheduler that it does not answer; waits for nothing."""
        client = self.client
        client.session.say(message)
        return done() if client.asynchronous else None

    def _arguments(self) -> tuple[Any, ...]:
        """With these the same object is made elsewhere."""
        return (self.name,)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, *self._arguments()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


async def done() -> None:
    """For whoever awaits what is done already."""
