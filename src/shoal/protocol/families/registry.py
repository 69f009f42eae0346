"""Who makes bytes of values of which type, and values of bytes: the tables that programs add to.

Two things can be taught.  For a *type*, a serializer (value → header, frames) and a deserializer
(header, frames → value), in the dispatches `dask_serialize` and `dask_deserialize`: shoal then
sends values of that type so, wherever they are, alone or inside others.  And a *family*: a named
pair of functions that is asked about every value by those who name it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, NamedTuple, TypeAlias

import dask.utils

from shoal.protocol.families.errors import NamedByText

Serializer: TypeAlias = Callable[..., tuple[dict[str, Any], list[Any]]]
"""Value → header, frames; it may take `context=` too, and raise NotImplementedError."""
Deserializer: TypeAlias = Callable[[dict[str, Any], list[Any]], Any]

MODULES: Final = {
    "builtins": "shoal.protocol.families.memory",
    "array": "shoal.protocol.families.memory",
    "numpy": "shoal.protocol.families.arrays",
    "pyarrow": "shoal.protocol.families.arrow",
    "torch": "shoal.protocol.families.tensors",
    "torchvision": "shoal.protocol.families.tensors",
    "h5py": "shoal.protocol.families.hdf5",
    "netCDF4": "shoal.protocol.families.netcdf",
    "scipy": "shoal.protocol.families.sparse",
    "sparse": "shoal.protocol.families.sparse",
}
"""Library → the module here that teaches its types.  Not here, since plain pickle does as well:
pandas (its columns travel beside the stream), keras (pickles as its own archive), numba and cupy
(by way of the host's memory; RAPIDS registers its own)."""


_Dispatch: Any = dask.utils.Dispatch  # it ships annotations for half of its functions


class Registry(_Dispatch):  # type: ignore[misc]
    """A dispatch by type; what is registered from outside changes how this process pickles."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        for library, module in MODULES.items():
            super().register_lazy(library, lambda module=module: teach_builtin(module))

    def register(self, type: Any, func: Any = None) -> Any:
        """Register `func` for values of `type`, or of each type in a tuple; also as a decorator."""
        _on_taught()
        return super().register(type, func)

    def register_lazy(self, toplevel: str, func: Any = None) -> Any:
        """Call `func`, which registers, when a value of a type of that library turns up first."""
        _on_taught()
        return super().register_lazy(toplevel, func)

    def find(self, kind: type) -> Callable[..., Any] | None:
        """What is registered for `kind` or a class that it derives from.

        Cost: 0.1 us if there is something, 1 us and more if there is not.
        """
        try:
            found: Callable[..., Any] = self.dispatch(kind)
        except TypeError:
            return None
        return found

    def directly(self, kind: type) -> Callable[..., Any] | None:
        """What is registered for `kind` itself, or was found for it before."""
        found: Callable[..., Any] | None = self._lookup.get(kind)
        return found

    def learn(self, kind: type, func: Callable[..., Any]) -> None:
        """Register what belongs to the house, which by itself changes nothing."""
        self._lookup.setdefault(kind, func)


dask_serialize: Final = Registry("dask_serialize")
dask_deserialize: Final = Registry("dask_deserialize")

_when: dict[Callable[..., Any], Callable[[Any], bool]] = {}
"""Builtin serializer → whether pickle shall use it for a value."""
_NEVER: Final = frozenset((type, FunctionType, BuiltinFunctionType, MethodType))
"""Types of classes and functions: they pickle as such, even if `object` is taught."""
plain: Final[set[type]] = set(_NEVER)
"""Types that were looked for, and that nothing is registered for."""
_builtin: dict[type, Serializer] = {}
"""Types that were looked for, and that nobody but the house has registered."""
TYPES_MAX: Final = 4_000
"""Of either sort; then all are looked for again, since programs that make types drop them, too."""


at_taught: Final[list[Callable[[], None]]] = []
"""Called whenever a program has registered something."""


def _on_taught() -> None:
    _look_again()
    for hear in at_taught:
        hear()


def _look_again() -> None:
    """Forget which types were looked for."""
    plain.clear()
    plain.update(_NEVER)
    _builtin.clear()


def teach_builtin(module: str) -> None:
    """Have a module, one of `MODULES`, teach the types of its library."""
    import_module(module).teach()


def always(value: object) -> bool:
    """For types whose values pickle can't do, or copies."""
    return True


def never(value: object) -> bool:
    """For types that pickle does as well; they are here for programs that ask by themselves."""
    return False


def learn(
    kind: type,
    serialize: Serializer,
    deserialize: Deserializer,
    *,
    when: Callable[[Any], bool] = never,
) -> None:
    """Teach a type of a library; a program's own registration, if there is one, stays.

    `when`: which of its values shall travel this way; others are pickled.
    """
    dask_serialize.learn(kind, serialize)
    dask_deserialize.learn(kind, deserialize)
    _when[serialize] = when


def serializer_of(value: object) -> Serializer | None:
    """How `value` shall travel: what is registered for its type; None: as it pickles by itself.

    Cost: 0.1 us for types that were seen before.
    """
    kind = type(value)
    if kind in plain:
        return None
    serialize = _builtin.get(kind) or dask_serialize.find(kind)
    if serialize is None:
        if len(plain) >= TYPES_MAX:
            _look_again()
        plain.add(kind)
        return None
    when = _when.get(serialize)
    if when is None:
        return serialize
    if len(_builtin) >= TYPES_MAX:
        _look_again()
    _builtin[kind] = serialize
    return serialize if when(value) else None


def taught(kind: type) -> tuple[Serializer | None, Deserializer | None]:
    """What a program registered for exactly this type."""
    serialize = dask_serialize.directly(kind)
    if serialize is None or serialize in _when:
        return None, None
    return serialize, dask_deserialize.directly(kind)


def register_serialization(cls: Any, serialize: Serializer, deserialize: Deserializer) -> None:
    """Have values of `cls` and of its subclasses travel by these two functions.

    Args:
        serialize: value → (header, frames): a dict that pickles, and a list of bytes-like objects,
            which travel as they lie in memory.
        deserialize: (header, frames) → value.  It is taken along to processes that have not
            registered one themselves, if it can be pickled.

    Raises:
        NamedByText: `cls` is a text.
    """
    if isinstance(cls, str):
        raise NamedByText(cls)
    dask_serialize.register(cls, serialize)
    dask_deserialize.register(cls, deserialize)


def register_serialization_lazy(toplevel: str, func: Any) -> None:
    """Raises NamedByText: that is `dask_serialize.register_lazy` now."""
    raise NamedByText(toplevel)


class Family(NamedTuple):
    """One named way to make bytes of values."""

    dumps: Serializer
    loads: Deserializer
    takes_context: bool


families: Final[dict[str, Family]] = {}
"""By name.  `compat.serialising` adds dask, pickle, msgpack and error."""


def register_serialization_family(name: str, dumps: Serializer, loads: Deserializer) -> None:
    """Add a family, for programs that name it: `serialize(x, serializers=[name, "pickle"])`.

    Args:
        dumps: value → (header, frames), or NotImplementedError: the next family is tried.  If it
            has a parameter `context`, it is told about the connection, where there is one.
        loads: (header, frames) → value.
    """
    families[name] = Family(dumps, loads, takes_context(dumps))


def takes_context(dumps: Callable[..., Any]) -> bool:
    """Whether a serializer wants to know about the connection."""
    try:
        return "context" in inspect.signature(dumps).parameters
    except (TypeError, ValueError):  # a builtin that doesn't tell
        return False


cuda_serialize: Final = _Dispatch("cuda_serialize")
cuda_deserialize: Final = _Dispatch("cuda_deserialize")
"""What libraries for GPUs register; asked by those who name the family `cuda`."""
