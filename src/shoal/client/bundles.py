"""Neighbouring tasks of a graph pickled together, with the inputs of each in order.

What is written is a list of (task or chain of tasks, keys of its inputs).  Functions and classes
that only exist in the user's program are pickled by value, once for a graph; cloudpickle does that,
and is not asked about anything else, since it looks at every single object in Python.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, TypeAlias

from dask._task_spec import Dict, List, Task, Tuple, _identity_cast

from shoal.client.errors import UnpicklableTask
from shoal.client.future import pickled_as_references
from shoal.protocol.bundled import SHARED_BYTES_MAX, Call, load_shared, make_task
from shoal.protocol.payload import dump_function
from shoal.protocol.teaching import pickling
from shoal.protocol.ways import dumps_by_value, registered_way

Item: TypeAlias = tuple[Any, tuple[Any, ...]]

_PROTOCOL: Final = 5
_MAIN: Final = b"__main__"


class BundleWriter:
    """Pickles the bundles of one graph, and learns from the first how the others need it."""

    def __init__(self) -> None:
        self._by_value = False  # functions of `__main__` and the like
        self._shared: dict[int, tuple[object, bytes]] = {}  # by id: what was pickled by value

    def write(self, items: list[Item], keys: Sequence[Any]) -> bytes:
        """One bundle.  Cost: 2 us per task, 3 us if functions go by value.

        Args:
            keys: of the items.

        Raises:
            UnpicklableTask: names the first task that can't be pickled.
        """
        with pickled_as_references():
            try:
                return self._write(items)
            except Exception as error:
                failure = error
            try:
                for place, item in enumerate(items):  # to name the one that can't be pickled
                    try:
                        self._write([item])
                    except Exception as error:
                        why = f"{type(error).__name__}: {error}"
                        raise UnpicklableTask(keys[place], why) from error
                why = f"{type(failure).__name__}: {failure}"
                raise UnpicklableTask(keys[0], why) from failure
            finally:
                del failure  # it holds this frame, which would hold it

    def _write(self, items: list[Item]) -> bytes:
        if not self._by_value and not pickling.is_taught:
            stream = io.BytesIO()
            pickler = pickle.Pickler(stream, _PROTOCOL)
            pickler.dispatch_table = _REDUCERS
            try:
                pickler.dump(items)
            except Exception:
                self._by_value = True
            else:
                payload = stream.getvalue()
                self._by_value = _MAIN in payload or bool(_by_value_modules())
                if not self._by_value:
                    return payload
        try:
            return self._write_by_value(items)
        except Exception:
            return dump_function(items)  # cloudpickle can do more, or says what is wrong

    def _write_by_value(self, items: list[Item]) -> bytes:
        stream = io.BytesIO()
        pickler = _PicklerByValue(stream, self._shared)
        pickler.dump(items)
        payload = stream.getvalue()
        if payload.count(_MAIN) > pickler.nmains:
            return dump_function(items)  # there is more in it that has to go by value
        return payload


class _PicklerByValue(pickle.Pickler):
    """Pickles functions and classes that workers can't import by value, each once for a graph."""

    def __init__(self, stream: io.BytesIO, shared: dict[int, tuple[object, bytes]]) -> None:
        super().__init__(stream, _PROTOCOL)
        self.nmains = 0  # how often what went by value names `__main__`
        self._shared = shared
        self._modules = _by_value_modules()
        self._reduced = registered_way() if pickling.is_taught else None

    def reducer_override(self, value: Any) -> Any:
        """How to pickle what is no builtin; pickle calls this."""
        kind = type(value)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(value)
        if kind is FunctionType or isinstance(value, type):
            known = self._shared.get(id(value))
            if known is not None or self._is_by_value(value):
                payload = known[1] if known is not None else self._dump(value)
                self.nmains += payload.count(_MAIN)
                read = load_shared if len(payload) <= SHARED_BYTES_MAX else pickle.loads
                return read, (payload,)
        return NotImplemented if self._reduced is None else self._reduced(value)

    def _dump(self, value: Any) -> bytes:
        payload = dumps_by_value(value)
        self._shared[id(value)] = value, payload  # kept alive, so that its id stays its own
        return payload

    def _is_by_value(self, value: Any) -> bool:
        """Whether a worker can't find `value` by its name."""
        name = value.__module__
        if name == "__main__" or name is None:
            return True
        for module in self._modules:
            if name == module or name.startswith(module + "."):
                return True
        found = sys.modules.get(name)
        for part in value.__qualname__.split("."):
            found = getattr(found, part, None)
        return found is not value


def _reduce_task(task: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    kwargs = task.kwargs
    if not kwargs:
        return Task, (task.key, task.func, *task.args)
    if task.func is _identity_cast and task.key is None and kwargs.get("typ") is list:
        return _reduce_list(task)  # not a `Call`: tasks around it look inside for dependencies
    return make_task, (task.key, task.func, task.args, kwargs)


def _reduce_list(node: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return List, (list(node.args),)


def _reduce_tuple(node: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return Tuple, (tuple(node.args),)


def _reduce_dict(node: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    pairs = list(zip(node.args[::2], node.args[1::2], strict=True))
    return Dict, (pairs,) if pairs else ({},)


_REDUCERS: Final[dict[type, Callable[[Any], Any]]] = {
    Call: Call.__reduce__,
    Task: _reduce_task,
    List: _reduce_list,
    Tuple: _reduce_tuple,
    Dict: _reduce_dict,
}
"""Dask's tasks pickle slot by slot, in Python; rebuilding them from what they call takes half the
time and three quarters of the bytes."""


def _by_value_modules() -> list[str]:
    """Modules that workers can't import, as the user told cloudpickle."""
    module = sys.modules.get("cloudpickle")
    return [] if module is None else sorted(module.list_registry_pickle_by_value())
