"""Admission: strangers are counted, in all and per host; the log repeats itself rarely."""

import logging

import pytest

from shoal.comms.admission import Admission, AdmissionLimits, RateLimitedLog


def test_a_host_has_its_share_and_all_hosts_theirs() -> None:
    limits = AdmissionLimits(unauthenticated_max=5, unauthenticated_per_host_max=2)
    door = Admission(limits)
    assert [door.enter("a") for _ in range(3)] == [True, True, False]
    assert [door.enter("b") for _ in range(3)] == [True, True, False]
    assert [door.enter("c") for _ in range(2)] == [True, False]
    door.leave("a")
    assert door.enter("c")


def test_peers_that_are_not_counted_by_host_share_the_total_only() -> None:
    door = Admission(AdmissionLimits(unauthenticated_max=4, unauthenticated_per_host_max=1))
    assert [door.enter("") for _ in range(5)] == [True] * 4 + [False]


def test_one_subject_gets_one_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog()
    with caplog.at_level(logging.WARNING, "shoal.comms"):
        for now in (0.0, 1.0, 9.9, 10.0, 12.0):
            log.warning(now, "a", "a at %s", now)
        log.warning(12.0, "b", "b at %s", 12.0)
    assert [record.getMessage() for record in caplog.records] == [
        "a at 0.0",
        "a at 10.0",
        "b at 12.0",
    ]


def test_many_subjects_do_not_fill_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    """The oldest are forgotten, so they may be spoken of once more."""
    log = RateLimitedLog()
    with caplog.at_level(logging.WARNING, "shoal.comms"):
        log.warning(0.0, "first", "line")
        for number in range(2000):
            log.warning(0.0, str(number), "line")
        log.warning(0.0, "first", "again")
        log.warning(0.0, "1999", "never")
    assert caplog.records[-1].getMessage() == "again"
