"""`distributed.utils`: loops, and what runs on them or beside them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from dask.context import thread_state
from dask.utils import parse_timedelta

from shoal.client.blocking import LoopThread
from shoal.compat.functions import sync
from shoal.compat.metering import offloaded

_logger = logging.getLogger("shoal.utils")

T = TypeVar("T")
P = ParamSpec("P")


class LoopRunner:
    """An event loop for an object that is used from a thread of its user's, or on a loop.

    A blocking one has the loop of this process's clients, whose thread starts with the first of its
    users and ends with the last; or the running loop that it is given.
    """

    def __init__(self, loop: Any = None, asynchronous: bool = False) -> None:
        """Nothing is started.

        Args:
            loop: a loop that runs, or that somebody is about to run; None: see above.
            asynchronous: True: the caller's own loop, if none is given.

        Raises:
            RuntimeError: asynchronous, and the caller is on no loop.
        """
        self._given = getattr(loop, "asyncio_loop", loop)
        self._asynchronous = asynchronous
        if asynchronous and self._given is None:
            self._given = asyncio.get_running_loop()
        self._thread: LoopThread | None = None
        self._started = False

    def __repr__(self) -> str:
        kind = "asynchronous" if self._asynchronous else "blocking"
        return f"<LoopRunner {kind}, {'started' if self._started else 'stopped'}>"

    @property
    def loop(self) -> Any:
        """The loop; of a blocking one without a loop of its own None until it is started."""
        return self._given if self._thread is None else self._thread.loop

    def start(self) -> None:
        """See that the loop runs; more than once is as good as once."""
        if not self._started and self._given is None:
            self._thread = LoopThread.acquire()
        self._started = True

    def stop(self, timeout: float = 10) -> None:
        """Give the loop back; one that was given is left as it is."""
        thread, self._thread = self._thread, None
        self._started = False
        if thread is not None:
            thread.release()

    def is_started(self) -> bool:
        """Between `start` and `stop`."""
        return self._started

    def run_sync(self, func: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T:
        """Run a coroutine function on the loop, which is started for that if need be, and wait."""
        if self._started:
            return sync(self.loop, func, *args, **kwargs)
        self.start()
        try:
            return sync(self.loop, func, *args, **kwargs)
        finally:
            self.stop()


class SyncMethodMixin:
    """Gives a class `asynchronous` and `sync`; it has to have a `loop`."""

    loop: Any
    _asynchronous: bool = False

    @property
    def asynchronous(self) -> bool:
        """Whether the caller runs on the loop, or the object is meant to."""
        return in_async_call(self.loop, default=bool(getattr(self, "_asynchronous", False)))

    def sync(
        self,
        func: Callable[..., Any],
        *args: Any,
        asynchronous: bool | None = None,
        callback_timeout: float | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call a coroutine function: on the loop return what can be awaited, elsewhere wait.

        Raises:
            TimeoutError: `callback_timeout` passed.
        """
        seconds = parse_timedelta(callback_timeout)
        if self.asynchronous if asynchronous is None else asynchronous:
            work = func(*args, **kwargs)
            return work if seconds is None else asyncio.wait_for(work, seconds)
        return sync(self.loop, func, *args, callback_timeout=seconds, **kwargs)


def in_async_call(loop: Any, default: bool = False) -> bool:
    """Whether the caller runs on `loop`; `default` if that is not running at all."""
    loop = getattr(loop, "asyncio_loop", loop)
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return default and not (loop is not None and loop.is_running())


class NoOpAwaitable:
    """Can be awaited, and need not be: what a method returns that is done either way."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class LateLoopEvent:
    """An `asyncio.Event` that can be made where no loop is."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def set(self) -> None:
        """Let all go on who wait, now and later."""
        self._made().set()

    def is_set(self) -> bool:
        """Whether it is."""
        return self._event is not None and self._event.is_set()

    def clear(self) -> None:
        """Let those wait who come from now on."""
        self._made().clear()

    async def wait(self) -> bool:
        """Until it is set; True."""
        return await self._made().wait()

    def _made(self) -> asyncio.Event:
        if self._event is None:
            self._event = asyncio.Event()
        return self._event


class EmptyContext:
    """A context that does nothing, for `with` and for `async with`."""

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *args: object) -> None:
        """Nothing."""

    async def __aenter__(self) -> None:
        """Nothing."""

    async def __aexit__(self, *args: object) -> None:
        """Nothing."""


empty_context = EmptyContext()


async def offload(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread of the loop's, where it sees the caller's context variables."""
    with offloaded():
        return await run_in_executor_with_context(None, func, *args, **kwargs)


async def run_in_executor_with_context(
    executor: Executor | None, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in an executor of threads, with the caller's context variables."""
    context = contextvars.copy_context()
    call = partial(context.run, func, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(executor, call)


async def All(args: Any, quiet_exceptions: Any = ()) -> list[Any]:
    """Wait for all of `args`; their results, in order.  The first that fails raises at once.

    Args:
        quiet_exceptions: what the others raise after that is logged, unless it is one of these.
    """
    waiting = [_as_future(one) for one in args]
    try:
        return list(await asyncio.gather(*waiting))
    except BaseException as error:
        for one in waiting:
            one.add_done_callback(partial(_log_unless, error, quiet_exceptions))
        raise


def _log_unless(told: BaseException, quiet: Any, ended: asyncio.Future[Any]) -> None:
    """Log what a future ended with, unless somebody is told of it."""
    error = None if ended.cancelled() else ended.exception()
    if error is not None and error is not told and not isinstance(error, quiet):
        _logger.error("One of several that were waited for failed: %s", error, exc_info=error)


async def Any_(args: Any, quiet_exceptions: Any = ()) -> list[Any]:
    """Wait for the first of `args`; a list with its result in its place and None elsewhere.

    Args:
        quiet_exceptions: not needed, as for `All`.
    """
    waiting = [_as_future(one) for one in args]
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    for one in waiting:
        if one in done and not one.cancelled():
            one.exception()  # it was looked at, so nothing is logged of it
    return [one.result() if one in done else None for one in waiting]


def _as_future(one: Awaitable[Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(one)


class set_thread_state:  # noqa: N801 -- known by this name
    """A context in which `dask.context.thread_state` has these attributes, in this thread."""

    def __init__(self, **kwargs: Any) -> None:
        self._new = kwargs
        self._old: dict[str, Any] = {}

    def __enter__(self) -> None:
        """Set them."""
        self._old = {k: getattr(thread_state, k) for k in self._new if hasattr(thread_state, k)}
        for name, value in self._new.items():
            setattr(thread_state, name, value)

    def __exit__(self, *args: object) -> None:
        """Set them back."""
        for name in self._new:
            if name in self._old:
                setattr(thread_state, name, self._old[name])
            else:
                delattr(thread_state, name)
