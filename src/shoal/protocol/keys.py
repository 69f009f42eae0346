"""One canonical form of a key: a `str` on the wire and in the machines.

Dask's keys are strings, bytes, numbers and nested tuples of them.  A string stands for itself; any
other key becomes `MARK` and its literal, so two keys that compare equal have one form, and two that
don't, two.  The user's form exists at the edges only.
"""

import ast
from math import isfinite
from typing import Final

from shoal.ids import Key

MARK: Final = "\x00"
"""Begins the canonical form of every key that isn't a plain string."""

_EXACT: Final = (str, int, bytes)


def to_canonical(key: object) -> Key:
    """The canonical form of a user's key.

    Raises:
        TypeError: the key, or a part of it, is no str, bytes, int, float or tuple of those.
        ValueError: it is empty, or has half a surrogate pair.

    Cost: 0.1 us for a string, about 1 us for a tuple of three.
    """
    if type(key) is str and not key.startswith(MARK):
        if not key.isascii():
            _require_characters(key)
        elif not key:
            raise ValueError("key='' can't name a task: give a text of one character or more")
        return Key(key)
    if type(key) is tuple and all(type(part) in _EXACT for part in key):
        literal = repr(key)
        if "\\ud" not in literal:  # as half a surrogate pair is written
            return Key(MARK + literal)  # most tuples are like this
    return Key(MARK + _literal(key))


def from_canonical(key: Key) -> object:
    """The user's form of a canonical key; the text of one that is none, as a peer may send it.

    Cost: 0.1 us for a string, 10 us for a tuple.
    """
    if not key.startswith(MARK):
        return key
    try:
        return ast.literal_eval(key[len(MARK) :])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return to_text(key)


def to_text(key: Key) -> str:
    """A key as people read it, in messages and logs."""
    return key[len(MARK) :] if key.startswith(MARK) else key


def _literal(key: object) -> str:
    """The Python literal of a key in plain types, however deep its tuples are nested."""
    pieces: list[str] = []
    stack: list[tuple[bool, object]] = [(False, key)]  # (is it a piece of text already?, part)
    while stack:
        is_text, part = stack.pop()
        if is_text:
            pieces.append(str(part))
        elif isinstance(part, tuple):
            stack.append((True, ",)" if len(part) == 1 else ")"))
            for index in range(len(part) - 1, -1, -1):
                stack.append((False, part[index]))
                if index:
                    stack.append((True, ", "))
            pieces.append("(")
        else:
            pieces.append(repr(_plain(part)))
    return "".join(pieces)


def _require_characters(text: str) -> None:
    """Raise ValueError if the text can't travel."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{text!r} can't be (part of) a key: it has half a surrogate pair, which is no "
            "character and can't be sent. Names of files may have one: use os.fsencode(name), "
            "which gives bytes, or name.encode('utf-8', 'replace').decode()."
        ) from None


def _plain(part: object) -> str | bytes | int | float:
    """`part` in a plain type, equal parts alike: `True`, `1` and `1.0` are one and the same."""
    if isinstance(part, str):
        _require_characters(part)
        return str(part)
    if isinstance(part, bytes):
        return bytes(part)
    if isinstance(part, int):  # bool and enumerations too
        return int(part)
    if isinstance(part, float) and isfinite(part):
        return int(part) if part.is_integer() else float(part)
    index = getattr(part, "__index__", None)  # a numpy integer
    if index is not None:
        return int(index())
    raise TypeError(
        f"{part!r} of type {type(part).__name__} can't be (part of) a key: "
        "use str, bytes, int, finite float, or tuples of them"
    )
