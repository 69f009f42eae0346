"""A scheduler is killed and started again: its clients go on with all that was computed."""

import logging
from pathlib import Path

import pytest

import shoal
from tests.faults.sessions import SECONDS_MAX, ncomputed, noted, site

NRESULTS = 300


def large_and_noted(number: int, marks: str) -> bytes:
    """A result that does not travel with messages."""
    return bytes(noted(number, marks) % 7 + 10_000)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, "shoal")


def test_futures_of_before_have_their_results_and_nothing_is_computed_again(tmp_path: Path):
    marks = str(tmp_path / "marks")
    with site(tmp_path) as place, shoal.Client(place.address) as client:
        small = client.map(noted, range(NRESULTS), marks=marks)
        large = client.map(large_and_noted, range(NRESULTS), marks=marks)
        shoal.wait([*small, *large], timeout=SECONDS_MAX)
        expected = client.gather(large)
        place.kill_scheduler()
        place.start_scheduler()
        assert client.gather(large) == expected
        later = client.submit(sum, small)
        assert later.result(timeout=SECONDS_MAX) == sum(n**2 for n in range(NRESULTS))
        assert ncomputed(marks) == 2 * NRESULTS
        del small, large, later
        assert place.end() == []


def test_what_is_there_needs_nothing_of_what_it_was_made_of(tmp_path: Path):
    """The first half was let go of, so that no worker has it any more."""
    marks = str(tmp_path / "marks")
    with site(tmp_path) as place, shoal.Client(place.address) as client:
        first = client.map(noted, range(NRESULTS), marks=marks)
        shoal.wait(first, timeout=SECONDS_MAX)
        second = client.map(noted, first, marks=marks)
        shoal.wait(second, timeout=SECONDS_MAX)
        del first
        place.kill_scheduler()
        place.start_scheduler()
        total = client.submit(sum, second)
        assert total.result(timeout=SECONDS_MAX) == sum(n**4 for n in range(NRESULTS))
        assert ncomputed(marks) == 2 * NRESULTS


def test_what_was_pending_is_computed_once(tmp_path: Path):
    marks = str(tmp_path / "marks")
    with site(tmp_path) as place, shoal.Client(place.address) as client:
        place.kill_scheduler()
        futures = client.map(noted, range(NRESULTS), marks=marks)
        place.start_scheduler()
        assert client.gather(futures) == [n**2 for n in range(NRESULTS)]
        assert ncomputed(marks) == NRESULTS
