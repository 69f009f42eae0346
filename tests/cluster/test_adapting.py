"""Clusters whose number of workers follows their load."""

import asyncio
import logging
import math
import threading
from typing import Any

import dask.config
import pytest

from shoal import Adaptive, Client, LocalCluster, Scheduler, SpecCluster, Worker
from shoal.deploy.cluster import Cluster
from shoal.deploy.job import ProcessInterface
from shoal.deploy.subprocess import SubprocessCluster
from shoal.testing.clusters import gen_test
from tests.until import until

OF_NOBODY: dict[str, Any] = {
    "n_workers": 0,
    "threads_per_worker": 1,
    "processes": False,
    "asynchronous": True,
    "dashboard_address": None,
}
QUICK: dict[str, Any] = {"interval": "5ms", "target_duration": "10ms"}
SCHEDULER = {"cls": Scheduler, "options": {"dashboard": False}}
WORKER = {"cls": Worker, "options": {"nthreads": 1, "memory_limit": "1GB"}}

gate = threading.Event()
nruns: list[int] = []


@pytest.fixture(autouse=True)
def closed_gate():
    gate.clear()
    nruns.clear()
    yield
    gate.set()


def pass_gate(number: int) -> int:
    gate.wait(30)
    return number


def made(number: int) -> bytes:
    """Too large to travel with messages, and known when it is made again."""
    nruns.append(number)
    return bytes([number]) * 10_000


@gen_test()
async def test_a_cluster_grows_under_load_and_shrinks_after():
    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(maximum=3, **QUICK)
        futures = client.map(pass_gate, range(10))
        await until(lambda: len(cluster.observed) == 3)
        assert adaptive.log[-1][1] == {"status": "up", "n": 3}
        gate.set()
        assert await client.gather(futures) == list(range(10))
        del futures
        await until(lambda: not cluster.observed)
        assert adaptive.log[-1][1]["status"] == "down"


def test_a_cluster_of_processes_grows_under_load_and_shrinks_after():
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        adaptive = cluster.adapt(maximum=2, interval="20ms", target_duration="10ms")
        assert client.gather(client.map(abs, range(-20, 0))) == list(range(20, 0, -1))
        assert 1 <= max(done["n"] for _, done in adaptive.log if "n" in done) <= 2
        cluster.sync(until, lambda: not cluster.workers)


@gen_test()
async def test_bounds_hold_and_a_second_call_takes_the_place_of_the_first():
    async with LocalCluster(**OF_NOBODY) as cluster:
        first = cluster.adapt(minimum=2, **QUICK)
        await until(lambda: len(cluster.observed) == 2)
        second = cluster.adapt(minimum=0, maximum=1)
        assert (first.state, first.periodic_callback) == ("stopped", None)
        assert second.interval == first.interval  # what is not given is as before
        await until(lambda: not cluster.observed)


@gen_test()
async def test_a_cluster_that_shrinks_keeps_its_results_and_makes_none_again():
    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        cluster.adapt(minimum=3, wait_count=1, **QUICK)
        await client.wait_for_workers(3)
        futures = client.map(made, range(9))
        scattered = await client.scatter([bytes(10_000 + n) for n in range(6)], hash=False)
        await client.gather(futures)
        cluster.adapt(minimum=0, maximum=1)
        await until(lambda: len(cluster.scheduler.workers) == 1)
        await until(lambda: len(cluster.workers) == 1)
        assert [len(value) for value in await client.gather(futures)] == [10_000] * 9
        assert [len(v) for v in await client.gather(scattered)] == [10_000 + n for n in range(6)]
        assert sorted(nruns) == list(range(9))


@gen_test()
async def test_a_worker_stays_whose_results_nobody_can_take():
    class Ruthless(Adaptive):
        async def target(self) -> int:
            return self.wanted

    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        Ruthless.wanted = 1
        adaptive = cluster.adapt(Adaptive=Ruthless, interval="5ms", wait_count=1)
        future = client.submit(made, 1)
        await future
        Ruthless.wanted = 0
        await until(lambda: sum(done["status"] == "down" for _, done in adaptive.log) >= 3)
        assert len(cluster.observed) == 1
        assert len(await future.result()) == 10_000
        assert nruns == [1]
        del future
        await until(lambda: not cluster.observed)


@gen_test()
async def test_an_error_in_a_look_is_logged_and_the_cluster_goes_on(caplog):
    class Clumsy(Adaptive):
        nfailures = 0

        async def scale_up(self, n: int) -> None:
            if not self.nfailures:
                self.nfailures += 1
                raise OSError("the batch system is not there")
            await super().scale_up(n)

    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        with caplog.at_level(logging.WARNING):
            adaptive = cluster.adapt(Adaptive=Clumsy, **QUICK)
            assert await client.submit(abs, -1) == 1
        assert "encountered an error" in caplog.text
        assert adaptive.nfailures == 1
        assert (adaptive.state, adaptive.failure) == ("running", None)


