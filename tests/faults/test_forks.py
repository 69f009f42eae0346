"""What a task forks has copies of its worker's connections, and lives on when that is killed."""

import os
import signal
from multiprocessing import get_context
from os import getpid
from time import sleep

import pytest

from shoal import Client, LocalCluster


def fork_inside() -> int:
    process = get_context("fork").Process(target=sleep, args=(60,))
    process.start()
    assert process.pid is not None
    return process.pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_worker_that_is_killed_is_noticed_though_a_fork_of_it_lives_on() -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        forked = client.submit(fork_inside).result(timeout=20)
        [killed] = client.run(getpid).values()
        os.kill(killed, signal.SIGKILL)
        try:
            assert client.submit(getpid).result(timeout=20) != killed
        finally:
            os.kill(forked, signal.SIGKILL)  # which fails if it has gone before
