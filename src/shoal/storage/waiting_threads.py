"""A few threads that may be held up, by a disk say, so that nothing else is.

They are begun with their first work, and left behind if they don't come back: a process must be
able to end though a disk hangs.  To begin a thread takes as long as it waits for its turn, so the
loop begins one alone, and that the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any


class Work:
    """Something to be done, once."""

    __slots__ = ("do", "is_cancelled", "late", "then", "timer")

    def __init__(
        self,
        do: Callable[[], Any],
        then: Callable[[Any, BaseException | None], object],
        late: Callable[[Any], object] | None,
    ) -> None:
        self.do = do
        self.then = then
        self.late = late
        self.is_cancelled = False  # nobody waits for it
        self.timer: asyncio.TimerHandle | None = None


class WaitingThreads:
    """Does work in the order in which it comes, so much at once.  Belongs to one loop."""

    def __init__(self, name: str, nthreads: int) -> None:
        """`name`: of the threads."""
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._nthreads_max = nthreads
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._beginning = threading.Lock()  # whoever begins threads, or ends them, has this
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def begin(
        self,
        do: Callable[[], Any],
        then: Callable[[Any, BaseException | None], object],
        seconds: float | None = None,
        late: Callable[[Any], object] | None = None,
    ) -> Work:
        """Have `do` done by a thread; `then` gets what it returned, or raised, on the loop.

        Args:
            seconds: how long that may take, the time in the queue included; then `then` gets a
                TimeoutError, and `late` what is returned after that; None: as long as it takes.

        Raises:
            RuntimeError: the system has no thread for us.
        """
        if not self._threads:
            with self._beginning:
                self._begin_thread(self._work_first)
        work = Work(do, then, late)
        if seconds is not None:
            work.timer = self._loop.call_later(seconds, self._expire, work, seconds)
        self._queue.put(work)
        return work

    def _begin_thread(self, target: Callable[[], None]) -> None:
        """Lock held."""
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    async def do(
        self,
        function: Callable[[], Any],
        seconds: float,
        late: Callable[[Any], object] | None = None,
    ) -> Any:
        """Have it done, and wait for it so long.

        Args:
            late: gets what is returned once nobody waits for it any more.

        Raises:
            TimeoutError: it has not come back by then.
            BaseException: what `function` raises.
        """
        done: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

        def then(value: Any, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((value, error))  # a future refuses some kinds of errors

        work = self.begin(function, then, seconds, late)
        try:
            value, error = await done
        finally:
            work.is_cancelled = True
        if error is not None:
            raise error
        return value

    def close(self) -> list[threading.Thread]:
        """Do nothing that was not begun; returns the threads, which end when they come back."""
        self._is_closed = True
        while True:
            try:
                self._queue.get_nowait()
            except Empty:
                break
        with self._beginning:
            for _ in self._threads:
                self._queue.put(None)
            return self._threads

    def _work_first(self) -> None:
        """Begin the others, as many as the system has, and be one of them."""
        try:
            with self._beginning:
                while len(self._threads) < self._nthreads_max and not self._is_closed:
                    self._begin_thread(self._work)
        except RuntimeError:
            pass  # fewer do the same
        self._work()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            value, error = None, None
            if not work.is_cancelled:
                try:
                    value = work.do()
                except BaseException as raised:
                    error = raised
            work.do = _nothing  # what was done it with lives no longer than it has to
            try:
                self._loop.call_soon_threadsafe(self._done, work, value, error)
            except RuntimeError:
                return  # the loop was closed under a thread that was left behind
            del work, value, error  # or a large value would live until the next

    def _done(self, work: Work, value: Any, error: BaseException | None) -> None:
        if work.timer is not None:
            work.timer.cancel()
        if not work.is_cancelled:
            work.then(value, error)
        elif work.late is not None and error is None and value is not None:
            work.late(value)

    def _expire(self, work: Work, seconds: float) -> None:
        if not work.is_cancelled:
            work.is_cancelled = True
            work.then(None, TimeoutError(f"nothing has come back for {seconds:.0f} s"))


def _nothing() -> None:
    """What is left to be done."""
