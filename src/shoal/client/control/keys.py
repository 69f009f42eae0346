"""Keys, as users name them."""

from __future__ import annotations

from typing import Any

from shoal.client.future import Future, futures_of
from shoal.ids import Key
from shoal.protocol.keys import to_canonical


def keys_in(futures: Any) -> list[Key]:
    """Canonical keys of futures, keys, and collections of them."""
    parts = list(futures) if isinstance(futures, (list, set, frozenset)) else [futures]
    keys: list[Key] = []
    for part in parts:
        if isinstance(part, Future):
            keys.append(to_canonical(part.key))
        elif isinstance(part, (str, bytes, int, float, tuple)):
            keys.append(to_canonical(part))
        else:
            keys += [to_canonical(future.key) for future in futures_of(part)]
    return keys
