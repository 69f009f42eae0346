"""Where work goes on real workers, and how much of it is in memory at once."""

import pytest

from benchmarks.memory.reducing import LIVING, PARTITION_NBYTES_MIN, reduction
from shoal import Client, LocalCluster, get_worker, wait

THREADS = 4
BLOCK_NBYTES = 4 << 20
NBLOCKS = 20


@pytest.mark.parametrize(
    ("nroots", "nshared"),
    [(2 * THREADS - 1, 0), (2 * THREADS, 0), (2 * THREADS + 1, 0), (24, 4), (24, 6)],
)
def test_no_more_is_loaded_than_threads_can_reduce_however_the_graph_begins(nroots, nshared):
    """Few roots, many, or many with small inputs in common: it makes no difference."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=THREADS, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        LIVING.take_most()
        graph = reduction(nroots, nshared, PARTITION_NBYTES_MIN)
        total = client.get(graph, "total", optimize_graph=False)
        assert total == sum(n % 251 for n in range(nroots)) * PARTITION_NBYTES_MIN
        assert 0 < LIVING.take_most() <= THREADS + 2


def add(large, small):
    return get_worker().name, len(large) + len(small)


def test_a_table_that_all_need_does_not_pull_tasks_away_from_their_large_inputs():
    """Half of the blocks are on each worker, the table on one: it is what moves."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        names = sorted(each["name"] for each in client.scheduler_info()["workers"].values())
        homes = [names[number % 2] for number in range(NBLOCKS)]
        blocks = [
            client.submit(bytes, BLOCK_NBYTES, key=f"block-{number}", workers=[home])
            for number, home in enumerate(homes)
        ]
        table = client.submit(bytes, BLOCK_NBYTES, key="table", workers=[names[0]])
        wait([*blocks, table])
        futures = client.map(add, blocks, small=table, pure=False)
        ran = client.gather(futures)
        assert {nbytes for _, nbytes in ran} == {2 * BLOCK_NBYTES}
        moved = [home for (name, _), home in zip(ran, homes, strict=True) if name != home]
        # A worker that is behind, as the machine is busy, loses the last of its line to the other;
        # a table that pulled tasks would take all ten of the worker that lacks it.
        assert len(moved) < NBLOCKS // 2
