"""Tasks of a graph as they will travel, whichever form they came in.

Those in dask's new form stay what they are.  The old form, nested tuples and lists of functions,
constants and keys, becomes calls with references, without the detour over dask's new form: that
costs several times as much to make, to pickle, to read and to run.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final, TypeAlias

from dask._task_spec import Alias, DataNode, Dict, GraphNode, TaskRef, convert_legacy_task

from shoal.protocol.bundled import Call, to_list, to_tuple

Node: TypeAlias = GraphNode | Call

_CONSTANTS: Final = frozenset(
    (bytes, bool, complex, type(None), slice, type, partial, FunctionType, BuiltinFunctionType)
)
_KEYS: Final = frozenset((str, int, float))


def to_node(key: Any, task: Any, keys: Container[Any]) -> tuple[Node, Collection[Any]]:
    """A task of a graph, and the keys that it needs, each once.

    Args:
        keys: all keys of the graph, to look up.

    Cost: 0.3 us for each part of an old task.
    """
    if type(task) is tuple and task and callable(task[0]):
        needs: list[Any] = []
        call = _to_call(task, keys, needs)
        return call, dict.fromkeys(needs) if len(needs) > 1 else needs
    if not isinstance(task, GraphNode):
        task = convert_legacy_task(key, task, keys)
        if not isinstance(task, GraphNode):
            task = DataNode(key, task)
    return task, task.dependencies


def is_alias_of(node: Node, key: Any) -> bool:
    """Whether a node stands for a future of its own key, as in a persisted collection.

    Args:
        key: under which the graph has it; its own may be another: some of dask's layers leave it.
    """
    return isinstance(node, Alias) and bool(node.target == key)


def _to_call(task: tuple[Any, ...], keys: Container[Any], needs: list[Any]) -> Call:
    """A tuple that starts with a function; adds what it needs to `needs`."""
    arguments = []
    for place in range(1, len(task)):
        argument = task[place]
        kind = type(argument)
        if kind in _CONSTANTS:
            arguments.append(argument)
        elif isinstance(argument, dict):
            arguments.append(_to_dict(argument, needs))
        else:
            arguments.append(_to_argument(argument, kind, keys, needs))
    return Call(task[0], tuple(arguments))


def _to_argument(argument: Any, kind: type, keys: Container[Any], needs: list[Any]) -> Any:
    """A part of an old task: a constant, a key, a task, or a container of those."""
    if kind in _KEYS:
        return _to_reference(argument, needs) if argument in keys else argument
    if kind is tuple:
        if argument and callable(argument[0]):
            return _to_call(argument, keys, needs)
        try:
            if argument in keys:
                return _to_reference(argument, needs)
        except TypeError:
            pass  # it holds something that can't be hashed, so it is no key
    elif kind is not list:
        if kind in _CONSTANTS:
            return argument
        return _noted(convert_legacy_task(None, argument, keys), needs)
    parts = [_to_argument(part, type(part), keys, needs) for part in argument]
    for part in parts:
        if isinstance(part, (TaskRef, Call, GraphNode)):
            return Call(to_list if kind is list else to_tuple, tuple(parts))
    return kind(parts)


def _to_reference(key: Any, needs: list[Any]) -> TaskRef:
    needs.append(key)
    return TaskRef(key)


def _to_dict(argument: dict[Any, Any], needs: list[Any]) -> Any:
    """Keyword arguments and the like; only tasks in them are replaced, and no keys."""
    if type(argument) is dict and not any(
        isinstance(part, (GraphNode, TaskRef)) for part in argument.values()
    ):
        return argument
    return _noted(Dict(argument), needs)


def _noted(part: Any, needs: list[Any]) -> Any:
    if isinstance(part, GraphNode):
        needs += part.dependencies
    return part
