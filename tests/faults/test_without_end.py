"""Tasks that start processes or threads without end."""

import os
import subprocess
import threading

import dask
import pytest

from shoal import Client, LocalCluster
from shoal.nanny.bounding import enclose, release

MANY = 2000
BOUND = 100


def processes_without_end() -> int:
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(MANY):
            started.append(subprocess.Popen(["sleep", "60"]))
    except BlockingIOError:
        return len(started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return MANY


def threads_without_end() -> int:
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(MANY):
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return len(started)
    finally:
        end.set()
        for thread in started:
            thread.join()
    return MANY


@pytest.fixture
def _has_groups() -> None:
    process = subprocess.Popen(["sleep", "60"])
    group = enclose(process.pid, BOUND)
    process.kill()
    process.wait()
    if group is None:
        pytest.skip("this system does not let us make control groups")
    release(group)


@pytest.mark.usefixtures("_has_groups")
def test_a_worker_has_so_many_threads_and_processes_and_others_have_theirs() -> None:
    with (
        dask.config.set({"shoal.nanny.threads-max": BOUND}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        one, other = client.nthreads()
        for task in (processes_without_end, threads_without_end):
            assert 0 < client.submit(task, workers=one).result(timeout=60) < BOUND
        assert client.submit(os.getpid, workers=one, pure=False).result(timeout=20)
        assert client.submit(abs, -1, workers=other).result(timeout=20) == 1
