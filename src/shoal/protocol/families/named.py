"""Only what families that were named can write and read: `Client(serializers=...)` and the like.

The family `msgpack` stands for plain values here: numbers, texts, bytes and builtin containers.
`dask` adds the types that serializers are registered for, numpy's arrays among them.  A program's
own families are asked in their place.  Whoever does not name `pickle` gets no value whose loading
runs any code but theirs: a stream that asks for more is refused before it does.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from shoal.protocol.families.errors import FamilyNotAllowed, NoneOfTheFamilies, NoSuchFamily
from shoal.protocol.families.pickling import (
    as_buffer,
    as_memory,
    by_serializer,
    restored_here,
)
from shoal.protocol.families.registry import (
    MODULES,
    dask_deserialize,
    dask_serialize,
    families,
)
from shoal.protocol.teaching import PROTOCOL, context

Collect = Callable[[pickle.PickleBuffer], Any]

_allowed: ContextVar[Sequence[str] | None] = ContextVar("families that may be read", default=None)
"""While a value is loaded that may be of these families only."""

_DEFAULT: Final = ("dask", "pickle")
_OTHERS: Final = ("cuda", "error")
"""Families that have nothing to do here: GPUs' memory travels by `dask`, and errors as such."""

_PLAIN: Final = {
    kind.__name__: kind for kind in (bool, bytearray, bytes, complex, frozenset, range, set, slice)
}
"""What streams of plain values may name."""
_PLAIN_TYPES: Final = frozenset(_PLAIN.values())
_NUMPY_CORE: Final = ("numpy.core", "numpy._core")  # of numpy 1, and of numpy 2
_NUMPY: Final = frozenset(
    (
        *[("numpy", name) for name in ("dtype", "ndarray", "matrix", "recarray", "record")],
        *[("numpy.rec", name) for name in ("recarray", "record")],
        *[(f"{core}.multiarray", n) for core in _NUMPY_CORE for n in ("_reconstruct", "scalar")],
        *[(f"{core}.numeric", "_frombuffer") for core in _NUMPY_CORE],
        ("numpy._core._internal", "_convert_to_stringdtype_kwargs"),
        ("numpy.matrixlib.defmatrix", "matrix"),
    )
)
"""What streams of numpy's arrays may name of it, by module and name."""
_MADE_OF_ARRAYS: Final = frozenset(("scipy", "sparse"))
"""Libraries whose taught types hold arrays and plain values and no more, so a stream may make one;
others come by their deserializers alone."""
_WHERE_TYPES_ARE: Final = {"numpy": "numpy.ma", "pyarrow": "pyarrow.fs", "scipy": "scipy.sparse"}
"""Library -> what brings its taught types along, if that is not the library itself."""
_PICKLING: Final = "shoal.protocol.families.pickling"
_PAYLOAD: Final = "shoal.protocol.payload"


def checked(names: Any) -> tuple[str, ...] | None:
    """Names of families as a user gave them; None for none, and for what is done anyway.

    Raises:
        TypeError: it is no list of texts.
    """
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"families are named in a list, such as ['dask'], not by {names!r}")
    found = tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise TypeError(f"families are named by texts, not {found!r}")
    return None if found == _DEFAULT else found


def dumps_named(
    value: object, names: Sequence[str], buffer_callback: Collect, buffers: list[Any]
) -> bytes | None:
    """`value` as a stream by the first of these families that can; None: that is pickle.

    `buffers`: what the callback collects in.

    Raises:
        NoSuchFamily: one of them is none, and those before it could not.
        NoneOfTheFamilies: none could.
        Exception: what a family raises.
    """
    for name in names:
        if name == "pickle":
            return None
        if name in _OTHERS:
            continue
        if name in ("dask", "msgpack"):
            found = _dumps_checked(value, name == "dask", buffer_callback, buffers)
        else:
            found = _dumps_by_family(value, name, buffer_callback)
        if found is not None:
            return found
    raise NoneOfTheFamilies(f"{type(value).__module__}.{type(value).__qualname__}", list(names))


class _Refused(Exception):
    """A value has a part that is not of the family."""


class _CheckedPickler(pickle.Pickler):
    """Writes plain values, and, if it may, those of types with a serializer."""

    def __init__(self, stream: io.BytesIO, takes_types: bool, buffer_callback: Collect) -> None:
        super().__init__(stream, PROTOCOL, buffer_callback=buffer_callback)
        self._takes_types = takes_types

    def reducer_override(self, value: Any) -> Any:
        """How to pickle what is no builtin; pickle calls this."""
        kind = type(value)
        if kind in _PLAIN_TYPES or (isinstance(value, type) and value in _PLAIN_TYPES):
            return NotImplemented
        if not self._takes_types:
            raise _Refused
        if isinstance(value, type):
            if dask_deserialize.find(value) is None:
                raise _Refused
            return NotImplemented
        if getattr(value, "__module__", "") == _PICKLING:  # the function that restores
            return NotImplemented
        serialize = dask_serialize.find(kind)
        reduced = NotImplemented if serialize is None else by_serializer(value, serialize)
        if reduced is NotImplemented:
            raise _Refused
        return reduced


