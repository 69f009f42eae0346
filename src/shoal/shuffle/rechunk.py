"""`rechunk(method="p2p")`: the graph that changes an array's chunks by shuffles.

Where input and output blocks begin together the array is divided, and each part is a shuffle of its
own: its outputs can be made once its own inputs are there.  A block that stays as it was is part of
none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import dask.config
import numpy as np
from dask._task_spec import Alias, Task, TaskRef
from dask.array.core import Array, normalize_chunks
from dask.array.rechunk import _balance_chunksizes, _validate_rechunk
from dask.array.utils import validate_axis
from dask.base import clone_key
from dask.graph_manipulation import chunks as steps
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.tokenize import tokenize

from shoal.shuffle.arrays import ArrayExchange
from shoal.shuffle.geometry import Chunks, linear_index, runs_of
from shoal.shuffle.graph import (
    P2PBarrierTask,
    ShuffleId,
    barrier_key,
    p2p_barrier,
    rechunk_transfer,
    rechunk_unpack,
)

Tasks = dict[Any, Any]

_array: Any = Array  # dask ships annotations for half of its functions
_normalize: Any = normalize_chunks
_clone_key: Any = clone_key
_balance: Any = _balance_chunksizes
_validate: Any = _validate_rechunk
_to_axis: Any = validate_axis


def rechunk_p2p(
    x: Any,
    chunks: Any,
    *,
    threshold: int | None = None,
    block_size_limit: int | None = None,
    balance: bool = False,
) -> Any:
    """The same array in other chunks.

    Args:
        x: a dask array.
        chunks: as for `dask.array.rechunk`.
        threshold: how large graphs may become with tasks; this one is as small as it can be.
        block_size_limit: bytes; for chunks that are "auto".
        balance: whether chunks are to be made of about the same size.

    Raises:
        ValueError: the chunks don't fit the shape, or an axis with chunks of unknown size is to be
            changed.

    Cost: 5 us for each input and output block.
    """
    new = _normalized(x, chunks, block_size_limit, balance)
    _validate(x.chunks, new)
    if _are_alike(x.chunks, new):
        return x
    disk = bool(dask.config.get("distributed.p2p.storage.disk", True))
    token = tokenize(x.name, x.chunks, new, disk)
    name = f"rechunk-p2p-{token}"
    if 0 in [sum(sizes) for sizes in x.chunks]:
        layer = _empty_blocks(name, x._meta, new)
    else:
        layer = _Tasks(x.name, x.chunks, new, x._meta, token, name, disk).tasks()
    graph = HighLevelGraph.from_collections(name, RechunkLayer(layer), dependencies=[x])
    return _array(graph, name, new, meta=x._meta)


def _normalized(x: Any, chunks: Any, block_size_limit: int | None, balance: bool) -> Chunks:
    if _is_normal(chunks):  # dask has done it
        normal: Chunks = chunks
        return normal
    if isinstance(chunks, Mapping):
        by_axis = {_to_axis(axis, x.ndim): sizes for axis, sizes in chunks.items()}
        chunks = tuple([by_axis.get(axis) for axis in range(x.ndim)])
    if isinstance(chunks, (tuple, list)) and len(chunks) == x.ndim:
        pairs = zip(chunks, x.chunks, strict=True)
        chunks = tuple([old if sizes is None else sizes for sizes, old in pairs])
    made: Chunks = _normalize(
        chunks, x.shape, limit=block_size_limit, dtype=x.dtype, previous_chunks=x.chunks
    )
    if balance:
        made = tuple([_balance(sizes) for sizes in made])
    return made


def _is_normal(chunks: Any) -> bool:
    """Whether these are sizes along each axis, and not how to find them."""
    if not isinstance(chunks, tuple) or not all(isinstance(sizes, tuple) for sizes in chunks):
        return False
    sizes = [size for sizes in chunks for size in sizes]
    return bool(sizes) and all(not isinstance(size, str) and size >= 0 for size in sizes)


def _are_alike(old: Chunks, new: Chunks) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(old, new, strict=True))


def _empty_blocks(name: str, meta: Any, chunks: Chunks) -> Tasks:
    """Blocks of an array that has no elements."""
    layer: Tasks = {}
    for index in product(*[range(len(sizes)) for sizes in chunks]):
        shape = [chunks[axis][place] for axis, place in enumerate(index)]
        key = (name, *index)
        layer[key] = Task(key, _empty_block, meta, tuple(shape))
    return layer


def _empty_block(meta: Any, shape: tuple[int, ...]) -> Any:
    return np.empty_like(meta, shape=shape)


class RechunkLayer(MaterializedLayer):
    """The tasks of one change of chunks, which refer to others as dask's new form of tasks does."""

    def clone(
        self, keys: Any, seed: Hashable, bind_to: Any = None
    ) -> tuple[MaterializedLayer, bool]:
        """The same tasks by other names, as dask asks for them.

        Args:
            keys: that get other names; of this layer, and of those that it needs.
            bind_to: what has to be there before tasks that need nothing of `keys`.

        Returns:
            Them, and whether any waits for `bind_to`.
        """
        tasks: Tasks = {}
        is_bound = False
        for key, task in self.mapping.items():
            name = _clone_key(key, seed) if key in keys else key
            renamed = {need: _clone_key(need, seed) for need in task.dependencies if need in keys}
            cloned = task.substitute(renamed, key=name)
            if bind_to is not None and key in keys and not renamed:
                cloned = Task(name, steps.bind, cloned, TaskRef(bind_to))
                is_bound = True
            tasks[name] = cloned
        return RechunkLayer(tasks), is_bound


