"""How work gets in: single calls, many calls, graphs and collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from dask.utils import key_split

from shoal import config
from shoal.client.computing import (
    GraphSubmission,
    computed,
    flat_keys,
    futures_inside,
    in_shape_of,
    persisted,
    replaced,
)
from shoal.client.future import Future, futures_of
from shoal.client.gathering import FAILED
from shoal.client.graphs import paused_collection
from shoal.client.lifecycle import ClientBase, finishes
from shoal.client.options import task_options
from shoal.client.submission import (
    SCALARS,
    Function,
    dump_arguments,
    dump_item,
    key_of_call,
    key_of_item,
)
from shoal.ids import Key
from shoal.protocol.keys import to_canonical, to_text
from shoal.protocol.messages import TaskOptions

MAP_SLICE_TASKS: Final = 1000
"""Tasks of a `map` that leave together, while the next ones are prepared."""


class Submitting(ClientBase):
    """The part of a client that submits."""

    def submit(
        self,
        func: Callable[..., Any],
        *args: Any,
        key: Any = None,
        workers: Any = None,
        resources: dict[str, float] | None = None,
        retries: int | None = None,
        priority: float = 0,
        fifo_timeout: Any = None,
        allow_other_workers: bool = False,
        actor: bool = False,
        actors: bool = False,
        pure: bool = True,
        **kwargs: Any,
    ) -> Future:
        """Have `func(*args, **kwargs)` called by a worker; never waits.

        Args:
            func: any callable that pickles.
            args, kwargs: may hold futures, in builtin containers of any depth; the function gets
                their results.
            key: name of the task; made from function and arguments by default.
            workers: addresses, names or hosts that may run it.
            resources: abstract amounts that the worker must have free.
            retries: how often it may fail before the future does.
            priority: larger is sooner.
            allow_other_workers: `workers` is a preference only.
            actor, actors: not supported; True raises UnsupportedOption.
            pure: equal calls share one task; False: each call is a task of its own.
            fifo_timeout: not used.

        Raises:
            TypeError: `func` can't be called, or something can't be pickled.
            CancelledError: the client is closed.
        """
        if not callable(func):
            raise TypeError(f"The first argument of submit is a function, not {func!r}")
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers or None,
            resources=resources,
            actor=actor or actors,
        )
        self.session.require_running()
        function = self._functions.prepare(func)
        if key is None:
            key = key_of_call(function, args, kwargs, pure)
            prefix = function.name
            named = False
            canonical = to_canonical(key)
        else:
            canonical = to_canonical(key)  # before anything looks into it
            prefix = str(key_split(key))
            named = True
        argument, futures = dump_arguments(args, kwargs, key)
        needs = [self.record_of(future) for future in futures]
        session = self.session
        with session.lock:
            session.require_running()  # what is wanted after the end, nobody would ever resolve
            if named:  # what was released under this name before must go first
                session.take_dropped()
            else:
                session.forget_failed((canonical,))
            records = session.machine.submit(
                function.definition,
                prefix,
                [canonical],
                [argument],
                [needs] if needs else (),
                options,
            )
        session.wake()
        return Future.of_record(key, self.face, records[0])

    def map(
        self,
        func: Callable[..., Any],
        *iterables: Iterable[Any],
        key: Any = None,
        workers: Any = None,
        retries: int | None = None,
        resources: dict[str, float] | None = None,
        priority: float = 0,
        allow_other_workers: bool = False,
        fifo_timeout: Any = None,
        actor: bool = False,
        actors: bool = False,
        pure: bool = True,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[Future]:
        """Have `func` called with each item of `iterables`, as the builtin `map` does; never waits.

        Args:
            key: a text to begin all keys with, or a list of keys.
            kwargs: the same for all calls; sent once.
            batch_size: not used; work leaves in slices anyway.

        See `submit` for the others.
        """
        if not callable(func):
            raise TypeError(f"The first argument of map is a function, not {func!r}")
        for iterable in iterables:
            if hasattr(iterable, "__next__") or type(iterable).__name__ in ("Queue", "SimpleQueue"):
                raise TypeError(
                    f"map takes lists and the like, not a {type(iterable).__name__}, "
                    "which can be read only once. Make a list of it, or submit one by one."
                )
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers or None,
            resources=resources,
            actor=actor or actors,
        )
        self.session.require_running()
        each: dict[str, Any] = {}
        function = self._functions.prepare(func)
        if kwargs and futures_of(kwargs):
            each = kwargs
        elif kwargs:
            function = self._functions.prepare(partial(func, **kwargs))
        keys = None
        if isinstance(key, (list, tuple)):
            keys = list(key)
            _refuse_repeated(keys)
        elif key is not None:
            to_canonical(key)  # raises what makes no key
            function = function._replace(name=str(key))
        prefix = function.name
        items = zip(*iterables, strict=False)
        futures: list[Future] = []
        unique = None if pure else uuid4().hex
        with paused_collection():
            while part := list(islice(items, MAP_SLICE_TASKS)):
                named = _keys_of_part(function, part, each, keys, len(futures), unique)
                futures += self._submit_part(function, prefix, part, each, named, options)
        if keys is not None and len(keys) != len(futures):
            raise ValueError(f"{len(keys)} keys were given for {len(futures)} tasks")
        return futures

    def _submit_part(
        self,
        function: Function,
        prefix: str,
        part: Sequence[tuple[Any, ...]],
        kwargs: dict[str, Any],
        keys: list[Any],
        options: TaskOptions | None,
    ) -> list[Future]:
        arguments: list[bytes | int] = []
        needs: list[list[Any]] = []
        anything_needed = False
        for args, key in zip(part, keys, strict=True):
            if len(args) == 1 and not kwargs and type(args[0]) in SCALARS:
                arguments.append(dump_item(args[0]))
                needs.append([])
                continue
            argument, futures = dump_arguments(args, kwargs, key)
            arguments.append(argument)
            needs.append([self.record_of(future) for future in futures])
            anything_needed = anything_needed or bool(futures)
        session = self.session
        canonical: list[Key] = [to_canonical(key) for key in keys]
        with session.lock:
            session.require_running()  # it may have ended since the map began
            session.forget_failed(canonical)
            records = session.machine.submit(
                function.definition,
                prefix,
                canonical,
                arguments,
                needs if anything_needed else (),
                options,
            )
        session.wake()
        face = self.face
        of_record = Future.of_record
        return [of_record(key, face, record) for key, record in zip(keys, records, strict=True)]

    # --- graphs ------------------------------------------------------------------------------

    @finishes
    def get(
        self,
        dsk: Any,
        keys: Any,
        workers: Any = None,
        allow_other_workers: bool | None = None,
        resources: dict[str, float] | None = None,
        sync: bool = True,
        asynchronous: bool | None = None,
        direct: bool | None = None,
        retries: int | None = None,
        priority: float = 0,
        fifo_timeout: Any = None,
        actors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Compute keys of a graph.

        Args:
            dsk: a dict of tasks, a HighLevelGraph or an expression.
            keys: one key, or nested lists of keys.
            sync: return results; False: futures, at once.
            direct: fetch from workers; False: through the scheduler.

        See `submit` for the others.

        Raises:
            CyclicGraph, MissingKey, UnpicklableTask: the graph can't be sent.
            BaseException: what a task raised.
        """
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers,
            resources=resources,
            actor=bool(actors),
        )
        futures = self._graph_futures(dsk, flat_keys(keys), options)
        if not sync:
            return in_shape_of(keys, futures)
        return self._gather_graph(keys, futures, direct)

    async def _gather_graph(
        self, keys: Any, futures: dict[Any, Future], direct: bool | None
    ) -> Any:
        record_by_key = {key: future.record for key, future in futures.items()}
        values = await self.gathering(direct=direct).run(list(record_by_key.values()))
        return in_shape_of(keys, {key: values[record] for key, record in record_by_key.items()})

    def _graph_futures(
        self,
        dsk: Any,
        keys: Sequence[Any],
        options: TaskOptions | None,
        *,
        fuse: bool = True,
    ) -> dict[Any, Future]:
        """Send a graph; a future for each distinct key.  Works in the caller's thread."""
        limit = config.read(config.Client).large_graph_bytes
        records = GraphSubmission(self.session, options, limit).submit(dsk, keys, fuse=fuse)
        face = self.face
        return {key: Future.of_record(key, face, record) for key, record in records.items()}

    @finishes
    def compute(
        self,
        collections: Any,
        sync: bool = False,
        optimize_graph: bool = True,
        workers: Any = None,
        allow_other_workers: bool | None = None,
        resources: dict[str, float] | None = None,
        retries: int | None = None,
        priority: float = 0,
        fifo_timeout: Any = None,
        actors: Any = None,
        traverse: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Compute dask collections in the background.

        Args:
            collections: one, or a list of them; other values in it pass through.
            sync: wait, and return results instead of futures.
            traverse: find collections inside builtin containers, too.

        Returns:
            A future for each collection.

        See `submit` for the others.
        """
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers,
            resources=resources,
            actor=bool(actors),
        )
        futures = computed(
            collections, optimize_graph, traverse, self._submitter(options, optimize_graph)
        )
        return self.gather(futures) if sync else futures

    @finishes
    def persist(
        self,
        collections: Any,
        optimize_graph: bool = True,
        workers: Any = None,
        allow_other_workers: bool | None = None,
        resources: dict[str, float] | None = None,
        retries: int | None = None,
        priority: float = 0,
        fifo_timeout: Any = None,
        actors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Start computing dask collections, and return collections of the same kinds at once.

        Their parts stay in workers' memory as long as the returned collections are referred to.
        See `submit` for the arguments.
        """
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers,
            resources=resources,
            actor=bool(actors),
        )
        return persisted(collections, optimize_graph, self._submitter(options, optimize_graph))

    def _submitter(
        self, options: TaskOptions | None, optimize_graph: bool
    ) -> Callable[[Any, Any], list[Future]]:
        def submit(expr: Any, keys: Any) -> list[Future]:
            flat = flat_keys(list(keys) if isinstance(keys, (list, set)) else keys)
            futures = self._graph_futures(expr, flat, options, fuse=optimize_graph)
            return [futures[key] for key in flat]

        return submit

    async def gather(
        self,
        futures: Any,
        errors: str = "raise",
        direct: bool | None = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Fetch results: `futures`, nested in containers of any kind, with each one replaced.

        Args:
            errors: `raise` what the first failed task raised; `skip` those that failed (None, if
                not in a list at the top).
            direct: fetch from workers; False: through the scheduler.

        Raises:
            BaseException: what a task raised, with its traceback.
            CancelledError: a future was cancelled.
            ForeignFuture: one is another client's.
        """
        if errors not in ("raise", "skip"):
            raise ValueError(f"errors is 'raise' or 'skip', not {errors!r}")
        if type(futures).__name__ in ("Queue", "SimpleQueue"):
            raise TypeError("gather takes lists and the like, not a queue; make a list of it")
        if hasattr(futures, "__next__"):
            futures = list(futures)
        record_by_future = {future: self.record_of(future) for future in futures_inside(futures)}
        gathering = self.gathering(skip=errors == "skip", direct=direct)
        values = await gathering.run(list(record_by_future.values()))
        return replaced(futures, lambda future: values[record_by_future[future]], FAILED)


def _refuse_repeated(keys: list[Any]) -> None:
    """Raise ValueError if two tasks would share a key, and so a result."""
    counts = Counter(map(to_canonical, keys))
    if len(counts) == len(keys):
        return
    repeated = next(key for key, n in counts.items() if n > 1)
    raise ValueError(
        f"key= names {to_text(repeated)!r} more than once, so two tasks would share one result. "
        "Give each task a key of its own."
    )


def _keys_of_part(
    function: Function,
    part: Sequence[tuple[Any, ...]],
    kwargs: dict[str, Any],
    keys: list[Any] | None,
    start: int,
    unique: str | None,
) -> list[Any]:
    """Keys of the tasks of one slice, the first of which is number `start` of the map."""
    if keys is not None:
        given = keys[start : start + len(part)]
        if len(given) != len(part):
            raise ValueError(
                f"key= has {len(keys)} keys, and there are more tasks. Give one for each, or a "
                "text that all keys begin with."
            )
        return given
    if unique is not None:
        return [f"{function.name}-{unique}-{start + i}" for i in range(len(part))]
    if len(part[0]) == 1 and not kwargs:
        return [
            key_of_item(function, args[0])
            if type(args[0]) in SCALARS
            else key_of_call(function, args, kwargs, True)
            for args in part
        ]
    return [key_of_call(function, args, kwargs, True) for args in part]
