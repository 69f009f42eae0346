"""All that is published, as a mapping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, MutableMapping
from typing import Any

from shoal.client.control.errors import AsynchronousMapping, BlockingMapping


class Datasets(MutableMapping[Any, Any]):
    """Published values by name; each look asks the scheduler.

    With an asynchronous client, `datasets[name]` and `get` are awaited, `async for` goes through
    the names, and for everything else the client has methods.
    """

    __slots__ = ("_client",)

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getitem__(self, name: Any) -> Any:
        """See `Client.get_dataset`."""
        return self._client.get_dataset(name)

    def get(self, name: Any, default: Any = None) -> Any:
        """The value, or else the default."""
        return self._client.get_dataset(name, default=default)

    def __setitem__(self, name: Any, value: Any) -> None:
        """See `Client.publish_dataset`; a name that is taken raises KeyError."""
        self._require_waiting(
            "client.datasets[name] = value", "client.publish_dataset(value, name=name)"
        )
        self._client.publish_dataset(value, name=name)

    def __delitem__(self, name: Any) -> None:
        """See `Client.unpublish_dataset`."""
        self._require_waiting("del client.datasets[name]", "client.unpublish_dataset(name)")
        self._client.unpublish_dataset(name)

    def __contains__(self, name: object) -> bool:
        self._require_waiting("name in client.datasets", "client.list_datasets()")
        return name in self._client.list_datasets()

    def __iter__(self) -> Iterator[Any]:
        self._require_waiting("for name in client.datasets", "client.list_datasets()")
        return iter(self._client.list_datasets())

    async def _names(self) -> AsyncIterator[Any]:
        for name in await self._client.list_datasets():
            yield name

    def __aiter__(self) -> AsyncIterator[Any]:
        if not self._client.asynchronous:
            raise BlockingMapping
        return self._names()

    def __len__(self) -> int:
        self._require_waiting("len(client.datasets)", "client.list_datasets()")
        return len(self._client.list_datasets())

    def __repr__(self) -> str:
        return f"<Datasets of {self._client!r}>"

    def _require_waiting(self, what: str, method: str) -> None:
        """Raise where the client's methods return coroutines."""
        if self._client.asynchronous:
            raise AsynchronousMapping(what, method)
