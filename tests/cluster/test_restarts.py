"""A cluster of processes that die: who is started again, who is not, and what is said of it."""

import asyncio
import logging
import os
import signal

import dask
import psutil
import pytest

from shoal import Client, LocalCluster, Worker
from shoal.deploy.errors import ClusterClosed
from shoal.nanny.errors import CrashLoop, ProcessDied
from shoal.protocol.membership import CloseWorkers
from shoal.worker.shell.context import get_worker


def test_a_worker_that_dies_is_told_of_and_started_again_under_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING, "shoal"),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        worker = cluster.workers[1]
        pid, address = worker.pid, worker.worker_address
        os.kill(pid, signal.SIGKILL)
        names = client.submit(lambda: get_worker().name, workers=["1"]).result(20)
        assert names == "1"
        assert cluster.workers[1] is worker
        assert worker.status == "running"
        assert worker.pid != pid
        assert worker.worker_address != address
        assert cluster.observed == cluster.plan == {0, 1}
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith(f"The process of worker 1 ({address}, process id {pid}) died: killed by")
    assert "SIGKILL (somebody ended it, or the system did because memory ran out" in said
    assert said.endswith("Another takes its place")


def test_a_worker_that_somebody_terminates_is_started_again_too() -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        pid = client.submit(os.getpid).result(10)
        os.kill(pid, signal.SIGTERM)
        cluster.sync(cluster.workers[0].process.finished, callback_timeout=10)
        assert client.submit(os.getpid, pure=False).result(20) != pid


def test_a_worker_that_the_scheduler_lets_go_is_not_started_again() -> None:
    async def story() -> None:
        async with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, asynchronous=True
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            leaving = cluster.workers[0]
            await client.session.call(lambda n: CloseWorkers(n, [leaving.worker_address]))
            await leaving.finished()
            assert leaving.status == "closed"
            assert leaving.failure is None
            assert cluster.plan == cluster.requested == cluster.observed == {1}
            await cluster.scale(2)
            assert cluster.plan == {1, 2}

    asyncio.run(story())


