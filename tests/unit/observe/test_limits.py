"""What a worker may use of its host, as people write it."""

import pytest

from shoal.observe.limits import cpu_count, host_memory_bytes, memory_limit_bytes


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
