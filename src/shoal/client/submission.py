"""From a user's call to what a task is made of: a function, arguments, inputs and a key.

This is the hot path of `submit` and `map`, so the common cases (functions of modules, arguments
that are numbers, texts or futures) go without a scan of containers and without dask's tokens.
"""

from __future__ import annotations

import copy
import marshal
import pickle
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple
from uuid import uuid4

from dask._task_spec import TaskRef
from dask.tokenize import tokenize
from dask.utils import funcname

from shoal.client.errors import UnpicklableTask
from shoal.client.future import Future, tokenized_by_key
from shoal.client.standins import StandIn
from shoal.protocol.payload import InputRef, dump_call, dump_function

SCALARS: Final = frozenset((int, float, bool, str, bytes, type(None), complex))
"""Types whose values have one pickle each, so its hash may stand for them."""
CONTAINERS: Final = frozenset((list, tuple, dict, set, frozenset))
"""Types in which futures are found, beside named tuples, data classes and other dictionaries; in
others they travel as futures."""
REMEMBERED_MAX: Final = 256
"""Functions whose pickles are kept."""

_PROTOCOL: Final = 5


class Function(NamedTuple):
    """A function ready to be sent."""

    digest: bytes
    payload: bytes
    name: str  # first part of the keys of its tasks

    @property
    def definition(self) -> tuple[bytes, bytes]:
        """What the machine takes."""
        return self.digest, self.payload


class Functions:
    """Pickles functions, and remembers those of which no later call could differ.

    A function of a module is pickled by name, which is cheap.  One that is pickled by value takes
    20 us, so it is remembered as long as it refers to nothing but its own code and builtins.
    """

    def __init__(self) -> None:
        self._remembered: dict[int, tuple[weakref.ref[Any], CodeType, Function]] = {}

    def prepare(self, function: Callable[..., Any]) -> Function:
        """Pickle a function.  Cost: 2 us for one of a module.

        Raises:
            UnpicklableTask: it can't be.
        """
        known = self._remembered.get(id(function))
        if known is not None:
            reference, code, prepared = known
            if reference() is function and function.__code__ is code and _stands_alone(function):
                return prepared
        name = funcname(function)
        try:
            payload = dump_function(function)
        except Exception as error:
            raise UnpicklableTask(name, f"{type(error).__name__}: {error}") from error
        prepared = Function(blake2b(payload, digest_size=16).digest(), payload, name)
        if len(payload) > 100 and _stands_alone(function):
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            remembered = weakref.ref(function), function.__code__, prepared
            self._remembered[id(function)] = remembered
        return prepared


def _stands_alone(function: Any) -> bool:
    """Whether a function pickled by value is the same whenever it is pickled."""
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    if (
        function.__closure__
        or function.__defaults__
        or function.__kwdefaults__
        or function.__dict__
        or any(type(constant) is CodeType for constant in code.co_consts)
    ):
        return False
    names = function.__globals__
    return not any(name in names for name in code.co_names)


def key_of_call(
    function: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    pure: bool,
) -> str:
    """The key of a call in the user's form.

    A pure call has the same key whenever it is made; futures count by their keys.

    Cost: 1 us for scalars and futures, 10 us and more for what dask has to look into.
    """
    if not pure:
        return f"{function.name}-{uuid4().hex}"
    simple: list[Any] = []
    futures: list[Any] = []
    for part in (*args, *kwargs.values()) if kwargs else args:
        kind = type(part)
        if kind in SCALARS:
            simple.append(part)
        elif kind is Future and type(part.key) is str:
            simple.append(None)
            futures.append((len(simple), part.key))
        else:
            with tokenized_by_key():
                token = tokenize(function.digest, args, kwargs)
            return f"{function.name}-{token}"
    # Version 2 of marshal has no references, so equal values have equal bytes.
    described = marshal.dumps((simple, futures, tuple(kwargs)), 2)
    return f"{function.name}-{blake2b(function.digest + described, digest_size=16).hexdigest()}"


def key_of_item(function: Function, item: Any) -> str:
    """As `key_of_call` for one scalar argument.  Cost: 0.8 us."""
    described = marshal.dumps(([item], [], ()), 2)
    return f"{function.name}-{blake2b(function.digest + described, digest_size=16).hexdigest()}"


def dump_item(item: Any) -> bytes:
    """The pickled arguments of a call with one scalar.  Cost: 0.3 us."""
    return pickle.dumps(((item,), {}), _PROTOCOL)


