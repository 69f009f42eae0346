"""How often the memory of a process is looked at."""

import os

from shoal.nanny.memory import (
    GRACE_LOOK_SECONDS,
    GROWTH_BYTES_PER_SECOND,
    PAUSE_SECONDS_MAX,
    MemoryGuard,
)


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


def test_a_process_just_above_its_limit_has_a_moment_to_make_room() -> None:
    guard = MemoryGuard(pid=0, kill_above_nbytes=1000, interval_seconds=0.1)
    assert not guard.is_too_much(1010, now=1.0)
    guard.nbytes = 1010
    assert guard.pause_seconds == GRACE_LOOK_SECONDS
    assert not guard.is_too_much(1020, now=1.4)
    assert not guard.is_too_much(990, now=1.45)  # it has made some
    assert not guard.is_too_much(1010, now=1.6)
    assert guard.is_too_much(1010, now=2.2)


def test_a_process_that_goes_on_growing_has_none() -> None:
    guard = MemoryGuard(pid=0, kill_above_nbytes=1000, interval_seconds=0.1)
    assert not guard.is_too_much(1010, now=1.0)
    assert guard.is_too_much(1021, now=1.01)
