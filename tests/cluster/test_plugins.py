"""Plugins of schedulers and of workers, on either face and in either topology."""

import asyncio
import logging
import operator
import os

import pytest

from shoal import Client, LocalCluster, Scheduler, SchedulerPlugin, Worker, WorkerPlugin
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask
from tests.until import until


class Marking(WorkerPlugin):
    """Leaves a mark at each worker."""

    name = "marking"

    def __init__(self, mark):
        self.mark = mark

    async def setup(self, worker):
        worker.mark = self.mark

    def teardown(self, worker):
        worker.mark = f"was {self.mark}"


class Broken(WorkerPlugin):
    """Can't be set up, or not be torn down."""

    name = "broken"

    def __init__(self, hook):
        self.hook = hook

    def setup(self, worker):
        if self.hook == "setup":
            raise LookupError("no such thing at the worker")

    def teardown(self, worker):
        if self.hook == "teardown":
            raise LookupError("it does not go away")


class Counting(SchedulerPlugin):
    """Counts what it is told."""

    name = "counting"

    def __init__(self):
        self.told = []

    async def start(self, scheduler):
        self.scheduler = scheduler

    def update_graph(self, scheduler, *, client, keys, tasks, annotations, priority, **kwargs):
        assert set(tasks) == set(priority)
        self.told.append(("update_graph", client, keys, tasks, annotations))

    def transition(self, key, start, finish, *args, stimulus_id, **kwargs):
        assert self.scheduler.tasks[key].key == key
        self.told.append((key, start, finish, kwargs))

    def add_worker(self, scheduler, worker):
        self.told.append(("add_worker", worker in scheduler.workers))

    def remove_worker(self, scheduler, worker, *, stimulus_id, **kwargs):
        self.told.append(("remove_worker", worker in scheduler.workers))


def mark_of(dask_worker):
    return dask_worker.mark


def names_of(dask_worker):
    return sorted(dask_worker.plugins)


async def set_up_and_torn_down(client):
    workers = await ask(client.run(os.getpid))
    told = await ask(client.register_plugin(Marking("a")))
    assert told == {worker: {"status": "OK"} for worker in workers}
    assert set((await ask(client.run(mark_of))).values()) == {"a"}
    await ask(client.register_plugin(Marking("b")))  # in its place
    assert set((await ask(client.run(mark_of))).values()) == {"b"}
    await ask(client.register_plugin(Marking("c"), name="another"))
    assert set(map(tuple, (await ask(client.run(names_of))).values())) == {("another", "marking")}
    assert await ask(client.unregister_worker_plugin("another")) == told
    assert set((await ask(client.run(mark_of))).values()) == {"was c"}
    with pytest.raises(ValueError, match="'another'"):
        await ask(client.unregister_worker_plugin("another"))


async def idempotent(client):
    first, second = Marking("a"), Marking("b")
    await ask(client.register_plugin(first))
    assert await ask(client.register_plugin(second, idempotent=True)) == {}
    assert set((await ask(client.run(mark_of))).values()) == {"a"}


async def errors_reach_whoever_registers(client):
    with pytest.raises(LookupError, match="no such thing"):
        await ask(client.register_plugin(Broken("setup")))
    await ask(client.register_plugin(Broken("teardown"), name="late"))
    with pytest.raises(LookupError, match="does not go away"):
        await ask(client.unregister_worker_plugin("late"))


async def errors_of_a_start(client):
    class Unwilling(SchedulerPlugin):
        name = "unwilling"

        def start(self, scheduler):
            raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        await ask(client.register_plugin(Unwilling()))
    with pytest.raises(ValueError, match="Could not find plugin 'unwilling'"):
        await ask(client.unregister_scheduler_plugin("unwilling"))


