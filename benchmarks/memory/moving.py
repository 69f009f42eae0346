"""How many bytes of inputs workers fetch from each other, counted as they are read there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

BLOCK_BYTES = 1_000_000
TASK_SECONDS = 0.01


class Arrivals:
    """What was moved to this process."""

    def __init__(self) -> None:
        self.nbytes = 0


ARRIVED = Arrivals()


class Block:
    """An array that counts where it is read out of bytes: once in each process it is moved to."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        return _arrived, (self.values,)

    def __sizeof__(self) -> int:
        return int(self.values.nbytes)


def _arrived(values: Any) -> Block:
    ARRIVED.nbytes += values.nbytes
    return Block(values)


def moved() -> int:
    """The bytes that arrived in this process since it was last asked."""
    found, ARRIVED.nbytes = ARRIVED.nbytes, 0
    return found


def make(number: int) -> Block:
    """A block of the graph's first row."""
    import numpy as np

    time.sleep(TASK_SECONDS)
    return Block(np.full(BLOCK_BYTES // 8, number, "i8"))


def add(*blocks: Block) -> Block:
    """Their sum, block by block."""
    time.sleep(TASK_SECONDS)
    values = blocks[0].values.copy()
    for block in blocks[1:]:
        values += block.values
    return Block(values)


def first(block: Block) -> int:
    """A number that stands for the block."""
    return int(block.values[0])


def merge(size: int) -> dict[Any, Any]:
    """Independent blocks, and one sum of them all."""
    graph: dict[Any, Any] = {("make", n): (make, n) for n in range(size)}
    graph["last"] = (add, *graph)
    return graph


def tree(size: int) -> dict[Any, Any]:
    """Pairs, then pairs of pairs."""
    graph: dict[Any, Any] = {("make", n): (make, n) for n in range(size)}
    level: list[Any] = list(graph)
    depth = 0
    while len(level) > 1:
        depth += 1
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [("add", depth, n) for n in range(len(pairs))]
        graph.update({key: (add, *pair) for key, pair in zip(level, pairs, strict=True)})
    graph["last"] = (add, level[0])
    return graph


def stencil(size: int) -> dict[Any, Any]:
    """A row of blocks, and steps in which each is added to its neighbours."""
    nsteps = max(2, size // 4)
    graph: dict[Any, Any] = {("at", 0, n): (make, n) for n in range(size)}
    for step in range(1, nsteps):
        for n in range(size):
            near = [m for m in (n - 1, n, n + 1) if 0 <= m < size]
            graph["at", step, n] = (add, *(("at", step - 1, m) for m in near))
    graph["last"] = (add, *(("at", nsteps - 1, n) for n in range(size)))
    return graph


GRAPHS = {"merge": merge, "tree": tree, "stencil": stencil}


def value(graph: dict[Any, Any]) -> int:
    """What the graph has to give, in plain Python: blocks hold one number over and over."""
    values: dict[Any, int] = {}
    for key, (function, *inputs) in graph.items():  # inputs stand before what uses them
        if key != "first":
            made = function is make
            values[key] = inputs[0] if made else sum(values[each] for each in inputs)
    return values["last"]


def moving(ground: Ground, graph: str, size: int, nworkers: int, nrounds: int) -> Found:
    """Bytes moved in each round; the value is checked."""
    described = GRAPHS[graph](size)
    expected = value(described)
    described["first"] = (first, "last")
    with ground.client(nworkers, 1, 0) as client:
        rounds, seconds = [], []
        client.get(described, "first", optimize_graph=False)  # and what a first run learns
        for _ in range(nrounds):
            client.run(moved)
            started_at = time.monotonic()
            found = client.get(described, "first", optimize_graph=False)
            seconds.append(time.monotonic() - started_at)
            rounds.append(sum(client.run(moved).values()))
            if found != expected:
                yield {"failure": f"{graph} gave {found} instead of {expected}"}
                return
        yield {"moved_bytes": rounds, "seconds": seconds}
