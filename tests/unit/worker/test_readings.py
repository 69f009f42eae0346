"""The memory of this process, as the system tells it."""

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from shoal.worker.shell.readings import RESET_BYTES, ProcessMemory

MIB = 1 << 20
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of peaks")


def test_what_is_resident_is_told_as_others_tell_it() -> None:
    theirs = psutil.Process().memory_info().rss
    assert abs(ProcessMemory().now() - theirs) < 20 * MIB


@on_linux
def test_a_peak_is_seen_once_however_short_it_was() -> None:
    memory = ProcessMemory()
    if not memory.sees_peaks:
        pytest.skip("the system does not let us")
    memory.peak(memory.now())
    held = bytearray(64 * MIB)
    del held
    now = memory.now()
    assert memory.peak(now) > now + 48 * MIB
    assert memory.peak(memory.now()) <= memory.now() + 2 * RESET_BYTES


@on_linux
def test_a_peak_is_told_once_though_nobody_has_begun_it_anew_yet() -> None:
    """That is left to a thread, which is late."""
    later: list[Callable[[], object]] = []
    memory = ProcessMemory(aside=later.append)
    if not memory.sees_peaks:
        pytest.skip("the system does not let us")
    for _ in range(2):
        held = bytearray(64 * MIB)
        del held
        now = memory.now()
        assert memory.peak(now) > now + 48 * MIB
        assert memory.peak(now) == now
        [begin_anew] = later
        later.clear()
        begin_anew()


def test_where_the_system_tells_nothing_a_look_has_to_do(tmp_path: Path) -> None:
    memory = ProcessMemory(str(tmp_path))
    now = memory.now()
    assert now > 0
    assert not memory.sees_peaks
    assert memory.peak(now) == now


def test_files_that_say_something_else_are_not_believed(tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("nonsense")
    (tmp_path / "status").write_text("VmHWM: nonsense")
    (tmp_path / "clear_refs").write_text("")
    memory = ProcessMemory(str(tmp_path))
    assert memory.now() > 0
    assert not memory.sees_peaks
