"""How plugins end: as they are replaced, as their service closes, and when they take too long."""

import asyncio
import threading
import time
import warnings
from pathlib import Path

import pytest

from shoal import (
    Client,
    LocalCluster,
    Scheduler,
    SchedulerPlugin,
    SpecCluster,
    Worker,
    WorkerPlugin,
)
from shoal.observe.plugins.sending import SchedulerUploadFile
from tests.cluster.conftest import SMALL
from tests.cluster.playing import heard
from tests.until import until


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 30))


class Closing(SchedulerPlugin):
    """Says that it was closed."""

    name = "closing"
    replaces = True

    def __init__(self, mark, closed):
        self.mark, self.closed = mark, closed

    async def close(self):
        self.closed.append(self.mark)


def test_a_plugin_of_the_scheduler_is_closed_however_it_goes():
    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_scheduler_plugin(Closing("replaced", closed))
            await scheduler.register_scheduler_plugin(Closing("removed", closed))
            await until(lambda: closed == ["replaced"])
            await scheduler.unregister_scheduler_plugin("closing")
            await until(lambda: closed == ["replaced", "removed"])
            await scheduler.register_scheduler_plugin(Closing("at the end", closed))

    closed = []
    play(scenario())
    assert closed == ["replaced", "removed", "at the end"]


def test_a_file_that_is_sent_again_replaces_the_first_without_a_warning(tmp_path):
    async def scenario():
        path = tmp_path / "sent_twice.txt"
        async with Scheduler(protocol="inproc") as scheduler:
            kept = Path(scheduler.local_directory, path.name)
            for said in ("hello", "hello again"):
                path.write_text(said)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    await scheduler.register_scheduler_plugin(SchedulerUploadFile(str(path)))
                assert kept.read_text() == said
            (plugin,) = (p for p in scheduler.plugins.values() if hasattr(p, "content"))
            assert plugin.content == b"hello again"
        assert not kept.parent.exists()

    play(scenario())


def test_a_file_that_can_not_be_imported_is_said_and_leaves_no_plugin(tmp_path):
    async def scenario():
        path = tmp_path / "sent_in_vain.py"
        path.write_text("1 / 0")
        async with Scheduler(protocol="inproc") as scheduler:
            before = dict(scheduler.plugins)
            with pytest.raises(ZeroDivisionError):
                await scheduler.register_scheduler_plugin(SchedulerUploadFile(str(path)))
            assert dict(scheduler.plugins) == before

    play(scenario())


def test_a_worker_is_given_nothing_more_while_its_plugins_are_torn_down():
    class Looking(WorkerPlugin):
        def __init__(self, scheduler):
            self.scheduler = scheduler

        async def teardown(self, worker):
            (known,) = self.scheduler.machine.state.workers.values()
            await until(lambda: known.is_leaving)
            seen.append(worker.address)

    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            worker = Worker(scheduler.address, plugins=[Looking(scheduler)])
            worker.teardown_seconds_max = 20.0
            async with worker:
                pass
            assert seen == [worker.address]

    seen = []
    play(scenario())


def test_what_has_not_begun_does_not_begin_while_plugins_are_torn_down():
    class Waiting(WorkerPlugin):
        async def teardown(self, worker):
            GATE.set()  # the task that is executed ends, and its thread is free
            await until(lambda: not worker.state.executing)

    async def scenario():
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address, nthreads=1, plugins=[Waiting()]) as worker,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            worker.teardown_seconds_max = 20.0
            futures = client.map(begin, range(8))
            assert await asyncio.to_thread(BEGUN.acquire, timeout=10)
            await worker.close()
            assert BEGUN_BY == [0]
            async with Worker(scheduler.address, nthreads=1):
                assert await client.gather(futures) == list(range(8))

    GATE.clear()
    BEGUN_BY.clear()
    play(scenario())


GATE, BEGUN, BEGUN_BY = threading.Event(), threading.Semaphore(0), []


def begin(i):
    BEGUN_BY.append(i)
    BEGUN.release()
    assert GATE.wait(20)
    return i


def test_a_cluster_closes_in_time_though_a_plugin_does_not_end(caplog):
    class Endless(WorkerPlugin):
        async def teardown(self, worker):
            await asyncio.Event().wait()

    class EndlessToo(SchedulerPlugin):
        name = "endless too"

        async def close(self):
            await asyncio.Event().wait()

    with heard():
        cluster = LocalCluster(processes=False, **SMALL, plugins=[Endless()])
        with Client(cluster) as client:
            client.register_plugin(EndlessToo())
        started_at = time.monotonic()
        cluster.close(timeout=1.0)
    assert time.monotonic() - started_at < 4.0
    assert cluster.scheduler.status == "closed"
    cut = [text for text in caplog.messages if "is cut short" in text]
    assert len([text for text in cut if "Worker plugin" in text]) == 2
    assert len([text for text in cut if "endless too" in text]) == 1


def test_what_plugins_do_before_the_end_of_a_cluster_they_do_while_it_has_workers():
    class Last(SchedulerPlugin):
        async def start(self, scheduler):
            self.scheduler = scheduler

        async def before_close(self):
            nworkers.append(len(self.scheduler.workers))

    nworkers = []
    with LocalCluster(processes=False, **SMALL) as cluster:
        cluster.sync(cluster.scheduler.register_scheduler_plugin, Last())
    assert nworkers == [2]


def test_a_scheduler_with_a_bug_decides_nothing_more(caplog):
    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            stepping = scheduler.membership.stepping
            stepping.step(lambda: 1 / 0)
            assert not stepping.is_open
            stepping.step(steps.append, "one more")
            await scheduler.finished()

    steps = []
    with heard():
        play(scenario())
    assert steps == []
    assert "bug in the scheduler's machine" in caplog.text


def test_they_do_so_in_a_cluster_of_what_a_spec_names(tmp_path):
    path = tmp_path / "seen"
    options = {"protocol": "inproc", "plugins": [LookAtTheEnd(str(path))]}
    workers = {name: {"cls": Worker, "options": {"nthreads": 1}} for name in "ab"}
    with SpecCluster(workers, {"cls": Scheduler, "options": options}) as cluster:
        assert len(cluster.workers) == 2
    assert path.read_text() == "2\n"


class LookAtTheEnd(SchedulerPlugin):
    """Writes how many workers there are before the scheduler closes."""

    def __init__(self, path):
        self.path = path

    async def start(self, scheduler):
        self.scheduler = scheduler

    async def before_close(self):
        nworkers = len(self.scheduler.workers)
        with open(self.path, "a") as file:
            file.write(f"{nworkers}\n")


def test_they_do_so_in_a_cluster_of_processes_too(tmp_path):
    path = tmp_path / "seen"
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.register_plugin(LookAtTheEnd(str(path)), name="look")
    assert path.read_text() == "2\n"
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.register_plugin(LookAtTheEnd(str(path)), name="look")
        client.unregister_scheduler_plugin("look")
    assert path.read_text() == "2\n"
