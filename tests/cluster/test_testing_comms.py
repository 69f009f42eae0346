"""Comms and transfers that test suites hold up."""

import asyncio
from types import SimpleNamespace

import pytest

from shoal import Client, Scheduler, Worker
from shoal.compat.comm import core as comms
from shoal.compat.comm.batched import BatchedSend
from shoal.compat.servers.gathering import gather_from_workers
from shoal.compat.servers.pool import ConnectionPool
from shoal.compat.servers.server import Server
from shoal.errors import UnsupportedOption
from shoal.testing.comms import (
    BarrierGetData,
    BrokenComm,
    LockedCommPool,
    freeze_batched_send,
    wait_for_stimulus,
)
from shoal.testing.freezing import freeze_data_fetching
from shoal.worker.model.entities import MachineSettings

NOBODY = "tcp://127.0.0.1:9"


class PoolThatLacks(ConnectionPool):
    """Reaches all but one address."""

    async def connect(self, addr, timeout=None):
        if addr == NOBODY:
            raise OSError("nobody is there")
        return await super().connect(addr, timeout)


def play(scenario):
    """Play it on a loop of its own, within a time that it never takes."""

    async def limited():
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(limited())


def test_a_locked_pool_shows_what_is_said_and_holds_it_up():
    async def scenario():
        said, heard = asyncio.Queue(), asyncio.Queue()
        may_say, may_hear = asyncio.Event(), asyncio.Event()
        async with Server({}) as server, ConnectionPool() as pool:
            await server.listen("tcp://127.0.0.1:0")
            locked = LockedCommPool(pool, may_hear, heard, may_say, said)
            task = asyncio.create_task(locked(server.address).echo(data=1))
            where, message = await said.get()
            assert (where, message["op"]) == (server.address, "echo")
            assert not server.incoming_comms_active
            may_say.set()
            assert await heard.get() == (server.address, 1)
            assert not task.done()
            may_hear.set()
            assert await task == 1
            assert pool.active == 0

    play(scenario)


def test_what_is_sent_in_batches_is_held_up():
    async def scenario():
        heard = asyncio.Queue()
        async with Server({}, stream_handlers={"note": heard.put}) as server:
            await server.listen("inproc://")
            comm = await comms.connect(server.address)
            await comm.write({"op": "connection_stream"})
            batched = BatchedSend(interval=0)
            batched.start(comm)
            with freeze_batched_send(batched) as locked:
                batched.send({"op": "note", "item": 1}, {"op": "note", "item": 2})
                where, batch = await locked.write_queue.get()
                assert (where, len(batch)) == (comm.peer_address, 2)
                assert heard.empty()
            assert [await heard.get() for _ in range(2)] == [1, 2]
            assert batched.comm is comm
            await batched.close()

    play(scenario)


def test_results_are_fetched_from_whoever_has_them_and_reaches():
    async def scenario():
        async with (
            Scheduler() as scheduler,
            BarrierGetData(scheduler.address, nthreads=1, barrier_count=1) as worker,
            Client(scheduler.address, asynchronous=True) as client,
            PoolThatLacks() as pool,
        ):
            future = await client.scatter({"x": 1})
            who_has = {"x": [worker.address, NOBODY], "y": [worker.address], "z": [NOBODY]}
            found, missing, failed, bad = await gather_from_workers(who_has, pool)
            assert (found, sorted(missing), failed, bad) == ({"x": 1}, ["y", "z"], [], [NOBODY])
            assert worker.barrier_count <= 0
            del future

    play(scenario)


def test_a_broken_comm_fails():
    async def scenario():
        with pytest.raises(OSError, match="broken"):
            await BrokenComm().read()
        with pytest.raises(OSError, match="broken"):
            await BrokenComm().write(1)

    play(scenario)


def test_fetching_waits_while_it_is_frozen():
    async def scenario():
        async with (
            Scheduler() as scheduler,
            Worker(scheduler.address, nthreads=1, validate=True) as one,
            Worker(scheduler.address, nthreads=1, validate=True) as other,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            held = await client.scatter(bytes(50_000), workers=[one.address])
            with freeze_data_fetching(other):
                future = client.submit(len, held, workers=[other.address])
                while "fetch" not in {task.state for task in other.state.tasks.values()}:
                    await asyncio.sleep(0)
                assert not other.feed.machine.state.fetches
            assert await future == 50_000

    play(scenario)


def test_while_fetching_is_frozen_none_begins_in_place_of_one_that_ends():
    settings, fetches = (
        MachineSettings(address="tcp://127.0.0.1:1"),
        {1: "under way", 2: "under way"},
    )
    state = SimpleNamespace(settings=settings, fetches=fetches)
    feed = SimpleNamespace(machine=SimpleNamespace(state=state), on_messages=fetches.update)
    with freeze_data_fetching(SimpleNamespace(feed=feed)):
        assert state.settings.transfers_max == 2
        del fetches[1]
        assert state.settings.transfers_max == 1
        assert state.settings.transfer_bytes_max == settings.transfer_bytes_max
    assert state.settings is settings


def test_stimuli_of_upstream_are_refused():
    with pytest.raises(UnsupportedOption, match="wait_for_state"):
        asyncio.run(wait_for_stimulus(None, None))
