"""Tasks that wait for others while a worker's memory is short."""

import numpy as np

from shoal import Client, LocalCluster, get_client

MB = 1_000_000


def first_of(nbytes):
    return float(np.ones(nbytes // 8)[0])


def first_of_another(nbytes):
    """Waits for a task that takes so much, with 160 MB in its hands."""
    kept = np.ones(20 * MB)
    return get_client().submit(first_of, nbytes, pure=False).result() + float(kept[0])


def test_a_task_that_is_waited_for_begins_though_what_waits_has_the_memory():
    """Two of 160 and 280 MB do not fit below 75 % of the limit beside the process."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=600 * MB, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        assert client.submit(first_of, 280 * MB, pure=False).result(timeout=30) == 1
        assert client.submit(first_of_another, 280 * MB).result(timeout=30) == 2
