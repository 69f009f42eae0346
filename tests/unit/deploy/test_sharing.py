"""A machine is divided so that every core has one thread, and memory is not promised twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.deploy import sharing
from shoal.deploy.sharing import memory_limit_nbytes, nprocesses_nthreads, workers_and_threads
from shoal.observe.limits import host_memory_bytes


@given(st.integers(1, 2000))
def test_every_core_gets_exactly_one_thread(ncores: int) -> None:
    nprocesses, nthreads = nprocesses_nthreads(ncores)
    assert nprocesses * nthreads == ncores
    assert nprocesses**2 >= ncores


@pytest.mark.parametrize(
    ("ncores", "expected"),
    [(1, (1, 1)), (4, (4, 1)), (8, (4, 2)), (16, (4, 4)), (36, (6, 6)), (80, (10, 8))],
)
def test_few_cores_get_processes_and_many_get_threads_too(
    ncores: int, expected: tuple[int, int]
) -> None:
    assert nprocesses_nthreads(ncores) == expected


@pytest.mark.parametrize(
    ("given_counts", "processes", "expected"),
    [
        ((None, None), True, (4, 2)),
        ((None, None), False, (1, 8)),
        ((None, 3), True, (2, 3)),
        ((None, 3), False, (1, 3)),
        ((3, None), True, (3, 3)),
        ((3, 5), True, (3, 5)),
        ((0, None), True, (0, 8)),
        ((None, 100), True, (1, 100)),
    ],
)
def test_what_is_left_open_follows_from_what_is_given(
    monkeypatch: pytest.MonkeyPatch,
    given_counts: tuple[int | None, int | None],
    processes: bool,
    expected: tuple[int, int],
) -> None:
    monkeypatch.setattr(sharing, "CPU_COUNT", 8)
    monkeypatch.setattr(sharing.nprocesses_nthreads, "__defaults__", (8,))
    assert workers_and_threads(*given_counts, processes=processes) == expected


def test_equal_workers_share_the_memory_and_none_gets_more_than_there_is() -> None:
    host = host_memory_bytes()
    assert memory_limit_nbytes("auto", 4) == host // 4
    assert memory_limit_nbytes("auto", 0) == host
    assert memory_limit_nbytes(0, 4) == memory_limit_nbytes(None, 4) == 0
    assert memory_limit_nbytes("100MB", 4) == 100_000_000
    assert memory_limit_nbytes(0.5, 4) == host // 2
    assert memory_limit_nbytes(10 * host, 4) == host


def test_a_text_that_is_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="plenty"):
        memory_limit_nbytes("plenty", 1)
