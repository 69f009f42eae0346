"""Pickled values that can be read without running anybody's code.

A pickle of builtin containers, numbers and texts names no class and no function; whatever names
one stays closed.  So a scheduler may look at what it keeps for others.

The reader here knows the opcodes of such values and no others.  That of the library is not safe
enough: it calls what is in the registry of extensions, reserves gigabytes for an index of four
bytes, and ends the process as it hashes a tuple that is nested a million times.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

_PROTOCOL: Final = 5

DEPTH_MAX: Final = 200
"""Tuples within tuples: to hash one takes stack for each."""

SHARED_MAX: Final = 16
"""Containers that are found in a value once more: each may double what there is to go through."""


class Opaque:
    """Stands for a value that only its owners can open."""

    __slots__ = ("payload",)

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __repr__(self) -> str:
        return f"<Opaque value of {len(self.payload)} B>"


def load_plain(payload: bytes) -> Any:
    """The value, or an Opaque if it is not plain.  Cost: 5 us for a small one; O(bytes)."""
    try:
        return _Reader(payload).read()
    except Exception:
        return Opaque(payload)


def dump_plain(value: Any) -> bytes:
    """Pickle a value of builtin types.  Cost: 1 us for a small one."""
    return pickle.dumps(value, _PROTOCOL)


class _Reader:
    """A stack of values; whatever is wrong with a pickle raises some exception."""

    __slots__ = ("at", "depths", "marks", "memo", "nshared", "payload", "stack")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # places in the stack
        self.memo: dict[int, Any] = {}
        self.depths: dict[int, int] = {}  # by the `id` of each tuple
        self.nshared = 0

    def read(self) -> Any:
        """The value."""
        payload, acts, stop = self.payload, _READ, pickle.STOP[0]
        while (code := payload[self.at]) != stop:
            self.at += 1
            acts[code](self)
        (value,) = self.stack
        return value

    def number(self, form: Struct) -> Any:
        """The next number."""
        (value,) = form.unpack_from(self.payload, self.at)
        self.at += form.size
        return value

    def take(self, length: Struct) -> bytes:
        """The next bytes, after their number."""
        nbytes = self.number(length)
        start, self.at = self.at, self.at + nbytes
        if self.at > len(self.payload):
            raise EOFError
        return self.payload[start : self.at]

    def marked(self) -> list[Any]:
        """What is above the latest mark, taken from the stack."""
        return self.top(len(self.stack) - self.marks.pop())

    def top(self, count: int) -> list[Any]:
        """The latest values, taken from the stack."""
        start = len(self.stack) - count
        if count < 0 or start < 0:
            raise IndexError
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def container(self, kind: type) -> Any:
        """The container on top of the stack."""
        if type(self.stack[-1]) is not kind:
            raise TypeError
        return self.stack[-1]


_1: Final = Struct("<B")
_2: Final = Struct("<H")
_4: Final = Struct("<I")
_8: Final = Struct("<Q")
_SIGNED: Final = Struct("<i")
_FLOAT: Final = Struct(">d")
_LEAVES: Final = frozenset((type(None), bool, int, float, str, bytes))


def _pushes(make: Callable[[_Reader], Any]) -> Callable[[_Reader], None]:
    return lambda reader: reader.stack.append(make(reader))


def _text(reader: _Reader, length: Struct) -> str:
    return str(reader.take(length), "utf-8", "surrogatepass")


def _short_text(reader: _Reader) -> None:
    """As `_text`, for nearly all of them."""
    payload, start = reader.payload, reader.at + 1
    end = reader.at = start + payload[start - 1]
    if end > len(payload):
        raise EOFError
    reader.stack.append(str(payload[start:end], "utf-8", "surrogatepass"))


def _short_number(reader: _Reader) -> None:
    reader.stack.append(reader.payload[reader.at])
    reader.at += 1


def _whole(reader: _Reader, length: Struct) -> int:
    return int.from_bytes(reader.take(length), "little", signed=True)


def _tuple(reader: _Reader, values: list[Any]) -> tuple[Any, ...]:
    made, depth = tuple(values), 1
    for value in values:
        if type(value) not in _LEAVES:
            depth = max(depth, 1 + reader.depths.get(id(value), 1))
    if depth > DEPTH_MAX:
        raise ValueError
    reader.depths[id(made)] = depth  # anew where another was, which has gone
    return made


def _append(reader: _Reader, values: list[Any]) -> None:
    reader.container(list).extend(values)


def _set_items(reader: _Reader, values: list[Any]) -> None:
    reader.container(dict).update(zip(values[::2], values[1::2], strict=True))


def _add(reader: _Reader, values: list[Any]) -> None:
    reader.container(set).update(values)


def _memoize(reader: _Reader) -> None:
    reader.memo[len(reader.memo)] = reader.stack[-1]


def _put(reader: _Reader, place: int) -> None:
    reader.memo[place] = reader.stack[-1]


def _get(reader: _Reader, place: int) -> Any:
    value = reader.memo[place]
    if type(value) not in _LEAVES and (type(value) is not tuple or reader.depths[id(value)] > 1):
        reader.nshared += 1
        if reader.nshared > SHARED_MAX:
            raise ValueError
    return value


_READ: Final[dict[int, Callable[[_Reader], Any]]] = {
    code[0]: act
    for code, act in (
        (pickle.PROTO, lambda reader: reader.number(_1)),
        (pickle.FRAME, lambda reader: reader.number(_8)),
        (pickle.NONE, _pushes(lambda reader: None)),
        (pickle.NEWTRUE, _pushes(lambda reader: True)),
        (pickle.NEWFALSE, _pushes(lambda reader: False)),
        (pickle.BININT1, _short_number),
        (pickle.BININT2, _pushes(lambda reader: reader.number(_2))),
        (pickle.BININT, _pushes(lambda reader: reader.number(_SIGNED))),
        (pickle.LONG1, _pushes(lambda reader: _whole(reader, _1))),
        (pickle.LONG4, _pushes(lambda reader: _whole(reader, _4))),
        (pickle.BINFLOAT, _pushes(lambda reader: reader.number(_FLOAT))),
        (pickle.SHORT_BINUNICODE, _short_text),
        (pickle.BINUNICODE, _pushes(lambda reader: _text(reader, _4))),
        (pickle.BINUNICODE8, _pushes(lambda reader: _text(reader, _8))),
        (pickle.SHORT_BINBYTES, _pushes(lambda reader: reader.take(_1))),
        (pickle.BINBYTES, _pushes(lambda reader: reader.take(_4))),
        (pickle.BINBYTES8, _pushes(lambda reader: reader.take(_8))),
        (pickle.BYTEARRAY8, _pushes(lambda reader: bytearray(reader.take(_8)))),
        (pickle.EMPTY_LIST, _pushes(lambda reader: [])),
        (pickle.EMPTY_DICT, _pushes(lambda reader: {})),
        (pickle.EMPTY_SET, _pushes(lambda reader: set())),
        (pickle.EMPTY_TUPLE, _pushes(lambda reader: _tuple(reader, []))),
        (pickle.TUPLE1, _pushes(lambda reader: _tuple(reader, reader.top(1)))),
        (pickle.TUPLE2, _pushes(lambda reader: _tuple(reader, reader.top(2)))),
        (pickle.TUPLE3, _pushes(lambda reader: _tuple(reader, reader.top(3)))),
        (pickle.TUPLE, _pushes(lambda reader: _tuple(reader, reader.marked()))),
        (pickle.FROZENSET, _pushes(lambda reader: frozenset(reader.marked()))),
        (pickle.MARK, lambda reader: reader.marks.append(len(reader.stack))),
        (pickle.POP, lambda reader: reader.top(1)),
        (pickle.POP_MARK, lambda reader: reader.marked()),
        (pickle.APPEND, lambda reader: _append(reader, reader.top(1))),
        (pickle.APPENDS, lambda reader: _append(reader, reader.marked())),
        (pickle.SETITEM, lambda reader: _set_items(reader, reader.top(2))),
        (pickle.SETITEMS, lambda reader: _set_items(reader, reader.marked())),
        (pickle.ADDITEMS, lambda reader: _add(reader, reader.marked())),
        (pickle.MEMOIZE, _memoize),
        (pickle.BINPUT, lambda reader: _put(reader, reader.number(_1))),
        (pickle.LONG_BINPUT, lambda reader: _put(reader, reader.number(_4))),
        (pickle.BINGET, _pushes(lambda reader: _get(reader, reader.number(_1)))),
        (pickle.LONG_BINGET, _pushes(lambda reader: _get(reader, reader.number(_4)))),
    )
}
"""Opcode → what it does."""
