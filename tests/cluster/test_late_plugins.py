"""Workers that come while there are plugins: what is done before their first task."""

import asyncio
import contextlib
import logging

import dask
import pytest

from shoal import (
    Client,
    NannyPlugin,
    Scheduler,
    SchedulerPlugin,
    Worker,
    WorkerPlugin,
)
from shoal.comms import PendingCalls
from shoal.observe.errors import HookCancelled
from shoal.protocol.answers import answer
from shoal.protocol.messages import RegisterWorker
from shoal.protocol.plugins import AddPlugins, AskNanny, RemovePlugin
from shoal.protocol.running import Outcome
from shoal.worker.shell.errors import WorkerRefused
from tests.cluster.playing import heard
from tests.until import until


@contextlib.contextmanager
def quiet():
    """Errors are told, and need not be read."""
    logger = logging.getLogger("shoal")
    level, _ = logger.level, logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


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
            await until(lambda: not scheduler.workers)

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
                await until(lambda: scheduler.get_events("of plugins"))

    asyncio.run(scenario())


def test_a_hook_that_ends_in_a_cancellation_of_its_own_holds_no_worker():
    class Cancelling(SchedulerPlugin):
        async def add_worker(self, scheduler, worker):
            raise asyncio.CancelledError

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Cancelling()]) as scheduler,
            Worker(scheduler.address),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            assert await client.submit(abs, -1) == 1

    with quiet():
        asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_setup_that_ends_in_a_cancellation_of_its_own_is_answered():
    class Cancelling(WorkerPlugin):
        async def setup(self, worker):
            raise asyncio.CancelledError

    async def scenario():
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            with pytest.raises(HookCancelled, match="setup of 'cancelling'"):
                await client.register_plugin(Cancelling(), name="cancelling")

    with quiet():
        asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_worker_that_a_hook_holds_is_no_silent_one():
    """It is held for several times as long as a worker may be silent."""

    class Waiting(SchedulerPlugin):
        async def add_worker(self, scheduler, worker):
            known = scheduler.machine.state.workers[worker]
            first = known.heard_at
            while known.heard_at < first + 1.0:
                assert scheduler.machine.state.workers.get(worker) is known
                await asyncio.sleep(0)
            held.append(worker)

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Waiting()], worker_ttl=0.4) as scheduler,
            Worker(scheduler.address) as worker,
        ):
            assert held == [worker.address]
            assert list(scheduler.workers) == held

    held = []
    with dask.config.set({"shoal.worker.heartbeat-seconds": 0.05}):
        asyncio.run(asyncio.wait_for(scenario(), 30))


class Noting(NannyPlugin):
    """Says that it was set up."""

    def setup(self, nanny):
        note("nanny")


def test_what_is_registered_for_nannies_while_workers_plugins_are_set_up_is_not_missed():
    """The connection of the worker is one of a test, which answers as a worker with a nanny."""

    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Marking("a"), "marking")
            peer = Asked()
            message = RegisterWorker("inproc://w", "w", 1, 0, 1, "h", has_nanny=True)
            preparing = asyncio.ensure_future(scheduler.hooks._prepare_all(peer, message))
            await until(lambda: peer.asked)
            await scheduler.register_nanny_plugin(None, Noting(), "noting")
            await scheduler.unregister_worker_plugin(None, "marking")
            peer.go_on.set()
            assert await preparing is False
            assert [type(call).__name__ for call in peer.asked] == [
                "AddPlugins",
                "AskNanny",
                "RemovePlugin",
            ]

    asyncio.run(asyncio.wait_for(scenario(), 30))


class Asked:
    """Answers what a worker is asked, once it may."""

    def __init__(self):
        self.calls = PendingCalls("inproc://w")
        self.connection = self
        self.closed = False
        self.asked = []
        self.go_on = asyncio.Event()

    def send(self, messages):
        self.asked += messages
        self.answering = asyncio.ensure_future(self.answer(messages))

    async def answer(self, messages):
        await self.go_on.wait()
        values = {AddPlugins: {}, RemovePlugin: None, AskNanny: Outcome()}
        for message in messages:
            self.calls.resolve(answer(message.request, values[type(message)]))


def test_what_a_late_worker_can_not_set_up_is_in_the_schedulers_log(caplog):
    class Broken(WorkerPlugin):
        def setup(self, worker):
            raise LookupError("not at this worker")

    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_worker_plugin(None, Broken(), "broken")
            async with Worker(scheduler.address) as worker:
                return worker.address

    with heard():
        address = asyncio.run(scenario())
    told = [record for record in caplog.records if record.name == "shoal.scheduler"]
    (line,) = [record.getMessage() for record in told if record.levelno >= logging.WARNING]
    assert "broken" in line
    assert address in line
    assert "not at this worker" in line


def test_a_worker_that_could_not_start_tears_down_what_it_has_set_up():
    class Both(WorkerPlugin):
        def setup(self, worker):
            note("setup")

        def teardown(self, worker):
            note("teardown")

    async def scenario():
        ORDER.clear()
        text = "def dask_setup(worker):\n    worker.preloaded = True\n"
        text += "def dask_teardown(worker):\n    worker.preloaded = False\n"
        async with Scheduler(protocol="inproc") as scheduler, Worker(scheduler.address, name="a"):
            worker = Worker(scheduler.address, name="a", plugins=[Both()], preload=text)
            with pytest.raises(WorkerRefused):
                await worker
            assert worker.preloaded is False
        assert ORDER == ["setup", "teardown"]

    asyncio.run(scenario())


def test_a_worker_whose_name_is_taken_is_told_though_newcomers_are_held():
    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Slow()]) as scheduler,
            Worker(scheduler.address, name="a"),
        ):
            with pytest.raises(WorkerRefused, match="name"):
                await Worker(scheduler.address, name="a")

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_held_worker_is_told_why_it_is_sent_away():
    class Endless(SchedulerPlugin):
        async def add_worker(self, scheduler, worker):
            reached.set()
            await asyncio.Event().wait()

    async def scenario():
        async with Scheduler(protocol="inproc", plugins=[Endless()]) as scheduler:
            starting = asyncio.ensure_future(Worker(scheduler.address).start())
            await reached.wait()
            (worker,) = scheduler.machine.state.workers.values()
            scheduler.dismiss(worker, "it is not wanted")
            with pytest.raises(WorkerRefused, match="it is not wanted"):
                await starting
            reached.clear()
            starting = asyncio.ensure_future(Worker(scheduler.address).start())
            await reached.wait()
        with pytest.raises(WorkerRefused, match="closed"):
            await starting

    reached = asyncio.Event()
    asyncio.run(asyncio.wait_for(scenario(), 30))
