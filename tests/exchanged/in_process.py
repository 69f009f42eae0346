"""Graphs with shuffles, run in one thread: all of an exchange but the machines and the network.

Graphs are prepared as a client prepares them; transfers cut, keep and tell, in memory or on disk,
and unpacks join what was kept, each by the code that runs on workers.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter
from types import SimpleNamespace
from typing import Any

import dask.config
from dask._task_spec import DataNode, GraphNode, convert_legacy_task
from dask.core import flatten

from shoal.client.preparing import prepare
from shoal.client.shuffles import with_shuffles
from shoal.ids import RunId, TaskId
from shoal.observe.inside import current_task
from shoal.protocol.payload import dump_function
from shoal.protocol.shuffles import ShardsJoined, ShardsMade
from shoal.shuffle.budget import ShardBudget
from shoal.shuffle.counters import ShuffleCounters
from shoal.shuffle.disk import ShardFiles
from shoal.shuffle.exchange import Buffer, WithExchanges
from shoal.shuffle.graph import P2PBarrierTask
from shoal.shuffle.inside import Fetched
from shoal.shuffle.kept import KeptShards

EPOCH = 7


class Host:
    """What a worker does for shuffles, where it is the only one."""

    address = "here"
    may_write = True

    def __init__(self, folder: str, budget_bytes: int) -> None:
        self.budget = ShardBudget(budget_bytes, budget_bytes)
        self.files = ShardFiles(lambda: folder)
        self.counters = ShuffleCounters()
        self.nshuffles = 0
        self._told: list[ShardsMade] = []
        self._kept: defaultdict[str, dict[int, KeptShards]] = defaultdict(dict)

    def refuse(self, id: str, input_partition: int) -> int:
        raise AssertionError("the disk is full")

    def accept(self) -> None:
        """There was room, as always."""

    def tell(self, message: ShardsMade | ShardsJoined) -> None:
        if isinstance(message, ShardsMade):
            self._told.append(message)

    def forget(self) -> None:
        """Let go of all shards."""
        self._kept.clear()

    def _keep(self, value: Any) -> Any:
        """Keep what a transfer returned, by what it has told; every other value is nobody's."""
        for told in self._told:
            assert type(value) is KeptShards
            assert told.input_partition not in self._kept[told.shuffle]
            self._kept[told.shuffle][told.input_partition] = value
        self._told.clear()
        return value

    def fetch(self, id: str, output: int, epoch: int) -> Fetched:
        assert epoch == EPOCH
        buffers: list[Buffer] = []
        nrows = 0
        for _, kept in sorted(self._kept[id].items()):
            shard = kept.shard(output)
            if shard is not None:
                nrows += shard.nrows
                buffers.append(shard.content)
        return Fetched(buffers, nrows)

    def get(self, graph: Any, keys: Any, **_: Any) -> Any:
        """Dask's way to have a graph computed."""
        told = with_shuffles(prepare(graph).tasks)
        self.nshuffles += len(told.definitions)
        everything = set(told.tasks)
        tasks = {key: _node(key, task, everything) for key, task in told.tasks.items()}
        wanted = list(keys) if isinstance(keys, list) else [keys]
        values: dict[Any, Any] = {}
        for key in TopologicalSorter(_needed(tasks, list(flatten(wanted)))).static_order():
            task = tasks[key]
            if isinstance(task, P2PBarrierTask):
                values[key] = EPOCH
            else:
                values[key] = self._keep(self._run(task, values))
        made = _filled(wanted, values)
        return made if isinstance(keys, list) else made[0]

    def _run(self, task: Any, values: dict[Any, Any]) -> Any:
        """One run, of a task that has travelled if it has to do with shuffles."""
        if type(getattr(task, "func", None)) is WithExchanges:
            task = pickle.loads(dump_function(task))
        running: Any = SimpleNamespace(
            run=SimpleNamespace(task=TaskId(1), number=RunId(1)),
            worker=SimpleNamespace(shuffles=self),
        )
        token = current_task.set(running)
        try:
            return task(values)
        finally:
            current_task.reset(token)


def _node(key: Any, task: Any, keys: set[Any]) -> Any:
    """A task in dask's new form."""
    node = task if isinstance(task, GraphNode) else convert_legacy_task(key, task, keys)
    return node if isinstance(node, GraphNode) else DataNode(key, node)


def _needed(tasks: dict[Any, Any], keys: list[Any]) -> dict[Any, Any]:
    """What has to be there for these keys: task -> what it needs itself."""
    needed: dict[Any, Any] = {}
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in needed:
            needed[key] = tasks[key].dependencies
            waiting += needed[key]
    return needed


def _filled(keys: list[Any], values: dict[Any, Any]) -> list[Any]:
    """The values of keys, nested as these are, which are no deeper than a few levels."""
    return [_filled(key, values) if isinstance(key, list) else values[key] for key in keys]


@contextmanager
def in_process(budget_bytes: int) -> Iterator[Host]:
    """Whatever dask computes meanwhile is computed here; shards beyond the budget go to disk."""
    folder = tempfile.mkdtemp(prefix="exchanged-")
    host = Host(folder, budget_bytes)
    try:
        with dask.config.set(scheduler=host.get):
            yield host
    finally:
        host.forget()
        host.files.close()
        shutil.rmtree(folder, ignore_errors=True)