async def what_is_no_plugin(client):
    class Duck:
        def setup(self, worker):
            worker.mark = "quack"

    with pytest.raises(TypeError, match=r"duck-typed.*inherit from.*Plugin"):
        await ask(client.register_plugin(Duck()))
    with pytest.raises(TypeError, match="is a class"):
        await ask(client.register_plugin(Marking))
    await ask(client.register_worker_plugin(Duck()))  # where it is to live was said
    assert set((await ask(client.run(mark_of))).values()) == {"quack"}


async def callbacks(client):
    def leave_a_mark(dask_worker):
        dask_worker.mark = "called"

    await ask(client.register_worker_callbacks(leave_a_mark))
    await ask(client.register_worker_callbacks(os.getpid))
    assert set((await ask(client.run(mark_of))).values()) == {"called"}


async def at_the_scheduler(client):
    await ask(client.register_plugin(Counting()))
    three = client.submit(operator.add, 1, 2, key="three", priority=7)
    assert await ask(three.result()) == 3
    with pytest.raises(ZeroDivisionError):
        await ask(client.submit(operator.truediv, 1, 0, key="failed").result())
    del three
    told = await ask(client.run_on_scheduler(told_to))
    graphs = [entry for entry in told if entry[0] == "update_graph"]
    assert graphs[0] == (
        "update_graph",
        client.id,
        {"three"},
        ["three"],
        {"priority": {"three": 7.0}},
    )
    moves = [entry[:3] for entry in told if entry[0] == "three"]
    assert moves[0] == ("three", "released", "waiting")
    assert ("three", "processing", "memory") in moves
    (known,) = [entry[3] for entry in told if entry[:3] == ("three", "processing", "memory")]
    assert known["nbytes"] == 28
    assert known["startstops"][0]["action"] == "compute"
    assert known["worker"] in await ask(client.run(os.getpid))
    (known,) = [entry[3] for entry in told if entry[:3] == ("failed", "processing", "erred")]
    assert known["exception_text"] == "ZeroDivisionError: division by zero"
    assert told.index(graphs[0]) < [entry[0] for entry in told].index("three")
    await ask(client.unregister_scheduler_plugin("counting"))


def told_to(dask_scheduler):
    return dask_scheduler.plugins["counting"].told


SCENARIOS = [
    set_up_and_torn_down,
    idempotent,
    errors_reach_whoever_registers,
    errors_of_a_start,
    what_is_no_plugin,
    callbacks,
    at_the_scheduler,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_plugin_lives_where_its_class_says(play, scenario, caplog):
    logging.getLogger("shoal").propagate, before = True, logging.getLogger("shoal").propagate
    try:
        play(scenario)
    finally:
        logging.getLogger("shoal").propagate = before


def test_plugins_of_processes_are_the_same():
    async def scenario(client):
        await set_up_and_torn_down(client)
        await ask(client.register_plugin(Marking("early"), name="early"))

    plugins = [Marking("from the start")]
    with LocalCluster(**SMALL, plugins=plugins) as cluster, Client(cluster) as client:
        assert set(client.run(mark_of).values()) == {"from the start"}
        playing = scenario(client)
        with pytest.raises(StopIteration):
            playing.send(None)
        cluster.scale(3)
        client.wait_for_workers(3)
        names = client.run(names_of)
        assert set(map(tuple, names.values())) == {("early", "marking")}


def test_what_a_hook_raises_is_logged_once_and_stops_nobody(caplog):
    class Raising(SchedulerPlugin):
        name = "raising"

        def transition(self, key, start, finish, *args, stimulus_id, **kwargs):
            raise LookupError(key)

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Raising()]) as scheduler,
            Worker(scheduler.address),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            assert await client.submit(abs, -1) == 1
            assert scheduler.plugin_seconds["raising"] > 0

    logging.getLogger("shoal").propagate, before = True, logging.getLogger("shoal").propagate
    try:
        asyncio.run(scenario())
    finally:
        logging.getLogger("shoal").propagate = before
    assert len([line for line in caplog.messages if "raising" in line]) == 1