def test_a_worker_is_started_again_even_if_what_started_it_is_dead() -> None:
    """Then nobody is told how it ended; that it did is seen all the same."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        worker = psutil.Process(cluster.workers[0].pid)
        mother = worker.parent()
        assert mother is not None
        if mother.pid != os.getpid():
            mother.kill()
        worker.kill()
        assert client.submit(os.getpid).result(20) not in (worker.pid, os.getpid())


def test_a_worker_whose_time_is_over_leaves_and_is_replaced_if_that_is_wanted() -> None:
    settings = {
        "distributed.worker.lifetime.duration": "300ms",
        "distributed.worker.lifetime.stagger": "10ms",
        "shoal.nanny.steady-seconds": 0.1,
    }
    for restart in (False, True):
        with (
            dask.config.set({**settings, "distributed.worker.lifetime.restart": restart}),
            LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        ):
            worker = cluster.workers[0]
            first = worker.process
            cluster.sync(first.finished, callback_timeout=10)
            if restart:
                cluster.wait_for_workers(1, timeout=20)
                assert worker.process is not first
            else:
                cluster.sync(worker.finished, callback_timeout=10)
                assert cluster.plan == cluster.requested == set()


QUICK = {"shoal.nanny.deaths-max": 3, "shoal.nanny.restart-pause-seconds": 0.01}


def test_a_crash_loop_ends_with_its_cause_and_so_does_what_waits_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING, "shoal"),
        dask.config.set(QUICK | {"distributed.scheduler.allowed-failures": 100}),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        killer = client.submit(os._exit, 7)
        needs_killer = client.submit(str, killer)
        with pytest.raises(CrashLoop, match=r"worker 0 died 3 times in a row.*exit code 7"):
            client.wait_for_workers(2, timeout=20)
        with pytest.raises(CrashLoop, match="exit code 7"):
            cluster.wait_for_workers(1, timeout=20)
        with pytest.raises(CrashLoop, match="exit code 7"):
            killer.result(20)
        with pytest.raises(CrashLoop, match="exit code 7"):
            needs_killer.result(20)
        later = client.submit(sum, [1, 2])
        for wait_for_it in (later.result, client.submit(str, later).result):
            with pytest.raises(CrashLoop, match=r"exit code 7(.|\n)*cluster\.scale\(n\)"):
                wait_for_it(20)
        with Client(cluster, set_as_default=False) as other:
            (failed,) = other.map(abs, [-1])
            with pytest.raises(CrashLoop, match="exit code 7"):
                other.gather([failed])
        assert cluster.workers[0].status == "failed"
        assert ", running: The process of worker 0 died 3 times" in repr(cluster)
        assert "worker 0 died 3 times" in cluster._repr_html_()
        cluster.scale(1)
        client.wait_for_workers(1, timeout=20)
        assert client.submit(os.getpid).result(10) == cluster.workers[0].pid
        assert ", workers=1, threads=" in repr(cluster)
    words = [record.getMessage() for record in caplog.records]
    assert [text for text in words if "of at most 3 in a row" in text]
    assert "No worker of the cluster" in words[-1]
    assert "cluster.scale(n) starts new ones" in words[-1]


def test_workers_that_somebody_else_has_started_go_on_after_the_clusters_own() -> None:
    """What waits is theirs then, and whoever waits for workers may count them."""

    async def story() -> None:
        async with (
            LocalCluster(
                n_workers=1, threads_per_worker=1, processes=True, asynchronous=True
            ) as cluster,
            Worker(cluster.scheduler_address, name="other", token=cluster.token) as other,
            Client(cluster, asynchronous=True) as client,
        ):
            own = cluster.workers[0]
            killer = client.submit(os._exit, 7, workers=["0"])
            ours = client.submit(os.getpid, workers=["other"])
            with pytest.raises(CrashLoop, match="exit code 7"):
                await client.wait_for_workers(3)
            assert own.status == "failed"
            assert await ours == os.getpid()
            assert list(await client.nthreads()) == [other.address]
            await client.wait_for_workers(1)
            await cluster.wait_for_workers(1)
            assert killer.status == "pending"  # a worker may come that may run it

    with dask.config.set(QUICK | {"distributed.scheduler.allowed-failures": 100}):
        asyncio.run(story())


def test_a_worker_that_can_not_be_added_says_why_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Somebody else's worker has the name that it would have."""
    with (
        caplog.at_level(logging.WARNING, "shoal"),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
    ):
        other = Worker(cluster.scheduler_address, name="1", nthreads=1, token=cluster.token)
        cluster.sync(other.start)
        cluster.scale(2)
        with pytest.raises(ProcessDied, match=r"worker 1 could not start: .*the name '1' already"):
            cluster.wait_for_workers(3, timeout=20)
        assert cluster.observed == {0}
        cluster.sync(other.close)
    (record,) = caplog.records
    assert record.exc_info is None
    assert "worker 1 could not start: " in record.getMessage()


@pytest.mark.parametrize("processes", [True, False])
def test_a_cluster_that_a_client_has_shut_down_can_be_scaled_to_nothing_no_more_than_to_more(
    processes: bool,
) -> None:
    """At once, though its processes have not ended yet."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=processes, dashboard_address=None
    ) as cluster:
        client = Client(cluster.scheduler_address)
        client.shutdown()
        for n in (0, 2, 0):
            with pytest.raises(ClusterClosed, match="its scheduler has ended"):
                cluster.scale(n)


def test_the_death_of_the_scheduler_is_the_end_of_its_cluster_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "shoal"):
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True)
        worker = cluster.workers[0].process
        os.kill(cluster.scheduler.pid, signal.SIGKILL)
        cluster.sync(worker.finished, callback_timeout=10)
        assert cluster.status == "failed"
        with pytest.raises(ClusterClosed, match=r"scheduler has ended \(killed by SIGKILL"):
            cluster.scale(2)
        cluster.close()
        assert cluster.status == "closed"
    (record,) = caplog.records
    assert "has ended (killed by SIGKILL" in record.getMessage()
