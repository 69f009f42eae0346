"""Worker processes are killed at the worst moments; how long until the right result is there?"""

import os
import select
import signal
import time
from statistics import median

import dask
import numpy as np

from shoal import Client, LocalCluster, wait

ROUND_SECONDS_MAX = 30
TASK_SECONDS = 0.2


def make(n: int) -> np.ndarray:
    """A result too large to travel with messages."""
    return np.arange(n)


def total(array: np.ndarray) -> int:
    """Needs the whole array."""
    return int(array.sum())


def slow(marks: str) -> str:
    """Note who began it and when, then take a while."""
    with open(marks, "a") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\n")
    time.sleep(TASK_SECONDS)
    return "done"


def kill_the_only_holder(client: Client, n: int) -> float:
    """A needed result goes with its only holder; seconds from the kill to the right answer."""
    pid_by_address = client.run(os.getpid)
    array = client.submit(make, 100_000 + n, pure=False)
    wait(array, timeout=ROUND_SECONDS_MAX)
    (holder,) = client.who_has([array])[array.key]
    killed_at = time.monotonic()
    os.kill(pid_by_address[holder], signal.SIGKILL)
    result = client.submit(total, array, pure=False).result(timeout=ROUND_SECONDS_MAX)
    assert result == sum(range(100_000 + n))
    return time.monotonic() - killed_at


def kill_while_it_computes(client: Client, marks: str) -> float:
    """A worker dies as it runs a task; seconds from the kill to the answer, less the task's own."""
    os.mkfifo(marks)
    reader = os.open(marks, os.O_RDONLY | os.O_NONBLOCK)  # so that no task waits for a reader
    try:
        future = client.submit(slow, marks, pure=False)
        assert select.select([reader], [], [], ROUND_SECONDS_MAX)[0], "the task did not begin"
        pid = int(os.read(reader, 100).split()[0])
        killed_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        assert future.result(timeout=ROUND_SECONDS_MAX) == "done"
        return time.monotonic() - killed_at - TASK_SECONDS
    finally:
        os.close(reader)


def recoveries(nrounds: int, folder: str) -> dict[str, list[float]]:
    """Seconds of each recovery, by what was killed; each dead worker has a successor."""
    seconds: dict[str, list[float]] = {"only holder": [], "while computing": []}
    with (
        dask.config.set({"shoal.nanny.steady-seconds": 1e-6}),  # this is no crash loop, but us
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        for n in range(nrounds):
            for kind, taken in seconds.items():
                client.run(make, 1)  # workers have this module and numpy loaded, as at work
                if kind == "only holder":
                    taken.append(kill_the_only_holder(client, n))
                else:
                    taken.append(kill_while_it_computes(client, os.path.join(folder, f"marks-{n}")))
                client.wait_for_workers(2, timeout=ROUND_SECONDS_MAX)
    return seconds


def summary(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Median milliseconds by what was killed."""
    return {kind: 1000 * median(taken) for kind, taken in seconds.items()}
