"""Clusters of what a spec says: workers of ours, and jobs that something else runs."""

import asyncio
from typing import Any

import pytest

from shoal import Client, Scheduler, SpecCluster, Worker
from shoal.deploy.job import ProcessInterface
from shoal.deploy.spec import run_spec
from shoal.testing.clusters import gen_test

SCHEDULER = {"cls": Scheduler, "options": {"security": None, "protocol": "tcp://"}}
WORKER = {"cls": Worker, "options": {"nthreads": 1}}


class Job(ProcessInterface):
    """Nothing runs, but it is told to."""

    told: list[str] = []  # noqa: RUF012 -- of the whole test

    def __init__(self, scheduler: str, name: Any = None, **options: Any) -> None:
        super().__init__(scheduler, name)

    async def start(self) -> None:
        self.told.append(f"start {self.name}")
        await super().start()

    async def close(self) -> None:
        self.told.append(f"close {self.name}")
        await super().close()


@pytest.fixture(autouse=True)
def nothing_told():
    Job.told.clear()


@gen_test()
async def test_a_cluster_follows_its_spec_asynchronously():
    workers = {0: WORKER, "j": {"cls": Job, "options": {"x": 1}, "group": ["-0", "-1"]}}
    async with SpecCluster(workers, SCHEDULER, WORKER, asynchronous=True, name="n") as cluster:
        assert cluster.plan == cluster.requested == {0, "j-0", "j-1"}
        assert cluster.observed == {0}
        await cluster.scale(4)
        assert cluster.observed == {0, 1, 2}
        async with Client(cluster, asynchronous=True) as client:
            assert await client.submit(abs, -1) == 1
        await cluster.scale_down(["j-1", 2])
        assert cluster.plan == {0, 1}
        await cluster.scale(1)
        assert list(cluster.workers) == [0]
        assert Job.told == ["start j", "close j"]
        assert repr(cluster).startswith("SpecCluster(n, 'tcp://")
    assert cluster.status == "closed"


def test_a_cluster_follows_its_spec_and_waits():
    with SpecCluster({"a": WORKER}, SCHEDULER, WORKER) as cluster, Client(cluster) as client:
        assert client.submit(abs, -1).result() == 1
        cluster.scale(cores=2)
        client.wait_for_workers(2, timeout=20)
        assert cluster.scheduler_info["address"] == cluster.scheduler_address
        with pytest.raises(ValueError, match="memory_limit="):
            cluster.scale(memory="1GB")


def test_what_does_not_start_is_said_and_closed():
    wrong = {"cls": "shoal.scheduler.shell.service.Scheduler", "options": {"nothing": 1}}
    with pytest.raises(RuntimeError, match=r"failed to start: .*'nothing'"):
        SpecCluster(scheduler=wrong)
    with pytest.raises(RuntimeError, match="failed to start"):
        SpecCluster({0: {"cls": "no.such.Thing"}}, SCHEDULER)


@gen_test()
async def test_a_spec_can_be_run_without_a_cluster():
    jobs = await run_spec({"one": {"cls": Job, "opts": {"x": 1}}}, "tcp://127.0.0.1:1")
    job = jobs["one"]
    assert (job.scheduler, job.status) == ("tcp://127.0.0.1:1", "running")
    finishing = asyncio.create_task(job.finished())
    await job.close()
    await finishing
    assert Job.told == ["start one", "close one"]
