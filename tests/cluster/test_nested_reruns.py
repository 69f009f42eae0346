"""Tasks that have others do things: by one client for each worker, and again if the worker dies."""

import os
import signal
import threading

from shoal import Client, LocalCluster, get_client, get_worker
from tests.cluster.conftest import SMALL

NPARTS = 20


def note_and_return(i, folder):
    with open(os.path.join(folder, "runs"), "a") as runs:
        runs.write(f"{i}\n")
    return i


def drive(folder):
    """Have others do the parts; its first run dies when they have."""
    client = get_client()
    parts = client.map(note_and_return, range(NPARTS), folder=folder)
    total = sum(client.gather(parts))
    mark = os.path.join(folder, "first run")
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return total


def test_a_task_whose_worker_died_finds_what_it_had_others_do(tmp_path):
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        assert client.submit(drive, str(tmp_path)).result(timeout=30) == sum(range(NPARTS))
        runs = (tmp_path / "runs").read_text().split()
        assert sorted(set(map(int, runs))) == list(range(NPARTS))
        assert len(runs) <= NPARTS + 1  # of what was in the dead worker's memory alone, nothing


def meet(barrier_of):
    """Which client a thread's task has, and what it finds of another's future."""
    with lock:
        barrier = barriers.setdefault(get_worker().address, threading.Barrier(barrier_of))
    client = get_client()
    mine = client.submit(abs, -threading.get_ident(), pure=False)
    with lock:
        made.append(mine)
    barrier.wait(10)
    return client.id, sum(client.gather(list(made)))


def test_threads_of_a_worker_share_one_client_and_its_futures():
    options = SMALL | {"n_workers": 1, "threads_per_worker": 4, "processes": False}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        found = client.gather([client.submit(meet, 4, pure=False) for _ in range(4)])
        assert len({name for name, _ in found}) == 1
        assert len({total for _, total in found}) == 1
        made.clear()


lock, made, barriers = threading.Lock(), [], {}
