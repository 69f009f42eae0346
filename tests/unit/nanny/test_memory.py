"""How often the memory of a process is looked at."""

import os

from shoal.nanny.memory import GROWTH_BYTES_PER_SECOND, PAUSE_SECONDS_MAX, MemoryGuard


def test_a_process_is_looked_at_the_more_often_the_closer_its_limit_is() -> None:
    guard = MemoryGuard(os.getpid(), kill_above_nbytes=1 << 50, interval_seconds=0.1)
    assert guard.pause_seconds == 0.1  # it was never looked at
    guard.look()
    assert guard.nbytes is not None
    assert guard.pause_seconds == PAUSE_SECONDS_MAX
    guard.kill_above_nbytes = guard.nbytes + GROWTH_BYTES_PER_SECOND // 2
    assert guard.pause_seconds == 0.5
    guard.kill_above_nbytes = guard.nbytes + 1
    assert guard.pause_seconds == 0.1


def test_a_process_is_never_looked_at_more_often_than_was_asked_for() -> None:
    guard = MemoryGuard(os.getpid(), kill_above_nbytes=1 << 50, interval_seconds=3.0)
    guard.look()
    assert guard.pause_seconds == 3.0
