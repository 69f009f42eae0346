"""How long the scheduler's loop keeps others waiting, asked for from inside of it.

`start_gauge` and `read_gauge` are for `client.run_on_scheduler`, which calls them on the loop.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

TICK_SECONDS = 0.004


@dataclass(frozen=True)
class Longest:
    """The worst of what a gauge saw."""

    late_seconds: float
    """How long a timer was overdue: by work of the loop, or since others had the processor."""
    busy_seconds: float
    """The processor time of the loop's thread between two ticks; without others' part in it."""


@dataclass
class Gauge:
    """A timer that asks to be called every few milliseconds, and notes when it was."""

    loop: asyncio.AbstractEventLoop
    tick_seconds: float = TICK_SECONDS
    longest_late_seconds: float = 0.0
    longest_busy_seconds: float = 0.0
    due_at: float = 0.0
    thread_seconds: float = 0.0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    def start(self) -> None:
        """From now on."""
        self.due_at = time.perf_counter() + self.tick_seconds
        self.thread_seconds = time.thread_time()
        self.timer = self.loop.call_later(self.tick_seconds, self.tick)

    def tick(self) -> None:
        """Note, and go on."""
        self.note()
        self.start()

    def note(self) -> None:
        """Note how late it is, and how much of that was the loop's own work."""
        late_seconds = time.perf_counter() - self.due_at
        busy_seconds = time.thread_time() - self.thread_seconds
        self.longest_late_seconds = max(self.longest_late_seconds, late_seconds)
        self.longest_busy_seconds = max(
            self.longest_busy_seconds, min(busy_seconds, late_seconds + self.tick_seconds)
        )

    def stop(self) -> Longest:
        """No more ticks; what has been going on since the last one counts."""
        assert self.timer is not None
        self.timer.cancel()
        self.note()
        return Longest(self.longest_late_seconds, self.longest_busy_seconds)


_gauges: list[Gauge] = []


def start_gauge(tick_seconds: float = TICK_SECONDS) -> None:
    """Begin to measure in this process."""
    gauge = Gauge(asyncio.get_running_loop(), tick_seconds)
    _gauges.append(gauge)
    gauge.start()


def read_gauge() -> Longest:
    """End what was begun last, and tell."""
    return _gauges.pop().stop()