def test_a_scheduler_looks_at_no_step_that_nobody_wants_to_know_of():
    class Idle(SchedulerPlugin):
        name = "idle"

        def add_client(self, scheduler, client):
            """Costs nothing per task."""

    async def scenario():
        async with Scheduler(protocol="inproc", plugins=[Idle()]) as scheduler:
            assert scheduler.membership.stepping.watcher is None
            await scheduler.register_scheduler_plugin(Counting())
            assert scheduler.membership.stepping.watcher is not None
            await scheduler.unregister_scheduler_plugin("counting")
            assert scheduler.membership.stepping.watcher is None

    asyncio.run(scenario())


def test_a_worker_tells_its_plugins_of_transitions():
    class Watching(WorkerPlugin):
        def transition(self, key, start, finish, **kwargs):
            if key in ("one", "failed"):
                moves.append((key, start, finish))

    async def scenario():
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address, plugins=[Watching()]) as worker,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            one = client.submit(abs, -1, key="one")
            await one
            one.release()
            with pytest.raises(ZeroDivisionError):
                await client.submit(operator.truediv, 1, 0, key="failed")
            await until(lambda: not worker.state.tasks)

    moves = []
    asyncio.run(scenario())
    assert [move[1:] for move in moves if move[0] == "one"] == [
        ("released", "waiting"),
        ("waiting", "ready"),
        ("ready", "executing"),
        ("executing", "memory"),
        ("memory", "released"),
        ("released", "forgotten"),
    ]
    assert [move[2] for move in moves if move[0] == "failed"][:4] == [
        "waiting",
        "ready",
        "executing",
        "error",
    ]


def test_hooks_are_told_of_the_end_in_their_order():
    class Ending(SchedulerPlugin):
        async def before_close(self):
            order.append("before_close")

        async def close(self):
            order.append("close")

        def remove_worker(self, scheduler, worker, **kwargs):
            order.append("remove_worker")

        def add_client(self, scheduler, client):
            order.append("add_client")

        def remove_client(self, scheduler, client):
            order.append("remove_client")

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Ending()]) as scheduler,
            Worker(scheduler.address),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            assert await client.submit(abs, -1) == 1

    order = []
    asyncio.run(scenario())
    assert order == ["add_client", "remove_client", "remove_worker", "before_close", "close"]


def test_another_plugin_of_the_name_takes_its_place_with_a_warning():
    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            await scheduler.register_scheduler_plugin(Counting())
            with pytest.warns(UserWarning, match="already contains a plugin with name counting"):
                await scheduler.register_scheduler_plugin(Counting())
            first = scheduler.plugins["counting"]
            await scheduler.register_scheduler_plugin(Counting(), idempotent=True)
            assert scheduler.plugins["counting"] is first

    asyncio.run(scenario())


def test_a_plugin_may_keep_workers_from_being_closed():
    class Guarding(SchedulerPlugin):
        def valid_workers_downscaling(self, scheduler, workers):
            return [worker for worker in workers if worker.name != "kept"]

    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Guarding()]) as scheduler,
            Worker(scheduler.address, name="kept"),
            Worker(scheduler.address, name="other"),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await client.wait_for_workers(2)
            views = list(scheduler.workers.values())
            assert [w.name for w in scheduler.valid_workers_downscaling(views)] == ["other"]
            await client.retire_workers(n=2)
            assert [worker.name for worker in scheduler.workers.values()] == ["kept"]

    asyncio.run(scenario())


def test_a_plugin_is_told_of_a_restart():
    class Restarted(SchedulerPlugin):
        def restart(self, scheduler):
            ntasks.append(len(scheduler.tasks))

    ntasks = []
    with Client(processes=False, **SMALL) as client:
        client.cluster.scheduler.add_plugin(Restarted())
        future = client.submit(abs, -1)
        assert future.result() == 1
        client.restart(wait_for_workers=False)
        assert ntasks == [0]
