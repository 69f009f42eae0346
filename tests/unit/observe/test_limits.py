"""What a worker may use of its host, as people write it."""

import logging
import resource

import pytest

from shoal.observe.limits import (
    cpu_count,
    host_memory_bytes,
    memory_limit_bytes,
    process_memory_bytes,
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


@pytest.mark.parametrize("limit", [-5, -0.5, float("-inf")])
def test_less_than_no_memory_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="memory_limit=-"):
        memory_limit_bytes(limit, 1)
