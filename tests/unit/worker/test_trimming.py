"""Freed memory is given back when it is much, and not again and again."""

import platform

import pytest

from shoal.worker.shell.trimming import KEPT_BUSY_BYTES, KEPT_IDLE_BYTES, Trimming, give_back

START = 60 << 20


@pytest.fixture
def trimming() -> Trimming:
    """One that has seen a worker as it starts."""
    trimming = Trimming()
    assert not trimming.is_due(START, 0, is_idle=True)
    return trimming


def test_an_idle_worker_gives_back_much(trimming: Trimming) -> None:
    assert not trimming.is_due(START + KEPT_IDLE_BYTES, 0, is_idle=True)
    assert trimming.is_due(START + KEPT_IDLE_BYTES + 1, 0, is_idle=True)


def test_a_busy_worker_keeps_more(trimming: Trimming) -> None:
    assert not trimming.is_due(START + KEPT_IDLE_BYTES + 1, 0, is_idle=False)
    assert trimming.is_due(START + KEPT_BUSY_BYTES + 1, 0, is_idle=False)


def test_a_worker_that_may_have_little_keeps_little() -> None:
    trimming = Trimming(limit=8 << 20)
    assert not trimming.is_due(START, 0, is_idle=False)
    assert not trimming.is_due(START + (1 << 20), 0, is_idle=False)
    assert trimming.is_due(START + (1 << 20) + 1, 0, is_idle=False)


def test_results_are_not_to_be_given_back(trimming: Trimming) -> None:
    results = 10 * KEPT_BUSY_BYTES
    assert not trimming.is_due(START + results, results, is_idle=True)


def test_what_could_not_be_given_back_is_not_tried_again(trimming: Trimming) -> None:
    full = START + 2 * KEPT_IDLE_BYTES
    assert trimming.is_due(full, 0, is_idle=True)
    assert not trimming.is_due(full, 0, is_idle=True)
    assert not trimming.is_due(full + KEPT_IDLE_BYTES, 0, is_idle=True)
    assert trimming.is_due(full + KEPT_IDLE_BYTES + 1, 0, is_idle=True)


def test_what_is_needed_is_the_least_that_was_seen(trimming: Trimming) -> None:
    assert not trimming.is_due(START // 2, 0, is_idle=True)
    assert trimming.is_due(START // 2 + KEPT_IDLE_BYTES + 1, 0, is_idle=True)


def test_the_c_library_is_asked_where_it_can() -> None:
    is_glibc = platform.libc_ver()[0] == "glibc"
    assert give_back() or not is_glibc
