"""Shuffles in a graph: found by their barriers, and each of their tasks told how it is done.

Whatever a graph was fused with, its tasks need no more than this: those that the barrier needs, and
those that need the barrier, are called where they know the barrier's exchange.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dask._task_spec import Alias, GraphNode, Task, TaskRef, _execute_subgraph
from dask.tokenize import tokenize

from shoal.protocol.keys import to_canonical
from shoal.protocol.shuffles import ShuffleDefinition
from shoal.units import MIB

CHAIN_TASKS_MAX: Final = 64
"""So many tasks after an unpack may become one with it and still be known as such."""


class Shuffles(NamedTuple):
    """A graph whose tasks know their shuffles, and what the scheduler is told of those."""

    tasks: Mapping[Any, Any]
    definitions: list[ShuffleDefinition]


def with_shuffles(tasks: Mapping[Any, Any]) -> Shuffles:
    """Find a graph's shuffles, and tell its tasks of them.

    Cost: 20 ns per task if a shuffle was ever made in this process, else nothing; with a shuffle in
    the graph 1 us per task, and 8 us for each transfer and unpack.
    """
    graph: Any = sys.modules.get("shoal.shuffle.graph")
    if graph is None:  # nobody can have made a barrier
        return Shuffles(tasks, [])
    barrier_type = graph.P2PBarrierTask
    barriers = {
        key: task
        for key, task in tasks.items()
        if type(task) is barrier_type and task.spec is not None
    }
    if not barriers:
        return Shuffles(tasks, [])
    return _Telling(tasks, barriers, graph).told()


class _Shuffle:
    """One barrier of a graph."""

    def __init__(self, key: Any, barrier: Any, transfers: list[Any], usual_key: str) -> None:
        """`usual_key`: of the barrier of this shuffle, if it is not in the graph more than once."""
        exchange = barrier.spec
        self.id: str = exchange.id
        """As the graph's tasks say it."""
        if key != usual_key:  # dask has cloned it
            exchange = copy.copy(exchange)
            exchange.id = f"{exchange.id}-{tokenize(key)}"
        self.key, self.barrier, self.exchange = key, barrier, exchange
        self.transfers = transfers
        self.unpacks: list[Any] = []