@gen_test()
async def test_spare_workers_are_there_before_any_work_is():
    async with LocalCluster(**OF_NOBODY) as cluster:
        adaptive = cluster.adapt(maximum=5, spare=2, **QUICK)
        await until(lambda: len(cluster.observed) == 2)
        assert "target 2 (nothing to do, 2 spare)" in str(adaptive.decisions[-1])


@gen_test()
async def test_short_pauses_cost_nobody_a_worker():
    """Looks are much more frequent than the pauses are long, but starts take longer."""
    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(maximum=1, interval="1ms", wait_count=1)
        adaptive.ripening.start_seconds = 60.0  # as if it had been seen
        for number in range(5):
            assert await client.submit(abs, -number) == number
            await until(lambda: "keeping 1 that could go for" in repr(adaptive))
            nlooks = adaptive.nlooks
            await until(lambda n=nlooks: adaptive.nlooks > n + 5)
        assert [done for _, done in adaptive.log] == [{"status": "up", "n": 1}]


@gen_test()
async def test_what_is_decided_is_shown_and_why():
    async with (
        LocalCluster(**OF_NOBODY, name="tide") as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(maximum=4, interval="5ms", target_duration="1s")
        futures = client.map(pass_gate, range(6))
        await until(lambda: len(cluster.observed) == 3)
        line = "target 3 (6 tasks: 3.0 s of work to be done in 1.0 s), have 0"
        assert str(adaptive.decisions[0]) == line
        assert "minimum=0, maximum=4, running: target 3" in repr(adaptive)
        assert "Scaling: " in cluster._repr_html_()
        logs = await cluster.get_logs(scheduler=False, workers=False)
        assert f"The cluster tide grows: {line}" in logs["Cluster"]
        gate.set()
        await client.gather(futures)


@gen_test()
async def test_whoever_asks_what_a_task_waits_for_is_told_what_the_cluster_does():
    async with (
        LocalCluster(**OF_NOBODY, name="tide") as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(maximum=0, **QUICK)
        future = client.submit(abs, -1)
        await until(lambda: adaptive.decision and "1 task" in str(adaptive.decision))
        nlooks = adaptive.nlooks
        await until(lambda: adaptive.nlooks > nlooks + 1)
        text = await client.explain(future)
        assert "Cluster-tide adapts: target 0 (1 task: 500 ms of work" in text


class Job(ProcessInterface):
    """Starts two workers, in this process."""

    def __init__(self, scheduler: str, name: Any = None, **options: Any) -> None:
        super().__init__(scheduler, name)
        self.pair: list[Worker] = []

    async def start(self) -> None:
        self.pair = [Worker(self.scheduler, name=f"{self.name}-{n}", nthreads=1) for n in (0, 1)]
        await asyncio.gather(*self.pair)
        await super().start()

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self.pair))
        await super().close()


@gen_test()
async def test_workers_of_one_job_come_and_go_together():
    """Three are deserved, so two jobs run, with four; that is no reason to end one."""
    job = {"cls": Job, "options": {}, "group": ["-0", "-1"]}
    async with (
        SpecCluster(scheduler=SCHEDULER, worker=job, asynchronous=True) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(maximum=3, wait_count=1, **QUICK)
        futures = client.map(pass_gate, range(3))
        await until(lambda: len(cluster.observed) == 4)
        nlooks = adaptive.nlooks
        await until(lambda: adaptive.nlooks > nlooks + 5)
        assert [done for _, done in adaptive.log] == [{"status": "up", "n": 3}]
        gate.set()
        await client.gather(futures)
        del futures
        await until(lambda: not cluster.workers)


@gen_test()
async def test_a_worker_that_was_lost_is_started_anew():
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}):
        async with SpecCluster(scheduler=SCHEDULER, worker=WORKER, asynchronous=True) as cluster:
            cluster.adapt(minimum=1, maximum=1, interval="5ms")
            await until(lambda: cluster.observed)
            await cluster
            (first,) = cluster.workers.values()
            await first.close()
            await until(lambda: cluster.observed and first not in cluster.workers.values())


class Refused(ProcessInterface):
    """Can't be started before the gate is open."""

    async def start(self) -> None:
        if not gate.is_set():
            raise OSError("no more than you have")
        self.worker = Worker(self.scheduler, name=self.name, nthreads=1)
        await self.worker
        await super().start()

    async def close(self) -> None:
        if gate.is_set():
            await self.worker.close()
        await super().close()


@gen_test()
async def test_a_worker_that_could_not_start_is_tried_again_and_it_is_shown_why(caplog):
    refused = {"cls": Refused, "options": {}}
    with caplog.at_level(logging.CRITICAL):
        async with SpecCluster(scheduler=SCHEDULER, worker=refused, asynchronous=True) as cluster:
            adaptive = cluster.adapt(minimum=1, interval="5ms")
            await until(lambda: "the latest start failed: no more than you" in repr(adaptive))
            gate.set()
            await until(lambda: cluster.observed)
            await until(lambda: "failed" not in repr(adaptive))


