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


def plain_keys_in(futures: Any) -> list[Key]:
    """Canonical keys that are named as such: texts, and tuples that begin with one."""
    parts = list(futures) if isinstance(futures, (list, set, frozenset)) else [futures]
    return [to_canonical(part) for part in parts if _is_plain_key(part)]


def _is_plain_key(part: Any) -> bool:
    if isinstance(part, tuple):
        return bool(part) and isinstance(part[0], str) and not futures_of(part)
    return isinstance(part, (str, bytes))