def _dumps_checked(
    value: object, takes_types: bool, buffer_callback: Collect, buffers: list[Any]
) -> bytes | None:
    stream = io.BytesIO()
    try:
        _CheckedPickler(stream, takes_types, buffer_callback).dump(value)
    except _Refused:
        buffers.clear()
        return None
    return stream.getvalue()


def _dumps_by_family(value: object, name: str, buffer_callback: Collect) -> bytes | None:
    family = families.get(name)
    if family is None:
        raise NoSuchFamily(name, list(families))
    try:
        answer = (
            family.dumps(value, context=context.get())
            if family.takes_context
            else family.dumps(value)
        )
    except NotImplementedError:
        return None
    header, frames = answer
    return pickle.dumps(_Named(name, header, frames), PROTOCOL, buffer_callback=buffer_callback)


class _Named:
    """Header and frames of a family."""

    __slots__ = ("frames", "header", "name")

    def __init__(self, name: str, header: dict[str, Any], frames: Sequence[Any]) -> None:
        self.name, self.header, self.frames = name, header, frames

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, (self.name, self.header, *[as_buffer(frame) for frame in self.frames])


def _restore(name: str, header: dict[str, Any], *frames: Any) -> Any:
    """What a value that went through a family is loaded as."""
    family = families.get(name)
    if family is None:
        raise NoSuchFamily(name, list(families))
    return family.loads(header, [as_memory(frame) for frame in frames])


def load_named(stream: Any, buffers: Iterable[Any], allowed: Sequence[str]) -> object:
    """The value of a stream, if all of it is of the families that are allowed.

    Raises:
        FamilyNotAllowed: some of it is not; no code of it was run.
        Exception: what a family raises.
    """
    if "pickle" in allowed:
        return pickle.loads(stream, buffers=buffers)
    token = _allowed.set(allowed)
    try:
        return _CheckedUnpickler(stream, buffers, allowed).load()
    finally:
        _allowed.reset(token)


def load_part(stream: Any, buffers: Iterable[Any] = ()) -> object:
    """What a deserializer finds pickled in its header and frames; of the families that the whole
    value may be of.

    Raises:
        FamilyNotAllowed: some of it is of another; no code of it was run.
        BaseException: whatever its own code raises, if all may be read.
    """
    allowed = _allowed.get()
    if allowed is None:
        return pickle.loads(stream, buffers=buffers)
    return load_named(stream, buffers, allowed)


class _CheckedUnpickler(pickle.Unpickler):
    """Finds nothing but what the families that are allowed need."""

    def __init__(self, stream: Any, buffers: Iterable[Any], allowed: Sequence[str]) -> None:
        super().__init__(io.BytesIO(stream), buffers=buffers)
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        """What a stream names; pickle calls this."""
        if module == "builtins" and name in _PLAIN:
            return _PLAIN[name]
        if (module, name) == (_PAYLOAD, "_load_nested"):
            return self._load_nested
        if (module, name) == (__name__, _restore.__name__):
            return self._restore_allowed
        if "dask" in self._allowed:
            if (module, name) == (_PICKLING, "_restore"):
                return _restore_here
            if (module, name) in _NUMPY:
                return super().find_class(module, name)
            found = _type_there(module, name)
            if found is not None and dask_deserialize.find(found) is not None:
                library = module.partition(".")[0]
                return found if library in _MADE_OF_ARRAYS else _Kind(found)
        raise FamilyNotAllowed("pickle", list(self._allowed))

    def _load_nested(self, stream: Any, *buffers: Any) -> object:
        return load_named(stream, buffers, self._allowed)

    def _restore_allowed(self, name: str, header: dict[str, Any], *frames: Any) -> Any:
        if name not in self._allowed:
            raise FamilyNotAllowed(name, list(self._allowed))
        return _restore(name, header, *frames)


def _type_there(module: str, name: str) -> type | None:
    """A type that a stream names, without running code that the stream chooses: nothing is imported
    but libraries whose types are taught, and nothing asked of what is looked through."""
    library = module.partition(".")[0]
    if module not in sys.modules and library in MODULES:
        try:
            import_module(_WHERE_TYPES_ARE.get(library, library))
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        try:
            found = vars(found).get(part)
        except TypeError:
            return None
    return found if isinstance(found, type) else None


class _Kind:
    """A type that a stream may name, and not call."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind


def _restore_here(kind: Any, brought: object, header: dict[str, Any], *frames: Any) -> Any:
    return restored_here(kind.kind if isinstance(kind, _Kind) else kind, brought, header, *frames)
