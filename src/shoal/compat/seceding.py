"""A pool of threads whose functions may secede and rejoin, as `distributed` has it for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.thread import BrokenThreadPool
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final

from shoal.observe import inside
from shoal.worker.shell.slots import Slots

_current: Final[ContextVar[tuple[ThreadPoolExecutor, int] | None]] = ContextVar(
    "seceding_pool", default=None
)

Work = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class _Wake:
    """For a thread that may be too many; None, behind all work, tells one to end."""


_WAKE: Final = _Wake()


class ThreadPoolExecutor(Executor):
    """As that of `concurrent.futures`; functions may leave it, and come back to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As that of `concurrent.futures` takes them; without a number of threads, 5."""
        self._begin(*args, **kwargs)

    def _begin(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        self._max_workers = max_workers or 5
        if self._max_workers < 0:
            raise ValueError(f"max_workers is a number of threads, not {max_workers}")
        self._prefix = thread_name_prefix or f"ThreadPoolExecutor-{id(self)}"
        self._initialize = (initializer, initargs)
        self._slots = Slots(self._max_workers)
        self._queue: SimpleQueue[Work | _Wake | None] = SimpleQueue()
        self._by_number: dict[int, threading.Thread] = {}
        self._nstarted = 0
        self._closing = False
        self._broken: BrokenThreadPool | None = None

    @property
    def _threads(self) -> set[threading.Thread]:
        """Those that have not seceded, under the name that programs know."""
        with self._slots.lock:
            slots = self._slots
            return {t for number, t in self._by_number.items() if not slots.has_seceded(number)}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in one of the threads.

        Raises:
            BrokenThreadPool: the initializer raised; so do the futures of what was submitted.
            RuntimeError: it was shut down, or the system has no more threads.
        """
        future: Future[Any] = Future()
        with self._slots.lock:
            if self._broken is not None:
                raise self._broken
            if self._closing:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._slots.nalive - self._slots.nseceded < self._max_workers:
                self._start_thread()
            self._queue.put((future, fn, args, kwargs))
        return future

    def shutdown(
        self, wait: bool = True, timeout: float | None = None, *, cancel_futures: bool = False
    ) -> None:
        """Take on nothing more; what was submitted is still called, unless it is cancelled.

        Args:
            wait: for the threads to end.
            timeout: seconds to wait at most.
        """
        with self._slots.lock:
            self._closing = True
            self._slots.let_all_go_on()
            threads = list(self._by_number.values())
        for work in self._taken_back() if cancel_futures else ():
            work[0].cancel()
        for _ in threads:
            self._queue.put(None)
        deadline = None if timeout is None else monotonic() + timeout
        for thread in threads if wait else ():
            thread.join(None if deadline is None else max(0.0, deadline - monotonic()))

    def _taken_back(self) -> list[Work]:
        """What no thread has begun."""
        taken: list[Work] = []
        while True:
            try:
                work = self._queue.get_nowait()
            except Empty:
                return taken
            if work is None:
                self._queue.put(None)  # which tells another thread to end; no work is behind it
                return taken
            if isinstance(work, tuple):
                taken.append(work)

    def secede(self, number: int, adjust: bool) -> None:
        """The thread of this number goes on outside; `adjust`: another one takes its place."""
        with self._slots.lock:
            if not self._slots.has_seceded(number):
                self._slots.secede(number)
                self._adjust(starts=adjust)

    def rejoin(self, number: int) -> None:
        """It waits until one thread that is through with its work leaves, and takes its place."""
        with self._slots.lock:
            if not self._slots.has_seceded(number):
                return
            event = self._slots.rejoin(number)
            if self._closing:
                self._slots.let_in(number)
            self._adjust(starts=False)
        event.wait()

    def _adjust(self, *, starts: bool) -> None:
        nlacking = self._slots.settle()
        if self._closing:
            return  # as many are told to end as there are
        for _ in range(min(nlacking, self._queue.qsize() + 1) if starts else 0):
            self._start_thread()
        for _ in range(-nlacking):
            self._queue.put(_WAKE)

    def _start_thread(self) -> None:
        number = self._nstarted
        self._nstarted += 1
        thread = threading.Thread(
            target=self._work, args=(number,), name=f"{self._prefix}-{number}", daemon=True
        )
        thread.start()
        self._by_number[number] = thread
        self._slots.nalive += 1

    def _work(self, number: int) -> None:
        _current.set((self, number))
        initialize, arguments = self._initialize
        if initialize is not None:
            try:
                initialize(*arguments)
            except BaseException as error:
                self._break(error)
                return
        while True:
            work = self._queue.get()
            if work is None:
                return
            if isinstance(work, _Wake):
                if self._leaves(number):
                    return
                continue
            future, function, args, kwargs = work
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)
            del work, future, function, args, kwargs
            if self._slots.some_leave and self._leaves(number):
                return

    def _break(self, error: BaseException) -> None:
        """No thread can be made ready: nobody shall wait for what none would call."""
        broken = BrokenThreadPool(f"The initializer of the pool raised {error!r}: make another one")
        broken.__cause__ = error
        with self._slots.lock:
            self._broken = broken
        for work in self._taken_back():
            if work[0].set_running_or_notify_cancel():
                work[0].set_exception(broken)

    def _leaves(self, number: int) -> bool:
        with self._slots.lock:
            if not self._slots.leave(number):
                return False
            del self._by_number[number]
            return True


def secede(adjust: bool = True) -> None:
    """Leave the pool whose thread calls, or give the slot of the calling task to others.

    Raises:
        NotInTask: neither applies (a ValueError).
    """
    current = _current.get()
    if current is None:
        inside.secede()
    else:
        current[0].secede(current[1], adjust)


def rejoin() -> None:
    """Wait until there is room for the calling thread, and take it.

    Raises:
        NotInTask: the caller is in no such pool, and no task (a ValueError).
    """
    current = _current.get()
    if current is None:
        inside.rejoin()
    else:
        current[0].rejoin(current[1])
