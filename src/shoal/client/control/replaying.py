"""Tasks of the cluster done again here, where a debugger is; and graphs that know what is there."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from shoal.client.computing import flat_keys
from shoal.client.control.keys import keys_in
from shoal.client.conversion import to_node
from shoal.client.future import Future, futures_of
from shoal.client.lifecycle import ClientBase
from shoal.client.machine import ERROR
from shoal.errors import NotATask
from shoal.protocol import looking
from shoal.protocol.keys import from_canonical, to_canonical


class Replaying(ClientBase):
    """`recreate_task_locally`, `recreate_error_locally`, `normalize_collection`."""

    def recreate_task_locally(self, future: Any) -> Any:
        """Do a task again in this thread, with its inputs fetched; what it returns.

        If it failed because of another task, that one is done.

        Args:
            future: a future, or a key; in a collection or a list, the first one.

        Raises:
            NotATask: nothing is known of it; a ValueError.
            BaseException: whatever it raises, from where it raised it.
        """
        return self._recreate(future, is_error=False)

    def recreate_error_locally(self, future: Any) -> Any:
        """As `recreate_task_locally`, for a task that failed: the first that did, of several.

        Raises:
            NotATask: none of them failed, or nothing is known of it; a ValueError.
        """
        return self._recreate(future, is_error=True)

    def normalize_collection(self, collection: Any) -> Any:
        """The collection, with futures in place of tasks whose results this client holds.

        Cost: O(tasks) of its graph, which is made for that.
        """
        graph = dict(collection.__dask_graph__())
        known = [key for key in graph if isinstance(key, (str, bytes, int, float, tuple))]
        with self.session.lock:
            self.session.take_dropped()
            held = self.session.machine.records
            known = [key for key in known if to_canonical(key) in held]
        if not known:
            return collection
        graph.update((key, Future(key, self.face)) for key in known)
        rebuild, arguments = collection.__dask_postpersist__()
        return rebuild(_needed(graph, flat_keys(collection.__dask_keys__())), *arguments)

    def collections_to_dsk(self, collections: Any, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """The tasks of collections, optimized together, as one plain graph."""
        from dask.base import collections_to_expr

        expression: Any = collections_to_expr(collections, *args, **kwargs)
        return dict(expression.__dask_graph__())

    def _recreate(self, future: Any, *, is_error: bool) -> Any:
        if self.owner is None or self.face.asynchronous:
            return self._recreate_on_loop(future, is_error=is_error)
        value = self.face.sync(self._call_of, future, is_error=is_error)()
        return self.face.sync(_awaited, value) if inspect.iscoroutine(value) else value

    async def _recreate_on_loop(self, future: Any, *, is_error: bool) -> Any:
        value = (await self._call_of(future, is_error=is_error))()
        return await value if inspect.iscoroutine(value) else value

    async def _call_of(self, future: Any, *, is_error: bool) -> Callable[[], Any]:
        """A task with its inputs, ready to be called."""
        session = self.session
        records = [each.record for each in futures_of(future)]
        await session.wait_all(records)
        failed = [record.key for record in records if record.status == ERROR]
        wanted = (failed if is_error else []) or keys_in(future)
        if not wanted:
            raise NotATask(str(future), is_error)
        asked: looking.TaskCall = await session.call(
            lambda request: looking.CallOfTask(request, wanted[0], is_error)
        )
        futures = [Future(from_canonical(key), self.face) for key in asked.dependencies]
        inputs = [each.record for each in futures]
        values = await self.gathering().run(inputs)
        # What calls tasks is the workers', and found by its name.
        functions = import_module("shoal.worker.shell.functions")
        function, args, kwargs = await asyncio.to_thread(
            functions.call,
            functions.Code(asked.code),
            asked.argument,
            [values[record] for record in inputs],
        )
        return lambda: function(*args, **kwargs)


def _needed(graph: dict[Any, Any], keys: list[Any]) -> dict[Any, Any]:
    """The part of a graph that leads to these keys; nothing leads to a future."""
    found: dict[Any, Any] = {}
    left = keys[::-1]
    while left:
        key = left.pop()
        if key in found or key not in graph:
            continue
        task = found[key] = graph[key]
        if not isinstance(task, Future):
            left.extend(to_node(key, task, graph)[1])
    return found


async def _awaited(value: Any) -> Any:
    return await value
