"""Neighbouring tasks of a graph pickled together, with the inputs of each in order.

What is written is a list of (node, keys of its inputs).  Dask's tasks pickle slot by slot, in
Python; rebuilding them from what they call takes half the time and three quarters of the bytes.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dask._task_spec import Alias, DataNode, GraphNode, Task, TaskRef, convert_legacy_task

from shoal.client.errors import UnpicklableTask
from shoal.client.future import pickled_as_references
from shoal.protocol.payload import dump_function

Item: TypeAlias = tuple[Any, tuple[Any, ...]]

_PROTOCOL: Final = 5
_MAIN: Final = b"__main__"
_SCALARS: Final = frozenset((int, float, str, bytes, bool, type(None)))


class BundleWriter:
    """Pickles the bundles of one graph, and learns from the first how the others need it."""

    def __init__(self) -> None:
        self._by_value = False  # functions of `__main__` and the like: cloudpickle at once

    def write(self, items: list[Item]) -> bytes:
        """One bundle.  Cost: 2 us per task, 8 us by value.

        Raises:
            UnpicklableTask: names the first task that can't be pickled.
        """
        with pickled_as_references():
            try:
                return self._write(items)
            except Exception as error:
                if len(items) == 1:
                    why = f"{type(error).__name__}: {error}"
                    raise UnpicklableTask(items[0][0].key, why) from error
                failure = error
        try:
            for item in items:  # to name the one that can't be pickled
                self.write([item])
            why = f"{type(failure).__name__}: {failure}"
            raise UnpicklableTask(items[0][0].key, why) from failure
        finally:
            del failure  # it holds this frame, which would hold it

    def _write(self, items: list[Item]) -> bytes:
        if not self._by_value:
            try:
                payload = _dumps(pickle.Pickler, items, {Task: _reduce_task})
                self._by_value = _MAIN in payload or _is_anything_by_value()
            except Exception:
                return dump_function(items)  # cloudpickle can do more, or says what is wrong
            if not self._by_value:
                return payload
        import cloudpickle  # costs 40 ms, and many programs never need it

        pickler = cloudpickle.CloudPickler
        return _dumps(pickler, items, ChainMap({Task: _reduce_task}, pickler.dispatch_table))


def to_node(key: Any, task: Any, keys: Any) -> GraphNode:
    """A task of a graph as a node.

    The old form of most tasks, a function with constants and keys, is converted here: references
    to keys instead of aliases are quicker to pickle and to run.

    Args:
        keys: all keys of the graph, to look up.
    """
    if isinstance(task, GraphNode):
        return task
    if type(task) is tuple and task and callable(task[0]):
        args = []
        for argument in task[1:]:
            kind = type(argument)
            if kind is str or kind is int or kind is float:
                args.append(TaskRef(argument) if argument in keys else argument)
            elif kind is tuple and (not argument or not callable(argument[0])):
                is_key = _is_hashable(argument) and argument in keys
                args.append(
                    TaskRef(argument) if is_key else convert_legacy_task(None, argument, keys)
                )
            elif kind in _SCALARS:
                args.append(argument)
            else:
                break
        else:
            return Task(key, task[0], *args)
    node = convert_legacy_task(key, task, keys)
    return node if isinstance(node, GraphNode) else DataNode(key, node)


def is_alias_of_itself(node: GraphNode) -> bool:
    """Whether a node stands for a future of its own key, as in a persisted collection."""
    return isinstance(node, Alias) and node.target == node.key


def _is_hashable(value: tuple[Any, ...]) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _reduce_task(task: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if task.kwargs or task._data_producer:
        return _make_task, (task.key, task.func, task.args, task.kwargs, task._data_producer)
    return Task, (task.key, task.func, *task.args)


def _make_task(
    key: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], data_producer: bool
) -> Any:
    return Task(key, func, *args, _data_producer=data_producer, **kwargs)


def _dumps(kind: Any, items: list[Item], table: Any) -> bytes:
    stream = io.BytesIO()
    pickler = kind(stream, _PROTOCOL)
    pickler.dispatch_table = table
    pickler.dump(items)
    return stream.getvalue()


def _is_anything_by_value() -> bool:
    """Whether the user told cloudpickle about modules that workers can't import."""
    module = sys.modules.get("cloudpickle")
    return module is not None and bool(module.list_registry_pickle_by_value())
