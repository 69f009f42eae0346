"""How graphs and dask collections get in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shoal import config
from shoal.client.computing import GraphSubmission, computed, flat_keys, in_shape_of, persisted
from shoal.client.control.results import Results
from shoal.client.future import Future
from shoal.client.lifecycle import finishes
from shoal.client.options import task_options
from shoal.protocol.messages import TaskOptions


class Collections(Results):
    """`get`, `compute` and `persist`."""

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
        fifo_timeout: Any = "60s",
        actors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Compute keys of a graph.

        Args:
            dsk: a dict of tasks, a HighLevelGraph or an expression.
            keys: one key, or nested lists of keys.
            sync: return results; False: futures, at once.
            direct: fetch from workers; False: through the scheduler.
            actors: which tasks make actors: True, or keys, collections, or a dict of them by truth.

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
            limits=kwargs.get("limits"),
            memory=kwargs.get("memory"),
            timeout=kwargs.get("timeout"),
            of_graph=True,
        )
        futures = self._graph_futures(dsk, flat_keys(keys), options, actors=actors)
        if not sync:
            return in_shape_of(keys, futures)
        return self._gather_graph(keys, futures, direct)

    async def _gather_graph(
        self, keys: Any, futures: dict[Any, Future], direct: bool | None
    ) -> Any:
        record_by_key = {key: future.record for key, future in futures.items()}
        try:
            values = await self.gathering(direct=direct).run(list(record_by_key.values()))
        finally:  # whatever ended it, an interrupt too: nobody else has these futures
            for future in futures.values():
                future.release()
        return in_shape_of(keys, {key: values[record] for key, record in record_by_key.items()})

    def _graph_futures(
        self,
        dsk: Any,
        keys: Sequence[Any],
        options: TaskOptions | None,
        *,
        fuse: bool = True,
        actors: Any = None,
    ) -> dict[Any, Future]:
        """Send a graph; a future for each distinct key.  Works in the caller's thread."""
        limit = config.read(config.Client).large_graph_bytes
        submission = GraphSubmission(self.session, options, limit, actors)
        records = submission.submit(dsk, keys, fuse=fuse)
        face = self.face
        return {key: Future.of_record(key, face, record) for key, record in records.items()}

    @finishes
    def compute(
        self,
        collections: Any,
        sync: bool = False,
        optimize_graph: bool = True,
        workers: Any = None,
        allow_other_workers: bool = False,
        resources: dict[str, float] | None = None,
        retries: int = 0,
        priority: float = 0,
        fifo_timeout: Any = "60s",
        actors: Any = None,
        traverse: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Compute dask collections in the background.

        Args:
            collections: one, or a list of them; other values in it pass through.
            sync: wait, and return results instead of futures.
            actors: which tasks make actors: True, or keys, collections, or a dict of them by truth.
            traverse: find collections inside builtin containers, too.

        Returns:
            A future for each collection.

        See `submit` for the others.
        """
        options = task_options(
            priority=priority,
            retries=retries or None,  # annotations say what is not said here
            workers=workers,
            allow_other_workers=allow_other_workers or None,
            resources=resources,
            limits=kwargs.get("limits"),
            memory=kwargs.get("memory"),
            timeout=kwargs.get("timeout"),
            of_graph=True,
        )
        futures = computed(
            collections, optimize_graph, traverse, self._submitter(options, optimize_graph, actors)
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
        fifo_timeout: Any = "60s",
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
            limits=kwargs.get("limits"),
            memory=kwargs.get("memory"),
            timeout=kwargs.get("timeout"),
            of_graph=True,
        )
        return persisted(
            collections, optimize_graph, self._submitter(options, optimize_graph, actors)
        )

    def _submitter(
        self, options: TaskOptions | None, optimize_graph: bool, actors: Any
    ) -> Callable[[Any, Any], list[Future]]:
        def submit(expr: Any, keys: Any) -> list[Future]:
            flat = flat_keys(list(keys) if isinstance(keys, (list, set)) else keys)
            futures = self._graph_futures(expr, flat, options, fuse=optimize_graph, actors=actors)
            return [futures[key] for key in flat]

        return submit
