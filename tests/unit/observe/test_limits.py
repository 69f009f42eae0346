"""What a worker may use of its host, as people write it."""

import logging
import os
import resource
import sys
from pathlib import Path

import pytest

from shoal.observe.containers import Groups
from shoal.observe.errors import TooManyThreads, UnusableMemoryLimit
from shoal.observe.limits import (
    cpu_count,
    host_memory_bytes,
    memory_limit_bytes,
    process_memory_bytes,
    thread_count,
    threads_max,
)


def test_limits_are_bytes_texts_fractions_shares_or_none() -> None:
    """And never more than there is."""
    total = host_memory_bytes()
    assert memory_limit_bytes(None, 1) == memory_limit_bytes(0, 1) == 0
    assert memory_limit_bytes(10_000_000, 1) == 10_000_000
    assert memory_limit_bytes("10 MB", 1) == 10_000_000
    assert memory_limit_bytes("1 MiB", 1) == 2**20
    assert memory_limit_bytes(0.5, 1) == memory_limit_bytes("0.5", 1) == total // 2
    assert memory_limit_bytes(10 * total, 1) == total
    assert memory_limit_bytes("auto", cpu_count()) == total
    assert memory_limit_bytes("auto", 10 * cpu_count()) == total
    with pytest.raises(ValueError, match="much"):
        memory_limit_bytes("much", 1)


def test_a_limit_that_is_more_than_there_is_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "shoal"):
        assert memory_limit_bytes("1 PB", 1) <= host_memory_bytes()
        memory_limit_bytes("auto", 10 * cpu_count())
        memory_limit_bytes("1 PB", 1, warns=False)
    (record,) = caplog.records
    assert "memory_limit=1 PB is more than" in record.getMessage()


def test_no_process_has_more_than_the_system_allows_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_RSS)  # which Linux doesn't enforce
    allowed = process_memory_bytes()
    try:
        resource.setrlimit(resource.RLIMIT_RSS, (50 << 20, before[1]))
        assert process_memory_bytes() == min(allowed, 50 << 20)
        assert memory_limit_bytes("auto", cpu_count()) == process_memory_bytes()
        assert memory_limit_bytes(None, 1) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_RSS, before)


@pytest.mark.parametrize("limit", [-5, -0.5, "-5", "-1GiB", "-0.5"])
def test_less_than_no_memory_is_refused_however_it_is_written(limit: float | str) -> None:
    with pytest.raises(UnusableMemoryLimit, match=f"memory_limit={limit} .* less than no memory"):
        memory_limit_bytes(limit, 1)


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), "inf", "nan", "", "much", "50%"])
def test_what_is_no_size_is_refused(limit: float | str) -> None:
    with pytest.raises(UnusableMemoryLimit, match=f"memory_limit={limit} can't be: that is no"):
        memory_limit_bytes(limit, 1)


@pytest.mark.parametrize("limit", [1.5, "1.5", 1000.25])
def test_more_than_all_of_the_host_is_no_fraction(limit: float | str) -> None:
    with pytest.raises(UnusableMemoryLimit, match="fractions of the host's memory end at 1"):
        memory_limit_bytes(limit, 1)


def test_bytes_may_be_what_a_division_has_left() -> None:
    assert memory_limit_bytes(2**31 / 3, 1) == 2**31 // 3
    assert memory_limit_bytes("1 B", 1) == 1
    assert memory_limit_bytes(1.0, 1) == memory_limit_bytes("1", 1) == host_memory_bytes()


def test_threads_are_counted_in_whole_numbers_from_one() -> None:
    assert thread_count(None) == cpu_count()
    with pytest.raises(ValueError, match="nthreads=0 can't be"):
        thread_count(0)
    for asked in (1.5, "2"):
        with pytest.raises(TypeError, match="nthreads is a whole number"):
            thread_count(asked)  # type: ignore[arg-type]  # what users write


def test_more_threads_than_the_system_has_for_anybody_are_refused_before_one_starts() -> None:
    assert thread_count(threads_max()) == threads_max()
    with pytest.raises(TooManyThreads, match=rf"nthreads=99999999 .* than {threads_max()} threads"):
        thread_count(99_999_999)


def test_no_bound_is_told_where_the_system_tells_none(tmp_path: Path) -> None:
    found = threads_max(tmp_path, Groups(tmp_path))
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    assert found == (soft if soft > 0 and os.geteuid() else sys.maxsize)
