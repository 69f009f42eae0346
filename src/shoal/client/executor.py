"""A client as an executor of `concurrent.futures`."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from threading import Condition
from typing import Any, Final

from shoal.client.delivering import (
    ExecutorFuture,
    cancel_now,
    cancel_unshared,
    deliver_when_ended,
)
from shoal.client.errors import BlockingCall, ExecutorShutDown
from shoal.client.future import Future
from shoal.client.machine import Record
from shoal.observe.inside import waiting_for_tasks

OPTIONS: Final = frozenset(("pure", "workers", "resources", "allow_other_workers", "retries"))
KEYWORDS: Final = OPTIONS | {"key", "priority", "fifo_timeout", "actor", "actors"}
"""Of `Client.submit`.  A function that takes one of them is given it."""

NEVER_OPTIONS: Final = frozenset(("func", "self"))
"""What `Client.submit` calls its own arguments; a keyword of that name is the function's."""

NOTHING_LEFT: Final[Iterator[Any]] = iter(())


def _takes(fn: Callable[..., Any], keyword: str) -> bool:
    """Whether `fn` can be given that keyword, as far as it tells."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD
        or (parameter.name == keyword and parameter.kind in by_name)
        for parameter in parameters
    )


def _left(end: float | None) -> float | None:
    """Seconds until `end`; None: no limit."""
    return None if end is None else max(0.0, end - time.monotonic())


class ClientExecutor(Executor):
    """Calls functions on the cluster of a client; `Client.get_executor` makes one.

    Its futures are those of `concurrent.futures`, so whatever takes those takes them.  What was
    submitted runs to its end, whether its future is kept or not.  A future can be cancelled as
    long as it has no result; a function that runs is not interrupted by it.

    Args:
        client: a blocking or an asynchronous client.
        options: as for `Client.submit`: pure, workers, resources, allow_other_workers, retries.
            Equal calls are one, unless pure=False.

    Raises:
        TypeError: there is no such option.
    """

    def __init__(self, client: Any, **options: Any) -> None:
        unknown = sorted(options.keys() - OPTIONS)
        if unknown:
            raise TypeError(
                f"unsupported arguments to ClientExecutor: {unknown}; there are {sorted(OPTIONS)}"
            )
        self._client = client
        self._options = options
        self._is_shut_down = False
        self._changed = Condition()
        self._pending: dict[ExecutorFuture | Record, Callable[[], object]] = {}
        """What has not ended -> how to cancel it.  Tasks of `map` are known by their records."""

    def __repr__(self) -> str:
        state = "shut down" if self._is_shut_down else "ready"
        return f"<ClientExecutor: {state}, {len(self._pending)} futures have not ended>"

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> ExecutorFuture:
        """Have `fn(*args, **kwargs)` called; never waits.

        A keyword that `fn` does not take, and `Client.submit` does, is an option of this call.

        Raises:
            RuntimeError: the executor was shut down.
            TypeError: `fn` can't be called, or something can't be pickled.
        """
        self._require_ready()
        called, options = fn, dict(self._options)
        for name in sorted(kwargs.keys() & (KEYWORDS | NEVER_OPTIONS)):
            if name in NEVER_OPTIONS or _takes(fn, name):
                called = partial(called, **{name: kwargs.pop(name)})
            else:
                options[name] = kwargs.pop(name)
        task = self._client.submit(called, *args, **kwargs, **options)
        future = ExecutorFuture(task)
        self._expect({future: future.cancel})
        deliver_when_ended(future, task, self._on_end)
        return future

    def map(  # `buffersize` is of the newest Python, and is there in all of them
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """The results of `fn` for each item of `iterables`, in their order.

        All is submitted at once.  Whoever leaves the iterator early cancels the rest, as far as
        nobody else holds futures of the same calls.

        Args:
            timeout: seconds from now until the iterator raises TimeoutError.
            chunksize: not used; calls travel in batches anyway.
            buffersize: submit so many calls ahead of the results that were taken; None: all.

        Raises:
            RuntimeError: the executor was shut down.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        end = None if timeout is None else time.monotonic() + timeout
        items = zip(*iterables, strict=False)
        begun = deque(self._begin(fn, islice(items, buffersize)))
        return self._results(fn, NOTHING_LEFT if buffersize is None else items, begun, end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool | None = None) -> None:
        """Take nothing any more.

        Args:
            wait: until all futures have ended.
            cancel_futures: cancel those that have not; None: if we don't wait for them.

        Raises:
            BlockingCall: it would have to wait on the loop that serves the client.
        """
        with self._changed:
            self._is_shut_down = True
            cancels = list(self._pending.values())
        if cancel_futures or (cancel_futures is None and not wait):
            for cancel in cancels:
                cancel()
        if not wait:
            return
        with waiting_for_tasks(), self._changed:
            while self._pending:
                if self._client.is_on_loop:
                    raise BlockingCall
                self._changed.wait()

    def _require_ready(self) -> None:
        if self._is_shut_down:
            raise ExecutorShutDown

    def _expect(self, cancels: dict[ExecutorFuture | Record, Callable[[], object]]) -> None:
        """Know of what was submitted just now, unless the executor was shut down meanwhile."""
        with self._changed:
            if not self._is_shut_down:
                self._pending.update(cancels)
                return
        for cancel in cancels.values():
            cancel()
        raise ExecutorShutDown

    def _begin(self, fn: Callable[..., Any], items: Iterable[tuple[Any, ...]]) -> list[Future]:
        """Submit calls; they run to their end, whether somebody takes the results or not."""
        self._require_ready()
        columns = list(zip(*items, strict=True))
        if not columns:
            return []
        futures: list[Future] = self._client.map(fn, *columns, **self._options)
        self._expect({future.record: partial(cancel_now, [future]) for future in futures})
        records = [future.record for future in futures]
        watched = set(self._client.session.watch_all(records, self._on_end))
        for record in records:
            if record not in watched:
                self._on_end(record)
        return futures

    def _results(
        self,
        fn: Callable[..., Any],
        items: Iterator[tuple[Any, ...]],
        begun: deque[Future],
        end: float | None,
    ) -> Iterator[Any]:
        try:
            while begun:
                value = self._result(begun[0], _left(end))
                begun.popleft()
                if items is not NOTHING_LEFT and not self._is_shut_down:
                    begun.extend(self._begin(fn, islice(items, 1)))
                yield value
                del value  # or it would live until the next one is there
        finally:
            self._leave(begun)

    def _leave(self, begun: Iterable[Future]) -> None:
        """Cancel what only a map wants, and let go of what others want as well."""
        for future in cancel_unshared(begun):
            session, record = future.face.session, future.record
            session.unwatch([record], self._on_end)
            future.release()
            if self._on_end not in (record.watchers or ()):  # no other map has the same call
                self._on_end(record)

    def _result(self, future: Future, timeout_seconds: float | None) -> Any:
        """The result of a call; of an asynchronous client's, in another thread than its loop's."""
        if self._client.is_on_loop:
            raise BlockingCall
        if self._client.is_blocking:
            return future.result(timeout_seconds)
        work = self._client.await_future(future, timeout_seconds)
        return asyncio.run_coroutine_threadsafe(work, self._client.loop).result()

    def _on_end(self, ended: ExecutorFuture | Record) -> None:
        """A call has ended; in any thread."""
        with self._changed:
            self._pending.pop(ended, None)
            if not self._pending:
                self._changed.notify_all()
