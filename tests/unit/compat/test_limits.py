"""`parse_memory_limit` reads what workers read, and says so if it is more than there is."""

import logging

import pytest

from shoal.compat.limits import parse_memory_limit
from shoal.observe.limits import host_memory_bytes, memory_limit_bytes

_logger = logging.getLogger("tests")


@pytest.mark.parametrize("limit", [None, 0, "0", 0.5, "0.5", 10_000_000, "10 MB", "10000000"])
def test_limits_are_read_as_workers_read_them(limit: str | float | None) -> None:
    assert parse_memory_limit(limit, 1, logger=_logger) == (memory_limit_bytes(limit, 1) or None)


def test_a_share_is_of_all_cores() -> None:
    assert parse_memory_limit("auto", 1, 4, logger=_logger) == host_memory_bytes() // 4


def test_more_than_there_is_is_told(caplog: pytest.LogCaptureFixture) -> None:
    there = host_memory_bytes()
    assert parse_memory_limit(10 * there, 1, logger=_logger) == there
    assert "more than this machine has" in caplog.text
