"""Clusters of what a spec says: workers of ours, and jobs that something else runs."""

import asyncio
from typing import Any

import pytest

from shoal import Client, Scheduler, SpecCluster, Worker
from shoal.deploy.job import ProcessInterface
from shoal.deploy.spec import run_spec
from shoal.testing.clusters import gen_test
from tests.programs import printed_by

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


class Failing(Job):
    """Does not start, or does not close, as the test wants."""

    fails: list[str] = []  # noqa: RUF012 -- of the whole test

    async def start(self) -> None:
        await super().start()
        if "start" in self.fails:
            raise LookupError(f"{self.name} does not start")

    async def close(self) -> None:
        await super().close()
        if "close" in self.fails:
            raise LookupError(f"{self.name} does not close")
        if "hang" in self.fails:
            await asyncio.Event().wait()


FAILING = {"cls": Failing, "options": {}}


@pytest.fixture
def fails():
    yield Failing.fails
    Failing.fails.clear()


@gen_test()
async def test_a_worker_that_does_not_start_is_closed_and_made_anew(fails):
    async with SpecCluster({}, SCHEDULER, FAILING, asynchronous=True) as cluster:
        fails.append("start")
        with pytest.raises(LookupError, match="0 does not start"):
            await cluster.scale(2)
        assert cluster.workers == {}
        assert sorted(Job.told) == ["close 0", "close 1", "start 0", "start 1"]
        fails.clear()
        await cluster.scale(2)
        assert list(cluster.workers) == [0, 1]


@gen_test()
async def test_a_worker_that_does_not_close_is_tried_again(fails):
    async with SpecCluster({}, SCHEDULER, FAILING, asynchronous=True) as cluster:
        await cluster.scale(2)
        fails.append("close")
        with pytest.raises(LookupError, match="does not close"):
            await cluster.scale(0)
        assert list(cluster.workers) == [0, 1]
        fails.clear()
        await cluster.scale(0)
        assert cluster.workers == {}


@gen_test()
async def test_a_cluster_closes_though_a_worker_of_it_never_does(fails):
    cluster = await SpecCluster({0: FAILING}, SCHEDULER, asynchronous=True)
    fails.append("hang")
    await cluster.close(timeout=2)
    assert cluster.scheduler.status == "closed"


@gen_test()
async def test_scaling_down_lets_as_many_go_as_are_too_many():
    """Those that have not started are named once only."""
    async with SpecCluster({}, SCHEDULER, {"cls": Job}, asynchronous=True) as cluster:
        await cluster.scale(2)
        cluster.worker_spec.update({n: {"cls": Job} for n in (2, 3)})
        await cluster.scale(1)
        assert list(cluster.worker_spec) == [0]


@gen_test()
async def test_of_a_spec_that_fails_nothing_is_left_running(fails):
    fails.append("start")
    entries = {"one": {"cls": Job}, "two": {"cls": Failing}}
    with pytest.raises(LookupError, match="two does not start"):
        await run_spec(entries, "tcp://127.0.0.1:1")
    assert sorted(Job.told) == ["close one", "close two", "start one", "start two"]


LEFT_OPEN = """
from shoal import SpecCluster
from shoal.deploy.job import ProcessInterface

class Job(ProcessInterface):
    def __init__(self, scheduler, name=None):
        super().__init__(scheduler, name)

    async def close(self):
        await super().close()
        print("closed", self.name)

cluster = SpecCluster({"one": {"cls": Job}})
"""


def test_a_cluster_that_is_left_open_closes_as_the_program_ends():
    assert printed_by("-c", LEFT_OPEN) == "closed one\n"
