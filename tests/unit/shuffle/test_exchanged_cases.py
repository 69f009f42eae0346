"""Random tables and arrays, exchanged in one thread, are what pandas and numpy say they are."""

import pytest

from shoal.shuffle.inside import Fetched
from tests.exchanged import in_process
from tests.exchanged.kinds import KINDS, case_of, is_for_cluster
from tests.exchanged.running import CaseFailed, run_in_process

NCASES = 300
"""With those on a cluster.  `python -m tests.exchanged 0 10000` runs as many as one likes."""


# of dask's, as it reads instants with a time zone
pytestmark = pytest.mark.filterwarnings("ignore:Series.values returning:DeprecationWarning")


@pytest.mark.parametrize("first", range(0, NCASES, len(KINDS)))
def test_what_is_exchanged_is_what_it_was(first: int) -> None:
    for number in range(first, first + len(KINDS)):  # one of each kind
        if not is_for_cluster(number):
            run_in_process(number)


def test_most_cases_have_a_shuffle() -> None:
    assert sum(run_in_process(number) > 0 for number in range(10, 20)) >= 7


def test_a_case_is_always_the_same_and_each_tenth_is_for_a_cluster() -> None:
    assert case_of(7).words == case_of(7).words != case_of(17).words
    numbers = [n for n in range(NCASES) if is_for_cluster(n)]
    assert len(numbers) == NCASES // 10
    assert {n % len(KINDS) for n in numbers} == set(range(len(KINDS)))


def test_rows_that_are_lost_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = in_process.Host.fetch

    def without_the_first(self: in_process.Host, id: str, output: int, epoch: int) -> Fetched:
        fetched = whole(self, id, output, epoch)
        return fetched._replace(buffers=fetched.buffers[1:])

    monkeypatch.setattr(in_process.Host, "fetch", without_the_first)
    failed = 0
    for number in range(10, 20):
        try:
            run_in_process(number)
        except CaseFailed:
            failed += 1
    assert failed >= 5
