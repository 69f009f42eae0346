"""A few threads that may be held up, by a disk say, so that nothing else is.

They are begun with their first work, and left behind if they don't come back: a process must be
able to end though a disk hangs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
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
        self._threads: list[threading.Thread] = []
        self._nunfinished = 0  # given, and not answered

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
        work = Work(do, then, late)
        if seconds is not None:
            work.timer = self._loop.call_later(seconds, self._expire, work, seconds)
        self._nunfinished += 1
        if len(self._threads) < min(self._nunfinished, self._nthreads_max):
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._queue.put(work)
        return work

    async def do(self, function: Callable[[], Any], seconds: float) -> Any:
        """Have it done, and wait for it so long.

        Raises:
            TimeoutError: it has not come back by then.
            BaseException: what `function` raises.
        """
        done: asyncio.Future[Any] = self._loop.create_future()

        def then(value: Any, error: BaseException | None) -> None:
            if not done.done():
                if error is None:
                    done.set_result(value)
                else:
                    done.set_exception(error)

        work = self.begin(function, then, seconds)
        try:
            return await done
        finally:
            work.is_cancelled = True

    def close(self) -> list[threading.Thread]:
        """Do nothing that was not begun; returns the threads, which end when they come back."""
        while not self._queue.empty():
            self._queue.get()
        for _ in self._threads:
            self._queue.put(None)
        return self._threads

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            value, error = None, None
            if not work.is_cancelled:
                try:
                    value = work.do()
                except BaseException as raised:
                    error = raised
            try:
                self._loop.call_soon_threadsafe(self._done, work, value, error)
            except RuntimeError:
                return  # the loop was closed under a thread that was left behind
            del work, value, error  # or a large value would live until the next

    def _done(self, work: Work, value: Any, error: BaseException | None) -> None:
        self._nunfinished -= 1
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
