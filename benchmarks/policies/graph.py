"""A graph with all that only the model knows of it: how long each task takes, how large it gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from shoal.client.ordering import order_tasks


@dataclass(frozen=True, slots=True)
class Shape:
    """The cluster that a graph is made for, and run on."""

    nworkers: int
    nthreads: int = 2
    """Of each worker."""

    latency_seconds: float = 0.0005
    """Of every message, whoever says it."""

    bytes_per_second: float = 1e9
    """That one worker can send, and at the same time receive."""

    @property
    def nslots(self) -> int:
        """Threads of the whole cluster."""
        return self.nworkers * self.nthreads


@dataclass(frozen=True, slots=True)
class Graph:
    """Tasks in the order of their priority, inputs before those that need them."""

    name: str
    seconds: list[float]
    nbytes: list[int]
    inputs: list[tuple[int, ...]]
    dependents: list[list[int]]
    layers: list[int]
    """Of each task: which of `prefixes`; tasks of one layer are one group to those who group."""

    prefixes: list[str]
    """Of each layer; several layers may have the same."""

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def work_seconds(self) -> float:
        """Of all tasks together."""
        return sum(self.seconds)

    def critical_seconds(self) -> float:
        """The longest way through the graph, as if nothing had to be moved."""
        ends = [0.0] * len(self)
        for task, needs in enumerate(self.inputs):
            start = max([ends[i] for i in needs], default=0.0)
            ends[task] = start + self.seconds[task]
        return max(ends, default=0.0)


class Draft:
    """A graph in the making: tasks in any order in which inputs come first."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.prefixes: list[str] = []
        self._seconds: list[float] = []
        self._nbytes: list[int] = []
        self._inputs: list[tuple[int, ...]] = []
        self._layers: list[int] = []

    def __len__(self) -> int:
        return len(self._seconds)

    def layer(self, prefix: str) -> int:
        """A new layer, whose tasks call the same function."""
        self.prefixes.append(prefix)
        return len(self.prefixes) - 1

    def add(self, layer: int, seconds: float, nbytes: float, inputs: Iterable[int] = ()) -> int:
        """A task; its duration varies by a tenth either way, as durations do."""
        self._seconds.append(seconds * self.random.uniform(0.9, 1.1))
        self._nbytes.append(max(1, int(nbytes)))
        self._inputs.append(tuple(dict.fromkeys(inputs)))
        self._layers.append(layer)
        return len(self._seconds) - 1

    def reduce(
        self, prefix: str, tasks: Sequence[int], fan_in: int, seconds: float, nbytes: float
    ) -> int:
        """A tree above `tasks`, each node of which has up to `fan_in` inputs; its root."""
        while len(tasks) > 1:
            layer = self.layer(prefix)
            tasks = [
                self.add(layer, seconds, nbytes, tasks[start : start + fan_in])
                for start in range(0, len(tasks), fan_in)
            ]
        return tasks[0]

    def finish(self, name: str) -> Graph:
        """The graph, in the order that a client would give it."""
        n = len(self)
        heights = [0] * n
        is_needed = bytearray(n)
        for task, needs in enumerate(self._inputs):
            for i in needs:
                is_needed[i] = 1
            if needs:
                heights[task] = 1 + max(heights[i] for i in needs)
        roots = [task for task in range(n) if not is_needed[task]]
        order = order_tasks(self._inputs, roots, range(n), heights)
        place = [0] * n
        for new, old in enumerate(order):
            place[old] = new
        inputs = [tuple(place[i] for i in self._inputs[old]) for old in order]
        dependents: list[list[int]] = [[] for _ in range(n)]
        for task, needs in enumerate(inputs):
            for i in needs:
                dependents[i].append(task)
        return Graph(
            name,
            [self._seconds[old] for old in order],
            [self._nbytes[old] for old in order],
            inputs,
            dependents,
            [self._layers[old] for old in order],
            self.prefixes,
        )