class _Tasks(NamedTuple):
    """The tasks of one change of chunks."""

    source: str  # name of the array whose chunks are changed
    old: Chunks
    new: Chunks
    meta: Any
    token: str
    name: str
    disk: bool

    def tasks(self) -> Tasks:
        """By key."""
        layer: Tasks = {}
        for number, segments in enumerate(runs_of(self.old, self.new)):
            inputs = [range(s.first_input, s.end_input) for s in segments]
            outputs = [range(s.first_output, s.end_output) for s in segments]
            if math.prod(map(len, inputs)) == math.prod(map(len, outputs)) == 1:
                key: Any = (self.name, *[r.start for r in outputs])
                source: Any = (self.source, *[r.start for r in inputs])
                layer[key] = Alias(key, source)
            else:
                layer.update(self._run(number, inputs, outputs))
        return layer

    def _run(self, number: int, inputs: Sequence[range], outputs: Sequence[range]) -> Tasks:
        """One independent part."""
        id = ShuffleId(f"{self.token}-{number}")
        old = tuple([sizes[r.start : r.stop] for sizes, r in zip(self.old, inputs, strict=True)])
        new = tuple([sizes[r.start : r.stop] for sizes, r in zip(self.new, outputs, strict=True)])
        exchange = ArrayExchange(id, old, new, self.meta, disk=self.disk)
        transfer_name = f"rechunk-transfer-{self.token}"
        layer: Tasks = {}
        transfers = []
        for place, index in enumerate(product(*inputs)):
            key: Any = (transfer_name, *index)
            source = TaskRef((self.source, *index))
            layer[key] = Task(key, rechunk_transfer, source, id, place)
            transfers.append(TaskRef(key))
        barrier = P2PBarrierTask(barrier_key(id), p2p_barrier, id, *transfers, spec=exchange)
        layer[barrier.key] = barrier
        counts = [len(r) for r in outputs]
        for index in product(*outputs):
            places = [i - r.start for i, r in zip(index, outputs, strict=True)]
            key = (self.name, *index)
            output = linear_index(places, counts)
            layer[key] = Task(key, rechunk_unpack, id, output, TaskRef(barrier.key))
        return layer
