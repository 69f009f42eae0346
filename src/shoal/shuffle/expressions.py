"""Shuffles of dataframes where dask can't make them, as the name `distributed` doesn't lead to us,
or where it overlooks that they are asked for.

Dask then shuffles by tasks.  Its expression for that is replaced by one of ours, which stands for
the same partitions and has the graph of a shuffle from peer to peer.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

from dask._task_spec import Task, TaskRef

from shoal.shuffle.errors import UnsupportedDtype


def with_peer_shuffles(expressions: Sequence[Any], *, all_of_them: bool) -> list[Any]:
    """These expressions of dataframes, their shuffles by tasks replaced by shuffles of ours.

    One whose columns can't be sent is left as it is.

    Args:
        all_of_them: False: only those that were asked for as `shuffle="p2p"`, which dask takes for
            an option of whatever way it chooses.  True: all but those that are to be otherwise, by
            the same keyword.
    """
    shuffling = sys.modules.get("dask.dataframe.dask_expr._shuffle")
    if shuffling is None:
        return list(expressions)
    return [_replaced(expression, shuffling, all_of_them) for expression in expressions]


def _replaced(expression: Any, shuffling: Any, all_of_them: bool) -> Any:
    while True:
        for found in expression.find_operations(shuffling.TaskShuffle):
            if type(found) is not shuffling.TaskShuffle:
                continue
            if _is_wanted(found, all_of_them) and _can_be_sent(found):
                break
        else:
            return expression
        expression = expression.substitute(found, _peer_shuffle(shuffling)(*found.operands))


def _is_wanted(shuffle: Any, all_of_them: bool) -> bool:
    said = (shuffle.options or {}).get("shuffle")
    return bool(said == "p2p" or (all_of_them and said is None))


def _can_be_sent(shuffle: Any) -> bool:
    from shoal.shuffle.schema import check_dtype_support

    meta = shuffle.frame._meta
    if shuffle.ignore_index or meta.ndim != 2:
        return False
    if not all(isinstance(name, str) for name in meta.columns):
        return False
    try:
        check_dtype_support(meta)
    except UnsupportedDtype:
        return False
    return True


@functools.cache
def _peer_shuffle(shuffling: Any) -> Any:
    """The expression's class."""

    class PeerShuffle(shuffling.SimpleShuffle):  # type: ignore[misc]
        def _layer(self) -> dict[Any, Any]:
            return _tasks(self)

    return PeerShuffle


def _tasks(shuffle: Any) -> dict[Any, Any]:
    from shoal.shuffle import graph
    from shoal.shuffle.tables import TableExchange

    id = graph.ShuffleId(shuffle._name.rpartition("-")[2])
    outputs = list(shuffle._partitions)
    tasks: dict[Any, Any] = {}
    needs = []
    for place in range(shuffle.frame.npartitions):
        key = (f"shuffle-transfer-{id}", place)
        source = TaskRef((shuffle.frame._name, place))
        tasks[key] = Task(key, graph.shuffle_transfer, source, id, place)
        needs.append(TaskRef(key))
    exchange = TableExchange(
        id=id,
        npartitions=shuffle.npartitions_out,
        column=shuffle.partitioning_index,
        meta=shuffle.frame._meta,
        parts_out=tuple(outputs) if shuffle._filtered else shuffle.npartitions_out,
        disk=True,
        drop_column=False,
    )
    barrier = graph.P2PBarrierTask(
        graph.barrier_key(id), graph.p2p_barrier, id, *needs, spec=exchange
    )
    tasks[barrier.key] = barrier
    for place, output in enumerate(outputs):
        key = (shuffle._name, place)
        tasks[key] = Task(key, graph.shuffle_unpack, id, output, TaskRef(barrier.key))
    return tasks
