"""Nested dicts taken apart into their leaves, each pickled by itself, and put together again.

So that whoever keeps them can go along a path of keys without opening a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.errors import MetadataWithoutKey
from shoal.ids import Key
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.metadata import EMPTY, Leaf
from shoal.protocol.payload import dump_function as dump


def path_of(keys: Any) -> list[Key]:
    """A path of keys: of a list its items, else the one key.

    Raises:
        TypeError, ValueError: one can't be a key.
    """
    return [to_canonical(key) for key in (keys if isinstance(keys, list) else [keys])]


def path_to_set(keys: Any) -> list[Key]:
    """As `path_of`, of keys at whose end a value is to be put.

    Raises:
        TypeError, ValueError: one can't be a key, or there is none.
    """
    path = path_of(keys)
    if not path:
        raise MetadataWithoutKey
    return path


def leaves_of(value: Any) -> list[Leaf]:
    """The values inside nested dicts, with the keys that lead to each.

    A dict with keys that are no text, bytes, number or tuple is a value.

    Raises:
        Exception: a value can't be pickled.
    """
    leaves: list[Leaf] = []
    stack: list[tuple[list[Key], Any]] = [([], value)]
    while stack:
        path, part = stack.pop()
        keys = _keys_of(part)
        if keys is None:
            leaves.append((path, dump(part)))
        elif not keys:
            leaves.append((path, EMPTY))
        else:
            stack += [([*path, key], part[name]) for key, name in reversed(keys)]
    return leaves


def value_of(leaves: list[Leaf], load: Callable[[bytes], Any]) -> Any:
    """What was taken apart into these leaves; `load` reads each."""
    root: dict[Any, Any] = {}
    for path, payload in leaves:
        value = {} if payload == EMPTY else load(payload)
        if not path:
            return value
        node = root
        for key in path[:-1]:
            node = node.setdefault(from_canonical(key), {})
        node[from_canonical(path[-1])] = value
    return root


def _keys_of(part: Any) -> list[tuple[Key, Any]] | None:
    """The keys of a dict, canonical and as they are; None if it can't be taken apart."""
    if type(part) is not dict:
        return None
    try:
        return [(to_canonical(name), name) for name in part]
    except (TypeError, ValueError):
        return None
