"""Graphs and dask collections to futures: what `get`, `compute` and `persist` have in common.

A graph is built in the thread that asks, and leaves slice by slice, so that the loop stays free
and the first tasks run while the rest is being pickled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import dask
from dask.base import is_dask_collection
from dask.core import flatten

from shoal.client.annotations import options_by_key
from shoal.client.errors import ClientClosed, LargeGraphWarning
from shoal.client.finding import Tasks
from shoal.client.future import Future, bind_strays, futures_of
from shoal.client.garbage import paused_collection
from shoal.client.graphs import Graph
from shoal.client.machine import Record
from shoal.client.preparing import prepare
from shoal.client.session import Session, sessions_of_process
from shoal.client.shuffles import with_shuffles
from shoal.ids import ClientTaskId, CodeId
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import TaskOptions
from shoal.protocol.shuffles import DefineShuffles, ShuffleDefinition
from shoal.units import format_nbytes

_dask: Any = dask  # it ships annotations for half of its functions
_flatten: Any = flatten

NBYTES_PER_TASK_MIN: Final = 4096
"""A graph with smaller tasks is large because it has many, which is nothing to warn of."""


class GraphSubmission:
    """One graph on its way to the scheduler."""

    def __init__(
        self,
        session: Session,
        options: TaskOptions | None,
        large_graph_bytes: int,
        actors: Any = None,
    ) -> None:
        """`actors`: which tasks make actors, as users say it."""
        self._actors = actors
        self._session = session
        self._options = options
        self._large_graph_bytes = large_graph_bytes
        self._first: float = math.inf  # number of the graph's first task, once it has one
        self._borrowed: dict[Any, Record] = {}  # live wants that the graph refers to
        self._shuffles: list[ShuffleDefinition] = []

    def submit(self, dsk: Any, keys: Sequence[Any], *, fuse: bool = True) -> dict[Any, Record]:
        """Send what `keys` need; a record for each distinct key, with one more future.

        Args:
            dsk: a dict of tasks, a HighLevelGraph or an expression.
            fuse: tasks may be made one; False: they travel as they are.

        Raises:
            CyclicGraph, MissingKey, UnpicklableTask: nothing of the graph stays wanted.
        """
        session = self._session
        session.require_running()
        records: dict[Any, Record] = {}
        with session.lock:
            session.take_dropped()
        try:
            with paused_collection():
                self._send(self._prepared(dsk, fuse), keys, records)
        except BaseException:
            for record in records.values():
                session.drop(record)
            raise
        finally:
            for record in self._borrowed.values():
                session.drop(record)
        return records

    def _prepared(self, dsk: Any, fuse: bool) -> Tasks:
        tasks, fusible, lazy, annotations = prepare(dsk, fuse=fuse)
        tasks, self._shuffles = with_shuffles(tasks)
        said = {name: f for name, f in _dask.get_annotations().items() if callable(f)}
        if said:
            by_key = {key: {name: f(key) for name, f in said.items()} for key in tasks}
            annotations = {key: {**own, **annotations.get(key, {})} for key, own in by_key.items()}
        options = options_by_key(annotations, self._options) if annotations else {}
        graph = Tasks(tasks, fusible, lazy, options)
        if self._actors is not None and self._actors is not False:
            from shoal.client.actors.making import who_are_actors, with_actors  # few have any

            wanted = who_are_actors(self._actors)
            graph = with_actors(graph, wanted, self._options or TaskOptions())
        return graph

    def _send(self, tasks: Tasks, keys: Sequence[Any], records: dict[Any, Record]) -> None:
        session, machine = self._session, self._session.machine
        bind_strays(tasks.by_key)
        if len(sessions_of_process()) > 1:
            from shoal.client import borrowing  # few programs have two clients

            others = borrowing.lenders(session)
            if others:
                borrowing.want_elsewhere(session, others, tasks.by_key, self._borrowed)
        graph = Graph(tasks, keys, self._find_live)
        with session.lock:
            first = self._first = machine.reserve(graph.ntasks_max)
            for key in graph.live_wanted:
                record = records[key] = self._borrowed[key]
                machine.hold(record)
        nbytes = 0
        if self._shuffles:
            session.say(DefineShuffles(self._shuffles))
        try:
            for slice_ in graph.slices(first, self._new_code, self._options):
                canonical = [to_canonical(key) for key in slice_.wanted_keys]
                nbytes += slice_.nbytes
                with session.lock:
                    if not session.is_open:
                        raise ClientClosed(session.name, session.status)
                    made = machine.submit_slice(slice_.bundles, slice_.message, canonical)
                records.update(zip(slice_.wanted_keys, made, strict=True))
                session.wake()
        except BaseException:
            rest = graph.abandon(first)
            if rest is not None and session.is_open:
                session.say(rest)
            raise
        if nbytes > self._large_graph_bytes and nbytes > NBYTES_PER_TASK_MIN * graph.ntasks:
            warn_of_large(nbytes, graph.ntasks, stacklevel=7)

    def _new_code(self) -> CodeId:
        with self._session.lock:
            return self._session.machine.new_code()

    def _find_live(self, key: Any) -> ClientTaskId | None:
        """The number of a key that is wanted already; it stays so while the graph is built."""
        known = self._session.machine.records
        if not known:
            return None
        borrowed = self._borrowed.get(key)
        if borrowed is not None:
            return borrowed.number
        canonical = to_canonical(key)
        if canonical not in known:
            return None
        with self._session.lock:
            record = known.get(canonical)
            if record is None or record.number >= self._first:
                return None  # submitted by another thread meanwhile: this graph has its own
            self._session.machine.hold(record)
        self._borrowed[key] = record
        return record.number


def warn_of_large(nbytes: int, ntasks: int, stacklevel: int) -> None:
    """Say that tasks carry data; `stacklevel`: as for `warnings.warn`, seen from here."""
    warnings.warn(
        f"Sending large graph of size {format_nbytes(nbytes)} for {ntasks} "
        f"task{'s' * (ntasks != 1)}: it carries data. Put them into workers' memory first, with "
        "`client.scatter(data)`, or let the tasks read them from files.",
        LargeGraphWarning,
        stacklevel=stacklevel,
    )


def flat_keys(keys: Any) -> list[Any]:
    """Keys out of nested lists, in order."""
    return list(_flatten(keys, container=list)) if isinstance(keys, list) else [keys]


def in_shape_of(keys: Any, value_by_key: Mapping[Any, Any]) -> Any:
    """`keys` with each key replaced by its value; lists become lists."""
    if isinstance(keys, list):
        return [in_shape_of(key, value_by_key) for key in keys]
    return value_by_key[keys]


def persisted(
    collections: Any, optimize_graph: bool, submit: Callable[[Any, Any], list[Future]]
) -> Any:
    """Collections of the same kind that are made of futures.

    Args:
        submit: from an expression and its keys to futures, in that order.
    """
    single = not isinstance(collections, (list, tuple, set, frozenset))
    parts = [collections] if single else list(collections)
    if not all(is_dask_collection(part) for part in parts):
        raise TypeError("persist takes dask collections; for other values there is scatter")
    result = _dask.persist(
        *parts, scheduler=lambda expr, keys, **_: submit(expr, keys), optimize_graph=optimize_graph
    )
    return result[0] if single else list(result)


def computed(
    collections: Any,
    optimize_graph: bool,
    traverse: bool,
    submit: Callable[[Any, Any], list[Future]],
) -> Any:
    """A future for each collection; what is none passes through."""
    single = not isinstance(collections, (list, tuple, set, frozenset))
    parts = [collections] if single else list(collections)
    if traverse:
        parts = [
            _dask.delayed(part)
            if not is_dask_collection(part)
            and isinstance(part, (list, dict, set, tuple))
            and any(is_dask_collection(inner) for inner in _inside(part))
            else part
            for part in parts
        ]
    result = list(
        _dask.compute(
            *parts,
            scheduler=lambda expr, keys, **_: submit(expr, keys),
            optimize_graph=optimize_graph,
            traverse=False,
        )
    )
    return result[0] if single else result


def _inside(container: Any) -> Iterator[Any]:
    """What builtin containers hold, at any depth."""
    stack = [container]
    while stack:
        part = stack.pop()
        if type(part) in (list, tuple, set, frozenset):
            stack.extend(part)
        elif type(part) is dict:
            stack.extend(part.values())
        else:
            yield part


def replaced(
    container: Any, value_of: Callable[[Any], Any], skipped: object, kinds: Any = Future
) -> Any:
    """Nested builtin containers with each future replaced by its value.

    A value that is `skipped` is left out of a list at the top, and None elsewhere.  `kinds`: the
    types of futures.
    """
    if isinstance(container, kinds):
        value = value_of(container)
        return None if value is skipped else value
    if type(container) is list and all(isinstance(part, kinds) for part in container):
        values = [value_of(part) for part in container]
        return [value for value in values if value is not skipped]
    if type(container) is list:
        parts = [
            (value_of(part) if isinstance(part, kinds) else _deep(part, value_of, skipped, kinds))
            for part in container
        ]
        return [part for part in parts if part is not skipped]
    return _deep(container, value_of, skipped, kinds)


def _deep(part: Any, value_of: Callable[[Any], Any], skipped: object, kinds: Any) -> Any:
    if isinstance(part, kinds):
        value = value_of(part)
        return None if value is skipped else value
    if isinstance(part, dict):
        return {key: _deep(value, value_of, skipped, kinds) for key, value in part.items()}
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*[_deep(inner, value_of, skipped, kinds) for inner in part])
    if isinstance(part, (list, tuple, set, frozenset)):
        return type(part)([_deep(inner, value_of, skipped, kinds) for inner in part])
    return part


def futures_inside(container: Any) -> list[Future]:
    """The futures that `replaced` would replace."""
    if isinstance(container, Future):
        return [container]
    if type(container) is list and all(type(part) is Future for part in container):
        return container
    return futures_of(container)
