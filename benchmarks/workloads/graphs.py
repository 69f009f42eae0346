"""Plain graphs: dicts of tuples, each listed so that inputs come before their users.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads import tasks

Graph = dict[Any, Any]


@dataclass(frozen=True)
class Plan:
    """A graph and the key that is asked for."""

    graph: Graph
    key: Any

    @property
    def ntasks(self) -> int:
        """How many tasks a scheduler has to run."""
        return len(self.graph)

    def plain_value(self) -> Any:
        """What plain Python makes of it, in one pass: O(tasks + edges)."""
        values: dict[Any, Any] = {}
        for key, (function, *arguments) in self.graph.items():
            values[key] = function(*[_resolved(item, values) for item in arguments])
        return values[self.key]


def _resolved(item: Any, values: dict[Any, Any]) -> Any:
    if isinstance(item, list):
        return [values[key] for key in item]
    return values[item] if isinstance(item, (str, tuple)) else item


def chain(nlinks: int, prefix: str = "chain") -> Plan:
    """Each task needs the one before it."""
    graph: Graph = {f"{prefix}-0": (tasks.increment, 0)}
    for link in range(1, nlinks):
        graph[f"{prefix}-{link}"] = (tasks.increment, f"{prefix}-{link - 1}")
    return Plan(graph, f"{prefix}-{nlinks - 1}")


def merge(nleaves: int, prefix: str = "merge") -> Plan:
    """Many independent tasks, and one that needs them all."""
    graph: Graph = {f"{prefix}-{n}": (tasks.identity, n) for n in range(nleaves)}
    graph[f"{prefix}-all"] = (tasks.total, [f"{prefix}-{n}" for n in range(nleaves)])
    return Plan(graph, f"{prefix}-all")


def tree(depth: int, prefix: str = "tree") -> Plan:
    """A binary reduction of 2**depth leaves."""
    graph: Graph = {f"{prefix}-0-{n}": (tasks.identity, n) for n in range(2**depth)}
    for level in range(1, depth + 1):
        for n in range(2 ** (depth - level)):
            left, right = f"{prefix}-{level - 1}-{2 * n}", f"{prefix}-{level - 1}-{2 * n + 1}"
            graph[f"{prefix}-{level}-{n}"] = (tasks.add, left, right)
    return Plan(graph, f"{prefix}-{depth}-0")


def shuffle(nparts: int, prefix: str = "shuffle") -> Plan:
    """All to all: every output needs a shard of every input."""
    graph: Graph = {(f"{prefix}-in", n): (tasks.identity, n) for n in range(nparts)}
    for n in range(nparts):
        for part in range(nparts):
            graph[(f"{prefix}-split", n, part)] = (tasks.split, (f"{prefix}-in", n), part)
    for part in range(nparts):
        shards = [(f"{prefix}-split", n, part) for n in range(nparts)]
        graph[(f"{prefix}-out", part)] = (tasks.total, shards)
    outputs = [(f"{prefix}-out", part) for part in range(nparts)]
    graph[f"{prefix}-all"] = (tasks.total, outputs)
    return Plan(graph, f"{prefix}-all")


def stencil(width: int, nsteps: int, prefix: str = "stencil") -> Plan:
    """A square grid on which each cell needs itself and its four neighbours of the step before."""
    cells = [(row, column) for row in range(width) for column in range(width)]
    graph: Graph = {(prefix, 0, r, c): (tasks.identity, 7 * r + c) for r, c in cells}
    for step in range(1, nsteps + 1):
        for r, c in cells:
            around = [(r, c), (r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
            inside = [cell for cell in around if min(cell) >= 0 and max(cell) < width]
            inputs = [(prefix, step - 1, row, column) for row, column in inside]
            graph[(prefix, step, r, c)] = (tasks.smooth, *inputs)
    graph[f"{prefix}-all"] = (tasks.total, [(prefix, nsteps, r, c) for r, c in cells])
    return Plan(graph, f"{prefix}-all")


def bag(npartitions: int, prefix: str = "bag") -> Plan:
    """Partitions that are made, mapped, filtered and summed, then added up eight at a time."""
    graph: Graph = {}
    for n in range(npartitions):
        graph[f"{prefix}-part-{n}"] = (tasks.partition, n)
        graph[f"{prefix}-map-{n}"] = (tasks.squares, f"{prefix}-part-{n}")
        graph[f"{prefix}-filter-{n}"] = (tasks.evens, f"{prefix}-map-{n}")
        graph[f"{prefix}-sum-{n}"] = (tasks.total, f"{prefix}-filter-{n}")
    last = _reduce(graph, [f"{prefix}-sum-{n}" for n in range(npartitions)], tasks.total, 8)
    return Plan(graph, last)


def growth(nleaves: int, prefix: str = "growth") -> Plan:
    """Independent tasks that note when they ran, combined 2,000 at a time."""
    graph: Graph = {f"{prefix}-{n}": (tasks.stamp, n) for n in range(nleaves)}
    last = _reduce(graph, list(graph), tasks.combine, 2_000)
    return Plan(graph, last)


def _reduce(graph: Graph, keys: list[str], function: Callable[..., Any], nway: int) -> str:
    """Add tasks that combine `keys`, `nway` at a time, until one is left; return it."""
    level = 0
    while len(keys) > 1:
        level += 1
        groups = [keys[start : start + nway] for start in range(0, len(keys), nway)]
        keys = [f"reduce-{level}-{n}" for n in range(len(groups))]
        graph.update({key: (function, group) for key, group in zip(keys, groups, strict=True)})
    return keys[0]
