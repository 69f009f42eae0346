"""Values that clients leave with the scheduler."""

from __future__ import annotations

from typing import Any

from dask.typing import no_default

from shoal.client.lifecycle import ClientBase
from shoal.protocol import metadata
from shoal.protocol.leaves import leaves_of, path_of, path_to_set, value_of
from shoal.protocol.payload import load


class Metadata(ClientBase):
    """`set_metadata` and `get_metadata`."""

    async def set_metadata(self, key: Any, value: Any) -> None:
        """Leave a value with the scheduler, for all clients, as long as that lives.

        Args:
            key: text, bytes, number or tuple; a list of those: a path into nested dicts, which are
                made as need be.
            value: anything that can be pickled.  A dict takes the place of all that was below.

        Raises:
            TypeError, ValueError: a key is none of these, or there is none.
            Exception: the value can't be pickled.
        """
        path = path_to_set(key)
        leaves = leaves_of(value)
        await self.session.call(lambda request: metadata.SetMetadata(request, path, leaves))

    async def get_metadata(self, keys: Any, default: Any = no_default) -> Any:
        """A value that was left with the scheduler.

        Args:
            keys: as of `set_metadata`, or a path as a tuple; a path that ends above values gives a
                dict of those, and [] one of everything.
            default: if there is none.

        Raises:
            KeyError: there is none, and no default.
        """
        leaves = await self._leaves_at(keys)
        if leaves is None and isinstance(keys, tuple):
            leaves = await self._leaves_at(list(keys))
        if leaves is not None:
            return value_of(leaves, load)
        if default is no_default:
            raise KeyError(keys[-1] if isinstance(keys, list) else keys)
        return default

    async def _leaves_at(self, keys: Any) -> list[metadata.Leaf] | None:
        path = path_of(keys)
        found: list[metadata.Leaf] | None = await self.session.call(
            lambda request: metadata.GetMetadata(request, path)
        )
        return found
