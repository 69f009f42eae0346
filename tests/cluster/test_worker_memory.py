"""Workers whose memory is short: they pause, go on, or are replaced; and all that is shown."""

import asyncio
import os
import time

import dask
import psutil

from shoal import Client, LocalCluster, get_worker
from shoal.observe.status import Status

LIMIT = 400 << 20
LEAKING = int(0.87 * LIMIT)
"""What a process has then."""
SECONDS_MAX = 20


def leak():
    """What a library might: memory that is no result, and stays.  Nearly all that there may be."""
    nbytes = LEAKING - psutil.Process().memory_info().rss
    page = os.sysconf("SC_PAGE_SIZE")
    leaked = get_worker().leaked = bytearray(nbytes)
    leaked[::page] = bytes(-(-nbytes // page))


def mend(dask_worker):
    dask_worker.leaked = None


def where():
    return get_worker().name, os.getpid()


def shown(client, name):
    """A worker as `scheduler_info` has it."""
    (found,) = [w for w in client.scheduler_info()["workers"].values() if w["name"] == name]
    return found


def until_paused(client, name):
    """As it is shown, once it says that it is paused."""
    end = time.monotonic() + SECONDS_MAX
    while (found := shown(client, name))["status"] != "paused":
        assert time.monotonic() < end, found
    return found


def test_a_worker_pauses_by_a_leak_and_goes_on_or_is_replaced_by_another_of_its_name():
    settings = {"shoal.worker.memory.recycle-after-seconds": 2.0}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=LIMIT) as cluster,
        Client(cluster) as client,
    ):
        _, first_pid = client.submit(where, workers=["0"], pure=False).result(SECONDS_MAX)
        client.submit(leak, workers=["0"], pure=False).result(SECONDS_MAX)
        paused = until_paused(client, "0")
        assert paused["metrics"]["memory"] > int(0.8 * LIMIT)
        assert client.cluster.scheduler.workers[paused["address"]].memory.unmanaged > int(
            0.8 * LIMIT
        )
        pinned = client.submit(where, workers=["0"], pure=False)
        elsewhere = client.gather([client.submit(where, pure=False) for _ in range(4)])
        assert {name for name, _ in elsewhere} == {"1"}
        assert not pinned.done()
        client.run(mend, workers=[paused["address"]])
        assert pinned.result(SECONDS_MAX) == ("0", first_pid)  # it goes on by itself

        kept = client.scatter(b"value" * 100_000, workers=["0"])  # which nobody can compute again
        client.submit(leak, workers=["0"], pure=False).result(SECONDS_MAX)
        name, pid = client.submit(where, workers=["0"], pure=False).result(SECONDS_MAX)
        assert name == "0"
        assert pid != first_pid
        assert client.submit(len, kept).result(SECONDS_MAX) == 500_000


def test_a_worker_pauses_by_hand_until_it_is_told_to_go_on():
    async def story():
        async with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, asynchronous=True
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            worker = cluster.workers[0]
            worker.status = Status.paused
            assert worker.status is Status.paused
            found = await client.gather([client.submit(where, pure=False) for _ in range(4)])
            assert {name for name, _ in found} == {"1"}
            assert cluster.scheduler.workers[worker.address].status is Status.paused
            pinned = client.submit(where, workers=[worker.address], pure=False)
            assert worker.memory_manager.memory_pause_fraction == 0.8
            worker.status = "running"
            assert (await pinned)[0] == "0"
            assert worker.status is Status.running

    asyncio.run(story())
