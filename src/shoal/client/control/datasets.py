"""Values that all clients of a cluster find under a name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from dask.typing import no_default

from shoal.client import current
from shoal.client.control.errors import DatasetExists, NamelessDataset, UnknownDataset
from shoal.client.control.published import Datasets
from shoal.client.errors import UnpicklableValue
from shoal.client.future import futures_of
from shoal.client.lifecycle import ClientBase
from shoal.ids import ClientTaskId, Key
from shoal.protocol import datasets
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.messages import ReleaseTasks
from shoal.protocol.payload import kind_of, load


class Publishing(ClientBase):
    """`publish_dataset`, `get_dataset`, `list_datasets`, `unpublish_dataset` and `datasets`."""

    async def publish_dataset(
        self, *args: Any, name: Any = None, override: bool = False, **kwargs: Any
    ) -> None:
        """Keep values under names, for all clients, until they are unpublished.

        Results that a value refers to, as futures or in collections, stay in workers' memory, also
        when this client has gone.  All else is kept by the scheduler: scatter what is large, and
        persist collections, or every client computes them.

        Args:
            args: one value for `name`, or several, which become a tuple; without `name`, a dict of
                values by their names.
            name: text, bytes, number, or tuple of those.
            override: a value that has the name already is replaced.
            kwargs: values by their names.

        Raises:
            KeyError: a name is taken; nothing was published.
            ValueError: a value has no name, or a name no value.
            CancelledError: a value refers to a future that was cancelled.
            UnpicklableValue: a value can't be pickled.
        """
        values = _values_by_name(args, name, kwargs)
        names = [to_canonical(key) for key in values]
        payloads = [self._pickled(name, value) for name, value in values.items()]
        tasks = [self._tasks_of(value) for value in values.values()]
        if not names:
            return
        taken: Key | None = await self.session.call(
            lambda request: datasets.PublishDatasets(request, names, payloads, tasks, override)
        )
        if taken is not None:
            raise DatasetExists(from_canonical(taken))

    async def get_dataset(self, name: Any, default: Any = no_default, **kwargs: Any) -> Any:
        """A published value, whose futures are this client's.

        The cluster keeps what it refers to for this client from the moment in which it is looked
        up, even if it is unpublished meanwhile.

        Args:
            name: as it was published; a list: a list of values.
            default: instead of a value that is not published.

        Raises:
            KeyError: there is none, and no default.
        """
        if isinstance(name, list):  # one by one, since together they may be too large for a frame
            return [await self._get_dataset(one, default) for one in name]
        return await self._get_dataset(name, default)

    async def _get_dataset(self, name: Any, default: Any) -> Any:
        dataset = await self._look_up(to_canonical(name))
        if dataset is None:
            if default is no_default:
                raise UnknownDataset(name)
            return default
        entered = current.enter(self.face)  # whose client the value's futures are
        try:
            return load(self.session.families.guard(dataset.payload))
        finally:
            current.leave(entered)
            self._give_back(dataset)

    async def _look_up(self, name: Key) -> datasets.Published | None:
        """What is published, with wants that are to be given back.

        Whoever stops waiting for it does not stop the answer, so it is given back as it comes.
        """
        asked = asyncio.ensure_future(
            self.session.call(lambda request: datasets.GetDatasets(request, [name]))
        )
        try:
            (found,) = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(self._give_back_unseen)
            raise
        return cast(datasets.Published | None, found)

    def _give_back_unseen(self, asked: asyncio.Future[Any]) -> None:
        if not asked.cancelled() and asked.exception() is None:
            for found in asked.result():
                self._give_back(found)

    def _give_back(self, found: datasets.Published | None) -> None:
        if found is not None and found.wants and self.session.is_open:
            self.session.say(ReleaseTasks(found.wants))

    async def list_datasets(self, **kwargs: Any) -> tuple[Any, ...]:
        """Names of all that is published, in the order of their texts."""
        names: list[Key] = await self.session.call(datasets.ListDatasets)
        return tuple(sorted((from_canonical(name) for name in names), key=str))

    async def unpublish_dataset(self, name: Any, **kwargs: Any) -> None:
        """Let go of a published value; nothing happens if there is none.

        Args:
            name: as it was published, or a list of names.
        """
        names = [to_canonical(key) for key in (name if isinstance(name, list) else [name])]
        await self.session.call(lambda request: datasets.UnpublishDatasets(request, names))

    @property
    def datasets(self) -> Datasets:
        """All that is published, by name: `client.datasets["x"]`."""
        return Datasets(self.face)

    def _pickled(self, name: Any, value: Any) -> bytes:
        try:
            return self.session.families.pickled(value)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise UnpicklableValue(kind_of(value), name, why) from error

    def _tasks_of(self, value: Any) -> list[ClientTaskId]:
        """Our numbers of the results that a value refers to.

        Raises:
            CancelledError: one was cancelled.
            ForeignFuture: one is a client's of another scheduler.
        """
        records = [self.input_of(future) for future in futures_of(value, self)]
        return list(dict.fromkeys(record.number for record in records))


def _values_by_name(args: tuple[Any, ...], name: Any, kwargs: Mapping[str, Any]) -> dict[Any, Any]:
    """What is to be published, by name."""
    if name is None:
        if not args:
            return dict(kwargs)
        if len(args) > 1 or not isinstance(args[0], dict):
            raise NamelessDataset("values")
        return {**args[0], **kwargs}
    if not args:
        raise NamelessDataset("name")
    return {name: args[0] if len(args) == 1 else args, **kwargs}
