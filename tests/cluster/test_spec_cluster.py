"""Clusters of what a spec says: workers of ours, and jobs that something else runs."""

import asyncio
import os
import signal
from types import SimpleNamespace
from typing import Any

import dask.config
import pytest

from shoal import Client, Nanny, Scheduler, SpecCluster, Worker
from shoal.deploy.cluster import Cluster
from shoal.deploy.errors import CannotScale
from shoal.deploy.job import ProcessInterface
from shoal.deploy.spec import run_spec
from shoal.testing.clusters import gen_test
from tests.programs import printed_by
from tests.until import until

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
    with pytest.raises(ImportError, match="'no'"):
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


@gen_test()
async def test_whoever_awaits_a_cluster_awaits_its_scaling():
    async with SpecCluster({}, SCHEDULER, WORKER, asynchronous=True) as cluster:
        cluster.scale(2)
        assert cluster.workers == {}
        await cluster
        assert cluster.observed == {0, 1}
        cluster.scale(1)
        await cluster
        assert cluster.observed == {0}


@gen_test()
async def test_a_worker_that_does_not_come_back_is_let_go_and_replaced_at_the_next_wait():
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}):
        cluster = SpecCluster({}, SCHEDULER, WORKER, asynchronous=True)
    async with cluster:
        await cluster.scale(2)
        lost, left = cluster.workers.values()
        await lost.close()
        await until(lambda: lost not in cluster.workers.values())
        assert list(cluster.workers.values()) == [left]
        assert cluster.plan == {0, 1}
        await cluster
        assert cluster.observed == {0, 1}
        assert left in cluster.workers.values()


@gen_test()
async def test_a_scheduler_that_outlives_its_cluster_tells_it_nothing_more():
    cluster = SpecCluster({}, SCHEDULER, asynchronous=True, shutdown_scheduler=False)
    async with cluster:
        scheduler = cluster.scheduler
        assert len(scheduler.plugins) == 1
    async with scheduler:
        assert (scheduler.status, scheduler.plugins) == ("running", {})


@gen_test()
async def test_a_cluster_of_no_kind_starts_and_ends_and_knows_nobody():
    async with Cluster(asynchronous=True, name="A") as cluster:
        assert cluster.status == "running"
        assert cluster.scheduler_address == "<Not Connected>"
        assert cluster.plan == cluster.requested == cluster.observed == set()
        with pytest.raises(CannotScale, match="A Cluster can't be scaled"):
            cluster.scale(1)
    assert cluster.status == "closed"


class Elsewhere(Cluster):
    """Knows where its scheduler is, and nothing else."""

    def __init__(self, address: str) -> None:
        super().__init__(name="elsewhere")
        self.scheduler_comm = SimpleNamespace(address=address)
        self._begin()


def test_a_cluster_whose_scheduler_runs_elsewhere_asks_it():
    with SpecCluster({"a": WORKER}, SCHEDULER) as there:
        with Elsewhere(there.scheduler_address) as here, Client(here) as client:
            here.wait_for_workers(1, timeout=20)
            assert here.observed == here.plan == here.requested == {"a"}
            assert here.scheduler_info["id"] == there.scheduler_info["id"]
            assert client.submit(abs, -1).result() == 1
        assert there.status == "running"


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


FORKED = """
import os
from shoal import LocalCluster, SpecCluster

clusters = [SpecCluster(), LocalCluster(n_workers=0, processes=False, dashboard_address=None)]
child = os.fork()
if not child:
    for cluster in clusters:
        cluster.close(timeout=3600)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *(c.status for c in clusters))
for cluster in clusters:
    cluster.close()
"""


def test_a_fork_closes_no_cluster_of_its_parent_and_waits_for_none():
    assert printed_by("-W", "ignore::DeprecationWarning", "-c", FORKED) == "7 running running\n"


def test_a_cluster_that_is_left_open_closes_as_the_program_ends():
    assert printed_by("-c", LEFT_OPEN) == "closed one\n"


class Gone(Worker):
    """Has gone, and so its closing fails, as that of a job which nobody knows any more."""

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        has_gone = self.status == "closed"
        await super().close(*args, **kwargs)
        if has_gone:
            raise LookupError("there is no such job")


class Pair(Job):
    """One thing that starts two workers."""

    async def start(self) -> None:
        await super().start()
        self.workers = [await Worker(self.scheduler, name=f"{self.name}-{x}") for x in "ab"]

    async def close(self) -> None:
        for worker in self.workers:
            await worker.finished()  # the scheduler has told it to go
        await super().close()


@gen_test()
async def test_an_entry_has_the_workers_that_it_was_made_with_until_it_has_closed():
    """Those of a group go with it, though the spec has forgotten that they were its."""
    pair = {"cls": Pair, "group": ["-a", "-b"]}
    async with SpecCluster({"p": pair}, SCHEDULER, WORKER, asynchronous=True) as cluster:
        assert cluster.observed == {"p-a", "p-b"}
        await cluster.scale(0)
        assert cluster.requested == cluster.observed == set()
        assert Job.told == ["start p", "close p"]


@gen_test()
async def test_a_worker_that_is_lost_is_replaced_though_it_can_not_be_closed_any_more():
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}):
        cluster = SpecCluster({}, SCHEDULER, {"cls": Gone}, asynchronous=True)
    async with cluster:
        await cluster.scale(1)
        lost = cluster.workers[0]
        await lost.close()
        await until(lambda: lost not in cluster.workers.values())
        await cluster.scale(1)
        assert cluster.observed == {0}


@gen_test()
async def test_what_only_a_worker_holds_that_goes_is_kept_by_those_that_stay():
    async with SpecCluster({}, SCHEDULER, WORKER, asynchronous=True) as cluster:
        await cluster.scale(2)
        async with Client(cluster, asynchronous=True) as client:
            scattered = await client.scatter(5, workers=[cluster.workers[1].address])
            await cluster.scale(1)
            assert cluster.observed == {0}
            assert await scattered == 5


@gen_test()
async def test_a_process_that_does_not_heed_its_end_is_killed_before_its_cluster_has_closed():
    kept = {"cls": Nanny, "options": {"nthreads": 1}}
    cluster = await SpecCluster({0: kept}, SCHEDULER, asynchronous=True)
    process = cluster.workers[0].process
    os.kill(process.pid, signal.SIGSTOP)
    await cluster.close(timeout=1)
    assert not process.is_alive()
    assert (cluster.status, cluster.scheduler.status) == ("closed", "closed")


@gen_test()
async def test_of_a_spec_whose_start_is_cancelled_nothing_is_left_running():
    begun = asyncio.Event()

    class Endless(Job):
        async def start(self) -> None:
            await super().start()
            begun.set()
            await asyncio.Event().wait()

    starting = asyncio.ensure_future(run_spec({"one": {"cls": Endless}}, "tcp://127.0.0.1:1"))
    await begun.wait()
    starting.cancel()
    await asyncio.wait((starting,))
    assert starting.cancelled()
    assert Job.told == ["start one", "close one"]


@gen_test()
async def test_a_cluster_that_has_closed_starts_no_worker_however_late_it_is_asked():
    cluster = await SpecCluster({}, SCHEDULER, {"cls": Job}, asynchronous=True)
    await cluster.close()
    cluster.worker_spec[0] = {"cls": Job}
    await cluster._correct_state()
    assert (cluster.workers, Job.told) == ({}, [])
