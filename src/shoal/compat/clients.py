"""The default clients of a process, as old programs look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.client.current import default_clients


class DefaultClients(Mapping[int, Any]):
    """Place → client, the newest last; what it shows changes as clients come and go."""

    def __getitem__(self, place: int) -> Any:
        return dict(enumerate(default_clients()))[place]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(default_clients())


DEFAULT_CLIENTS: Final = DefaultClients()
