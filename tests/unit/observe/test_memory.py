"""What the memory of workers is used for."""

from types import SimpleNamespace

import pytest

from shoal.observe.memory import MemoryState, memory_of, memory_of_all


def shown(state):
    names = ("managed", "managed_total", "unmanaged", "unmanaged_old", "unmanaged_recent")
    return [getattr(state, name) for name in (*names, "optimistic")]


def test_what_is_no_result_is_old_or_recent():
    state = MemoryState(process=1000, unmanaged_old=200, managed=300, spilled=50)
    assert shown(state) == [300, 350, 700, 200, 500, 500]
    assert repr(state).splitlines()[1:4:2] == [
        "  - managed by Dask   : 300 B",
        "  - unmanaged (recent): 500 B",
    ]


def test_results_that_seem_larger_than_the_process_are_all_of_it():
    state = MemoryState(process=100, unmanaged_old=200, managed=300, spilled=50)
    assert shown(state) == [100, 150, 0, 0, 0, 100]


def test_several_processes_are_added_up():
    one = MemoryState(process=10, unmanaged_old=2, managed=3, spilled=4)
    assert memory_of_all([one, one]) == MemoryState(
        process=20, unmanaged_old=4, managed=6, spilled=8
    )
    assert memory_of_all([]).process == 0
    assert one != memory_of_all([])


def worker(process, nbytes, spilled=0, old=0):
    return SimpleNamespace(
        memory_bytes=process, nbytes=nbytes, spilled_bytes=spilled, unmanaged_old_bytes=old
    )


@pytest.mark.parametrize(("process", "shown_process"), [(0, 7), (10, 10)])
def test_a_worker_has_at_least_its_results(process, shown_process):
    state = memory_of(worker(process, 7))
    assert (state.process, state.managed, state.unmanaged_old) == (shown_process, 7, 0)


def test_what_is_on_disk_counts_for_no_memory():
    state = memory_of(worker(process=100, nbytes=50, spilled=30, old=60))
    assert (state.managed, state.spilled, state.managed_total) == (20, 30, 50)
    assert (state.unmanaged, state.unmanaged_old, state.optimistic) == (80, 60, 80)