def test_a_cluster_of_subprocesses_adapts():
    """It has to ask its scheduler who is there, and its names are numbers."""
    with (
        SubprocessCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        cluster.adapt(maximum=2, interval="20ms", target_duration="10ms")
        cluster.sync(until, lambda: not cluster.workers)
        assert client.gather(client.map(abs, range(-9, 0))) == list(range(9, 0, -1))


@gen_test()
async def test_workers_that_a_function_says_belong_together_go_together():
    names = ("a-1", "a-2", "b-1", "b-2")
    async with SpecCluster(
        dict.fromkeys(names, WORKER), SCHEDULER, WORKER, asynchronous=True
    ) as cluster:
        cluster.adapt(minimum=1, wait_count=1, worker_key=first_letter, interval="5ms")
        await until(lambda: len(cluster.scheduler.workers) == 2)
        assert len({worker.name[0] for worker in cluster.scheduler.workers.values()}) == 1


def first_letter(worker):
    return worker.name[0]


@gen_test()
async def test_cores_and_memory_are_counted_in_workers():
    options = OF_NOBODY | {"threads_per_worker": 2, "memory_limit": "3 GB"}
    async with LocalCluster(**options) as cluster:
        adaptive = cluster.adapt(minimum_cores=3, maximum_cores=9)
        assert (adaptive.minimum, adaptive.maximum) == (2, 4)
        adaptive = cluster.adapt(
            minimum_cores=1, minimum_memory="7GB", maximum_cores=10, maximum_memory="1 TB"
        )
        assert (adaptive.minimum, adaptive.maximum) == (3, 5)
    async with SpecCluster(scheduler=SCHEDULER, asynchronous=True) as cluster:
        with pytest.raises(ValueError, match="New workers have no nthreads="):
            cluster.adapt(minimum_cores=1)


@gen_test()
async def test_adaptivity_ends_with_its_cluster_and_when_it_is_told_to():
    async with LocalCluster(**OF_NOBODY) as cluster:
        adaptive = cluster.adapt(minimum=1, **QUICK)
        assert adaptive.state == "starting"
        await until(lambda: cluster.observed)
        looks = adaptive.periodic_callback
        assert looks.is_running()
        adaptive.stop()
        assert (adaptive.state, looks.is_running()) == ("stopped", False)
        assert cluster.observed == {0}  # it is left as it is
        other = cluster.adapt(minimum=1)
    assert other.state == "stopped"
    assert (other.minimum, other.maximum) == (1, math.inf)


@gen_test()
async def test_what_is_never_looked_at_again_is_not_kept_alive():
    async with LocalCluster(**OF_NOBODY) as cluster:
        adaptive = Adaptive(cluster, interval="1ms")
        looks = adaptive.periodic_callback
        await until(looks.is_running)
        del adaptive
        await until(lambda: not looks.is_running())


@gen_test()
async def test_a_kind_of_cluster_that_can_not_scale_says_so_and_closes(caplog):
    class Mine(Cluster):
        pass

    async with Mine(asynchronous=True) as cluster:
        with caplog.at_level(logging.WARNING):
            adaptive = cluster.adapt(minimum=1, interval="1ms")
            await until(lambda: adaptive.failure)
    assert adaptive.state == "stopped"


@gen_test()
async def test_a_program_may_ask_for_the_target_and_decide_by_itself():
    class Mine(Adaptive):
        async def target(self) -> int:
            return 2 * await self.scheduler.adaptive_target(target_duration="10ms")

    async with (
        LocalCluster(**OF_NOBODY) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        adaptive = cluster.adapt(Adaptive=Mine, interval="5ms")
        future = client.submit(pass_gate, 1)
        await until(lambda: len(cluster.observed) == 2)
        assert adaptive.log[0][1] == {"status": "up", "n": 2}
        assert cluster.scheduler.adaptive_target() == 1
        assert await client.scheduler.adaptive_target() == 1
        gate.set()
        assert await future == 1


def test_a_client_that_knows_the_address_alone_has_the_cluster_adapt():
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster.scheduler_address) as client,
    ):
        assert "minimum=1, maximum=2, " in client.adapt(minimum=1, maximum=2, interval="20ms")
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(ValueError, match="minimum"):
            client.adapt(minimum=-1)
        client.adapt(minimum=0, interval="20ms")
        cluster.sync(until, lambda: not cluster.workers)


@gen_test()
async def test_clients_of_every_kind_of_cluster_may_have_it_adapt():
    clusters = (
        LocalCluster(**OF_NOBODY),
        SpecCluster(scheduler=SCHEDULER, worker=WORKER, asynchronous=True),
    )
    for cluster in clusters:
        async with cluster:
            for target in (cluster, cluster.scheduler_address):
                async with Client(target, asynchronous=True) as client:
                    said = await client.adapt(maximum=3)
                    assert "minimum=0, maximum=3, " in str(said)
                    assert cluster._adaptive.maximum == 3


@gen_test()
async def test_a_scheduler_without_a_cluster_can_have_nobody_adapt():
    async with (
        Scheduler(dashboard=False) as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        with pytest.raises(RuntimeError, match="was not started by a cluster that can start and"):
            await client.adapt(minimum=4, maximum=20)