def dump_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], key: object, face: Any = None
) -> tuple[bytes, list[Future]]:
    """Pickle the arguments of a call, and list the futures that the worker puts into them.

    Args:
        face: the client, for what stands for a result and is no future.

    Raises:
        UnpicklableTask: they can't be.
    """
    args, kwargs, futures = replace_futures(args, kwargs, face)
    try:
        return dump_call(args, kwargs), futures
    except Exception as error:
        raise UnpicklableTask(key, f"{type(error).__name__}: {error}") from error


def replace_futures(
    args: tuple[Any, ...], kwargs: dict[str, Any], face: Any = None
) -> tuple[tuple[Any, ...], dict[str, Any], list[Future]]:
    """Put an InputRef in place of each future, in containers of any depth.

    Containers are the builtin ones, named tuples, dictionaries of any class, and the fields of data
    classes.

    Returns:
        The arguments, those without futures as they are, and the futures in the order of the
        references, each once by key.

    Cost: O(items in containers), 30 ns each and 0.3 us for what is none; no recursion.
    """
    if not needs_scan(args) and not (kwargs and needs_scan(kwargs.values())):
        return args, kwargs, []
    references: dict[Any, InputRef] = {}
    futures: list[Future] = []

    def reference(future: Future) -> InputRef:
        found = references.get(future.key)
        if found is None:
            found = references[future.key] = InputRef(len(futures))
            futures.append(future)
        return found

    root = [args, kwargs]
    changed = _replaced(root, reference, face)
    return changed[0], changed[1], futures


def needs_scan(parts: Iterable[Any]) -> bool:
    """Whether any of these is a future, or a container that may hold one."""
    for part in parts:
        kind = type(part)
        if kind in SCALARS:
            continue
        if kind in CONTAINERS:
            if part:
                return True
        elif isinstance(part, (TaskRef, tuple, dict)) or _fields_of(kind):
            return True
    return False


def _fields_of(kind: type) -> Mapping[str, object]:
    """Of a data class; nothing of any other, whose metaclass is not asked."""
    try:
        fields: Mapping[str, object] = type.__getattribute__(kind, "__dataclass_fields__")
    except AttributeError:
        return {}
    return fields


def _parts_of(item: Any, kind: type) -> list[Any]:
    """What may be a future, or hold one; [] of what is no container."""
    if isinstance(item, dict):
        return list(dict.values(item))
    if kind in CONTAINERS or (isinstance(item, tuple) and hasattr(item, "_fields")):
        return list(item)
    return [getattr(item, name, None) for name in _fields_of(kind)]


def _replaced(root: list[Any], reference: Callable[[Future], InputRef], face: Any) -> list[Any]:
    """Copy of `root` with futures replaced; containers without any are kept as they are.

    Walks with a list of its own instead of recursion: each frame is a container, what is left of
    it, and what it was replaced by so far.
    """
    done: list[Any] = []
    stack: list[tuple[Any, list[Any], list[Any], bool]] = []
    container: Any = root
    rest = list(reversed(root))
    built: list[Any] = []
    changed = False
    on_path = {id(root)}
    plain = set(SCALARS)  # types of what is no container
    while True:
        while rest:
            item = rest.pop()
            kind = type(item)
            if kind in plain:
                built.append(item)
            elif isinstance(item, Future):
                built.append(reference(item))
                changed = True
            elif isinstance(item, StandIn):
                built.append(reference(item.future_for(face)))
                changed = True
            elif id(item) not in on_path and (parts := _parts_of(item, kind)):
                stack.append((container, rest, built, changed))
                container, built, changed = item, [], False
                on_path.add(id(item))
                parts.reverse()
                rest = parts
            else:
                if not isinstance(item, (*CONTAINERS, dict, tuple)) and not _fields_of(kind):
                    plain.add(kind)
                built.append(item)
        result = _rebuilt(container, built) if changed else container
        if not stack:
            done = result
            break
        on_path.discard(id(container))
        was_changed = changed
        container, rest, built, changed = stack.pop()
        built.append(result)
        changed = changed or was_changed
    return done


def _rebuilt(container: Any, parts: list[Any]) -> Any:
    kind = type(container)
    if kind is dict:
        return dict(zip(container, parts, strict=True))
    if kind is list:
        return parts
    if kind in CONTAINERS:
        return kind(parts)
    if isinstance(container, tuple):
        named = tuple.__new__(kind, parts)  # whatever its own `__new__` takes
        if hasattr(container, "__dict__"):
            named.__dict__.update(vars(container))
        return named
    copied = copy.copy(container)
    if isinstance(container, dict):
        dict.update(copied, zip(dict.keys(container), parts, strict=True))
        return copied
    for name, before, part in zip(_fields_of(kind), _parts_of(container, kind), parts, strict=True):
        if part is not before:
            object.__setattr__(copied, name, part)  # it may be frozen
    return copied
