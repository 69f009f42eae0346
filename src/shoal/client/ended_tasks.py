"""`get_task_metadata`: how tasks end that begin in a block of code."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from shoal.client.current import default_client
from shoal.protocol.keys import from_canonical
from shoal.protocol.metadata import CollectedTasks, CollectTasks


class get_task_metadata:  # noqa: N801 -- it is called
    """Collects how tasks end, of whichever client, that begin while this context lasts.

    Used by `with`, or by `async with` if the client is asynchronous.  At its end there are:

    - `state`: key -> `memory` or `erred`;
    - `metadata`: the same keys -> None, as workers note nothing about tasks.
    """

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] = {}
        self.state: dict[Any, str] = {}
        self._name = uuid4().hex

    def __enter__(self) -> Self:
        self._client = default_client()
        self._client.sync(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.sync(self._end)

    async def __aenter__(self) -> Self:
        self._client = default_client()
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end()

    async def _begin(self) -> None:
        await self._client.session.call(lambda request: CollectTasks(request, self._name))

    async def _end(self) -> None:
        session = self._client.session
        if not session.is_open:
            return
        ended = await session.call(lambda request: CollectedTasks(request, self._name))
        self.state = {from_canonical(key): state for key, state in ended.items()}
        self.metadata = dict.fromkeys(self.state)
