"""Chains of tasks made one task each, where nobody else needs what is in between.

Only a task with a single input and that input's single dependent become one, so nothing waits that
could have run at once.  Tasks whose options differ stay apart.  A chain has the key of its last
task, so nobody has to be told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any, Final

from dask._task_spec import Alias, DataNode, GraphNode, Task, TaskRef

from shoal.client.conversion import Node
from shoal.protocol.bundled import Call

_FUSIBLE: Final = frozenset((Call, Task, Alias, DataNode))


def find_chains(
    needed: Sequence[int],
    dependencies: Sequence[Sequence[int]],
    may_end: Callable[[int], bool],
    may_fuse: Callable[[int, int], bool],
) -> dict[int, list[int]]:
    """The place of each chain's last task -> all its tasks, the first one first.

    Args:
        needed: places of tasks, dependencies before dependents.
        dependencies: of each task that is needed.
        may_end: whether a task's result may be nobody's but its dependent's.
        may_fuse: whether a task and its only input may be one.

    Cost: 0.3 us per task.
    """
    nusers: dict[int, int] = {}
    for i in needed:
        for j in dependencies[i]:
            nusers[j] = nusers.get(j, 0) + 1
    chains: dict[int, list[int]] = {}
    for i in needed:
        needs = dependencies[i]
        if len(needs) == 1:
            j = needs[0]
            if nusers[j] == 1 and may_end(j) and may_fuse(i, j):
                chain = chains.pop(j, None) or [j]
                chain.append(i)
                chains[i] = chain
    return chains


def is_fusible(node: Node | None) -> bool:
    """Whether this kind of task may be part of a chain."""
    return type(node) in _FUSIBLE


def joined(nodes: Sequence[Node], keys: Sequence[Any], lazy: Collection[Any]) -> Any:
    """What a chain is in a bundle: `[task, key, task, key, ..., task]`, or a task of dask's own.

    Args:
        keys: of the tasks, as the next one refers to them.
        lazy: keys of tasks of bags, which hand on an iterator to the next where that is all it
            needs.  A chain is of a bag from beginning to end, or not at all.
    """
    if keys[0] in lazy:
        last = nodes[-1]
        nodes = [_lazy(node, is_last=node is last) for node in nodes]
    arrays = sys.modules.get("dask.array.optimization")
    if arrays is not None and sum([_is_slice(node, arrays.GETTERS) for node in nodes]) > 1:
        return _with_slices_joined(nodes, keys)
    chain: list[Any] = [nodes[0]]
    for key, node in zip(keys[:-1], nodes[1:], strict=True):
        chain += (key, node)
    return chain


def _lazy(node: Node, *, is_last: bool) -> Node:
    """A task of a bag without the calls that only make lists of iterators."""
    bags: Any = sys.modules["dask.bag.core"]
    if type(node) is Call:
        return _lazy_call(node, (bags.reify, list), is_last)
    if type(node) is Task:
        lazified: Node = bags.lazify_task(node, is_last)
        return lazified
    return node


def _lazy_call(call: Call, list_makers: tuple[Any, ...], is_last: bool) -> Call:
    """A call whose result nobody goes through twice, unless it is the last one's."""
    if not is_last and call.func in list_makers and type(call.args[0]) is Call:
        call = call.args[0]
    for argument in call.args:
        if type(argument) is Call:
            break
    else:
        return call
    arguments = [
        _lazy_call(argument, list_makers, False) if type(argument) is Call else argument
        for argument in call.args
    ]
    return Call(call.func, tuple(arguments))


def _is_slice(node: Node, getters: Container[Any]) -> bool:
    """Whether a task takes a part of an array, as dask writes it."""
    if not isinstance(node, (Call, Task)) or node.func not in getters:
        return False
    return type(node.args[0]) in (TaskRef, Alias, DataNode)


def _with_slices_joined(nodes: Sequence[Node], keys: Sequence[Any]) -> Any:
    """A chain as one task of dask's, its slices of slices made one: less is read from a file."""
    arrays: Any = sys.modules["dask.array.optimization"]
    named = [
        node.substitute({}, key=key) if isinstance(node, GraphNode) else _as_task(node, key)
        for node, key in zip(nodes, keys, strict=True)
    ]
    key = keys[-1]
    return arrays._optimize_slices({key: Task.fuse(*named, key=key)})[key]


def _as_task(call: Any, key: Any) -> Task:
    """The same call in dask's form."""
    arguments = [_as_task(part, None) if type(part) is Call else part for part in call.args]
    return Task(key, call.func, *arguments)
