"""Workers that come while there are plugins: what is done before their first task."""

import asyncio

import pytest

from shoal import Client, Scheduler, SchedulerPlugin, Worker, WorkerPlugin
from shoal.worker.shell.errors import WorkerRefused


class Marking(WorkerPlugin):
    """Leaves a mark at each worker."""

    name = "marking"

    def __init__(self, mark):
        self.mark = mark

    async def setup(self, worker):
        worker.mark = self.mark

    def teardown(self, worker):
        worker.mark = f"was {self.mark}"


ORDER: list[str] = []
"""What came when, in this process."""


def note(what):
    ORDER.append(what)


class Slow(SchedulerPlugin):
    """Takes its time when a worker comes."""

    async def add_worker(self, scheduler, worker):
        await asyncio.sleep(0)
        note("hook")


class Late(WorkerPlugin):
    """Takes its time to be set up."""

    async def setup(self, worker):
        await asyncio.sleep(0)
        note("plugin")


def test_a_worker_that_comes_late_is_set_up_before_its_first_task():
    """Its plugins, and the hooks that are told of it, are awaited; tasks wait at the scheduler."""

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Slow()]) as scheduler,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await scheduler.register_worker_plugin(None, Late(), "late")
            future = client.submit(note, "task")
            async with Worker(scheduler.address) as worker:
                assert ORDER[:2] == ["plugin", "hook"]
                assert "late" in worker.plugins
                await future

    ORDER.clear()
    asyncio.run(scenario())
    assert ORDER == ["plugin", "hook", "task"]


def test_a_worker_that_goes_while_a_hook_takes_its_time_is_forgotten():
    class Endless(SchedulerPlugin):
        async def add_worker(self, scheduler, worker):
            reached.set()
            await asyncio.Event().wait()

    async def scenario():
        async with Scheduler(protocol="inproc", plugins=[Endless()]) as scheduler:
            starting = asyncio.ensure_future(Worker(scheduler.address).start())
            await reached.wait()
            assert len(scheduler.workers) == 1
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            while scheduler.workers:
                await asyncio.sleep(0)

    reached = asyncio.Event()
    asyncio.run(scenario())


REACHED: list[asyncio.Event] = []
"""Set when a plugin is being set up."""

ALLOWED: list[asyncio.Event] = []
"""Awaited by it."""


class Lingering(WorkerPlugin):
    """Is set up when it is allowed to."""

    async def setup(self, worker):
        REACHED[0].set()
        await ALLOWED[0].wait()


def test_what_is_registered_or_removed_as_a_worker_comes_holds_for_it_too():
    async def scenario():
        REACHED[:], ALLOWED[:] = [asyncio.Event()], [asyncio.Event()]
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Lingering(), "lingering")
            worker = Worker(scheduler.address)
            starting = asyncio.ensure_future(worker.start())
            await REACHED[0].wait()
            assert not scheduler.workers  # so that nothing is given to it, and nobody counts on it
            await scheduler.register_worker_plugin(None, Marking("a"), "marking")
            await scheduler.unregister_worker_plugin(None, "lingering")
            ALLOWED[0].set()
            await starting
            assert list(worker.plugins) == ["marking"]
            assert worker.mark == "a"
            await worker.close()
            assert worker.mark == "was a"

    asyncio.run(scenario())


def test_a_worker_that_goes_as_it_is_set_up_leaves_nothing_behind():
    async def scenario():
        REACHED[:], ALLOWED[:] = [asyncio.Event()], [asyncio.Event()]
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Lingering(), "lingering")
            starting = asyncio.ensure_future(Worker(scheduler.address).start())
            await REACHED[0].wait()
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            assert not scheduler.workers
            assert scheduler.membership._strangers == {}

    asyncio.run(scenario())


def test_a_scheduler_closes_though_a_worker_is_being_set_up():
    async def scenario():
        REACHED[:], ALLOWED[:] = [asyncio.Event()], [asyncio.Event()]
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Lingering(), "lingering")
            starting = asyncio.ensure_future(Worker(scheduler.address).start())
            await REACHED[0].wait()
        with pytest.raises(WorkerRefused, match="closed"):
            await starting

    asyncio.run(scenario())


def test_what_a_plugin_tells_as_it_is_set_up_is_heard():
    class Telling(WorkerPlugin):
        def setup(self, worker):
            worker.log_event("of plugins", "hello")

    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Telling(), "telling")
            async with Worker(scheduler.address):
                while not scheduler.get_events("of plugins"):
                    await asyncio.sleep(0)

    asyncio.run(scenario())