class _Telling:
    """One graph with shuffles."""

    def __init__(self, tasks: Mapping[Any, Any], barriers: Mapping[Any, Any], graph: Any) -> None:
        from shoal.shuffle.exchange import WithExchanges

        self._with_exchanges, self._graph = WithExchanges, graph
        self._tasks = dict(tasks)
        self._wrapped: dict[tuple[Any, ...], Any] = {}  # (barriers, function) -> what knows them
        self._shuffles = {
            key: _Shuffle(
                key, barrier, self._transfers(barrier), graph.barrier_key(barrier.spec.id)
            )
            for key, barrier in barriers.items()
        }

    def _transfers(self, barrier: Any) -> list[Any]:
        """What a barrier needs; fusing leaves only another name for some of it."""
        found: dict[Any, None] = {}
        for argument in barrier.args:
            if isinstance(argument, (Alias, TaskRef)):
                key = argument.target if isinstance(argument, Alias) else argument.key
                task = self._tasks.get(key)
                while type(task) is Alias and task.target != key:
                    key = task.target
                    task = self._tasks.get(key)
                found[key] = None
        return list(found)

    def told(self) -> Shuffles:
        """All of it."""
        known: dict[Any, list[Any]] = {}  # task -> barriers that it has to do with
        for shuffle in self._shuffles.values():
            for transfer in shuffle.transfers:
                known.setdefault(transfer, []).append(shuffle.key)
        users = self._find_unpacks(known)
        definitions = [self._definition(each, users) for each in self._shuffles.values()]
        for key, barriers in known.items():
            if key in self._tasks:  # else a future stands for it
                self._tasks[key] = self._telling(self._tasks[key], tuple(barriers))
        for key, shuffle in self._shuffles.items():
            needs = [TaskRef(transfer) for transfer in shuffle.transfers]
            self._tasks[key] = self._graph.P2PBarrierTask(
                key, shuffle.barrier.func, shuffle.exchange.id, *needs, spec=None
            )
        return Shuffles(self._tasks, definitions)

    def _find_unpacks(self, known: dict[Any, list[Any]]) -> dict[Any, Any]:
        """Note who needs the barriers; returns task -> the only one that needs it and nothing else.

        None stands for those that several need.
        """
        barriers = frozenset(self._shuffles)
        users: dict[Any, Any] = {}
        for key, task in self._tasks.items():
            needs = (
                task.dependencies if isinstance(task, GraphNode) else _needs_of(task, self._tasks)
            )
            if len(needs) == 1:
                (need,) = needs
                users[need] = None if need in users else key
            else:
                users.update(dict.fromkeys(needs))
            if needs and not barriers.isdisjoint(needs):
                found = [need for need in needs if need in barriers]
                for barrier in sorted(found, key=str):  # `needs` may be a set
                    known.setdefault(key, []).append(barrier)
                    self._shuffles[barrier].unpacks.append(key)
        return users

    def _definition(self, shuffle: _Shuffle, users: Mapping[Any, Any]) -> ShuffleDefinition:
        outputs = {}
        for unpack in shuffle.unpacks:
            output = self._output_of(self._tasks[unpack])
            if output is not None:
                for name in _chain(unpack, users):
                    outputs[to_canonical(name)] = output
        return ShuffleDefinition(
            id=shuffle.exchange.id,
            barrier=to_canonical(shuffle.key),
            ninputs=len(shuffle.transfers),
            noutputs=shuffle.exchange.noutputs,
            kind=shuffle.exchange.kind,
            outputs=outputs,
            peak_ratio=1.0 + shuffle.exchange.output_bytes(MIB) / MIB,
        )

    def _output_of(self, task: Any) -> int | None:
        """The output partition that a task makes, if that can be seen."""
        for part in _nodes(task):
            if isinstance(part, Task):
                place = self._graph.output_place(part.func)
                given = part.args[place : place + 1] if place is not None else ()
                if given and type(given[0]) is int:
                    output: int = given[0]
                    return output
        return None

    # --- tasks that know their shuffles ------------------------------------------------------

    def _telling(self, task: Any, barriers: tuple[Any, ...]) -> Any:
        """The task, and all tasks in it, called where they know the exchanges of these barriers."""
        nodes = _nodes(task)
        if len(nodes) == 1:
            return self._telling_one(task, barriers, {})
        told: dict[int, Any] = {}
        for node in reversed(nodes):  # those inside of others come later
            told[id(node)] = self._telling_one(node, barriers, told)
        return told[id(task)]

    def _telling_one(self, node: Any, barriers: tuple[Any, ...], told: Mapping[int, Any]) -> Any:
        if type(node) is tuple:  # the old form
            return (self._function(node[0], barriers), *[told.get(id(p), p) for p in node[1:]])
        if type(node) is not Task:
            return node
        args: Any = node.args
        if told:
            args = [told.get(id(part), part) for part in args]
        function = node.func
        if function is _execute_subgraph and isinstance(args[0], dict):
            args[0] = {key: told.get(id(part), part) for key, part in args[0].items()}
        else:
            function = self._function(function, barriers)
        return Task(node.key, function, *args, _data_producer=node.data_producer, **node.kwargs)

    def _function(self, function: Callable[..., Any], barriers: tuple[Any, ...]) -> Any:
        """One object for each function and its exchanges, so that it is pickled once."""
        known = (*barriers, id(function))
        made = self._wrapped.get(known)
        if made is None:
            by_id = {}
            for key in barriers:
                shuffle = self._shuffles[key]
                by_id[shuffle.id] = by_id[shuffle.exchange.id] = shuffle.exchange
            made = self._wrapped[known] = self._with_exchanges(by_id, function)
        return made


def _nodes(task: Any) -> list[Any]:
    """A task and the tasks in it, one that holds others before them."""
    found = []
    stack = [task]
    while stack:
        node = stack.pop()
        if type(node) is tuple and node and callable(node[0]):
            parts: Sequence[Any] = node[1:]
        elif isinstance(node, Task):
            parts = node.args
            if node.func is _execute_subgraph and parts and isinstance(parts[0], dict):
                parts = list(parts[0].values())
        else:
            continue
        found.append(node)
        stack += parts
    return found or [task]


def _needs_of(task: Any, keys: Mapping[Any, Any]) -> list[Any]:
    """What a task in the old form needs, as far as it stands directly among its arguments."""
    found: list[Any] = []
    for node in _nodes(task):
        if isinstance(node, Task):
            found += node.dependencies
        elif type(node) is tuple:
            found += [
                part for part in node[1:] if type(part) in (str, tuple) and _is_key(part, keys)
            ]
    return found


def _is_key(part: Any, keys: Mapping[Any, Any]) -> bool:
    try:
        return part in keys
    except TypeError:  # it holds what can't be hashed
        return False


def _chain(key: Any, users: Mapping[Any, Any]) -> list[Any]:
    """A task, and those after it that need nothing else, where nobody else needs what is between.

    The scheduler will know them by the last one's key if they become one task.
    """
    chain = [key]
    while len(chain) < CHAIN_TASKS_MAX:
        key = users.get(key)
        if key is None:
            break
        chain.append(key)
    return chain
