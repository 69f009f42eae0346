"""Operations of schedulers, workers and nannies, called by their names."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import dask
import pytest

from shoal import Client, LocalCluster, Scheduler, Worker, wait
from shoal.comms import connect, publish_token
from shoal.comms.errors import AuthenticationError, CommClosedError
from shoal.compat.comm import core as comms
from shoal.compat.servers.calling import rpc, send_recv
from shoal.observe.errors import OperationUnknown
from shoal.observe.status import Status
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker
from shoal.protocol.freestanding import Parcel
from shoal.protocol.handshake import WORKER, Keyring
from tests.cluster.faces import FACES, ask
from tests.cluster.playing import play_with_worker

BOTH_FACES = pytest.mark.parametrize("face", FACES.values(), ids=FACES)


def add_operations(dask_scheduler):
    """What an extension does."""

    def add(comm, x, y=1):
        return x + y

    async def fail(comm):
        raise KeyError("not this way")

    dask_scheduler.handlers.update(add=add, fail=fail)


def add_operation_of_worker(dask_worker):
    """What an extension does."""
    dask_worker.handlers["whose"] = lambda suffix: f"{dask_worker.name}{suffix}"


async def call_what_is_there_and_what_was_added(client):
    await ask(client.run_on_scheduler(add_operations))
    await ask(client.run(add_operation_of_worker))
    scheduler = client.scheduler
    assert (await ask(scheduler.identity()))["address"] == scheduler.address
    assert await ask(scheduler.add(x=1)) == 2
    with pytest.raises(KeyError, match="not this way"):
        await ask(scheduler.fail())
    with pytest.raises(OperationUnknown, match=r"'multiply'.*answers to: adaptive_target, add, "):
        await ask(scheduler.multiply(x=1))
    with pytest.raises(OperationUnknown, match=r"client\.scatter gives values to workers"):
        await ask(scheduler.scatter())
    future = client.submit(abs, -1, key="one")
    await ask(future.result())
    (worker,) = await ask(scheduler.ncores())
    assert await ask(scheduler.who_has(keys=["one", "none"])) == {"one": [worker], "none": []}
    assert await ask(scheduler.get_task_prefix_states()) == {"one": {"memory": 1}}
    assert await ask(scheduler.workers_to_close(n=1)) == [worker]
    assert await ask(scheduler.broadcast(msg={"op": "whose", "suffix": "!"})) == {worker: "0!"}
    ignored = scheduler.broadcast(msg={"op": "whose"}, on_error="ignore")
    assert await ask(ignored) == {}  # as an argument was missing
    with pytest.raises(TypeError, match="suffix"):
        await ask(scheduler.broadcast(msg={"op": "whose"}))
    with pytest.raises(KeyError, match="nobody"):
        await ask(scheduler.broadcast(msg={"op": "ping"}, workers=["nobody"]))
    assert await ask(scheduler.proxy(msg={"op": "ping"}, worker=worker)) == b"pong"
    of_worker = client.rpc(worker)
    assert (await ask(of_worker.identity()))["address"] == worker
    assert await ask(of_worker.get_data(keys=["one"])) == {"status": "OK", "data": {"one": 1}}


@BOTH_FACES
def test_what_is_there_and_what_was_added_is_called_by_name(face):
    face(call_what_is_there_and_what_was_added, n_workers=1, processes=False)


def name_and(x, dask_worker):
    return dask_worker.name, x


def test_nannies_are_asked_by_way_of_their_workers_and_programs_dial_by_themselves():
    with LocalCluster(n_workers=1, threads_per_worker=1) as cluster, Client(cluster) as client:
        ((worker, nanny),) = client.scheduler.broadcast(msg={"op": "identity"}, nanny=True).items()
        assert (nanny["type"], nanny["worker"]) == ("Nanny", worker)

        async def ask_the_worker():
            async with rpc(worker) as remote:
                done = await remote.run(function=name_and, args=(2,))
                return done["result"], await remote.echo(data=b"x" * 1_000_000)

        result, echoed = asyncio.run(ask_the_worker())
        assert result == ("0", 2)
        assert len(echoed) == 1_000_000

        async def who_has(**kwargs):
            return await client.scheduler.who_has(**kwargs)

        assert client.sync(who_has, keys=[]) == {}  # in a coroutine of the user's
        assert client.sync(client.scheduler.who_has, keys=[]) == {}


def test_much_is_looked_at_a_part_at_a_time(monkeypatch):
    """So the scheduler does all else in between."""

    async def scenario(scheduler, worker):
        async with Client(scheduler.address, asynchronous=True) as client:
            futures = client.map(abs, range(7), key=[f"x-{n}" for n in range(7)])
            await wait(futures)
            keys, one = [future.key for future in futures], "x-0"
            ours, of_worker = client.scheduler, {worker.address: keys}
            turns = []

            async def count_turns():
                while True:
                    turns.append(1)
                    await asyncio.sleep(0)

            for name, arguments, expected in [
                ("who_has", {}, {key: [worker.address] for key in keys}),
                ("who_has", {"keys": [one, "y"]}, {one: [worker.address], "y": []}),
                ("has_what", {}, of_worker),
                ("has_what", {"workers": [worker.address]}, of_worker),
                ("processing", {}, {worker.address: []}),
                ("nbytes", {}, {"abs": 7 * 28}),
                ("nbytes", {"keys": [one], "summary": False}, {one: 28}),
                ("get_task_status", {"keys": [one, "y"]}, {one: "memory", "y": None}),
            ]:
                assert await getattr(ours, name)(**arguments) == expected, name
            counting = asyncio.create_task(count_turns())
            await scheduler.handlers["who_has"]()
            assert len(turns) >= 3
            counting.cancel()
            with pytest.raises(KeyError):
                await ours.has_what(workers=["tcp://nobody:1"])

    monkeypatch.setattr("shoal.scheduler.shell.looks_by_name.NTASKS", 2)
    play_with_worker(scenario)


class Stubborn:
    """An operation that goes on though it is cancelled."""

    def __init__(self):
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self):
        self.begun.set()
        while not self.may_end.is_set():
            with suppress(asyncio.CancelledError):
                await self.may_end.wait()


opened = []


def open_it(what):
    opened.append(what)
    return what


class Wrapped:
    """Tells when it is unpickled."""

    def __init__(self, what):
        self.what = what

    def __reduce__(self):
        return open_it, (self.what,)


def test_services_call_each_other_and_programs_hold_conversations():
    async def scenario(scheduler, worker):
        assert await scheduler.rpc(worker.address).ping() == b"pong"
        assert worker.counters["op"].components[0] == {"ping": 1}
        assert await worker.rpc(scheduler.address).echo(data=1) == 1

        async def count(comm, n):
            for i in range(n):
                await comm.write(i)
                assert await comm.read() == "next"
            return "done"

        scheduler.handlers["count"] = count
        heard = []
        comm = await comms.connect(scheduler.address)
        await comm.write({"op": "count", "n": 2})
        for i in range(2):
            assert await comm.read() == i
            await comm.write("next")
        assert await comm.read() == "done"
        await comm.write({"op": "connection_stream"})
        scheduler.stream_handlers["note"] = lambda x: heard.extend([x])
        await comm.write({"op": "note", "x": 3})
        await comm.write({"op": "close-stream"})
        with pytest.raises(CommClosedError):
            await comm.read()
        assert heard == [3]

    play_with_worker(scenario)


def test_what_is_for_others_is_not_unpickled_in_the_scheduler():
    """Nor are its packages needed there.  All is one process here, so each opening counts."""

    async def scenario(scheduler, worker):
        worker.handlers["give"] = lambda what: Wrapped(f"{what} and a result")
        message = {"op": "give", "what": Wrapped("an argument")}
        expected = ["an argument", "an argument and a result"]
        async with Client(scheduler.address, asynchronous=True) as client:
            opened.clear()
            given = await client.scheduler.broadcast(msg=message)
            assert (given, opened) == ({worker.address: expected[1]}, expected)
            opened.clear()
            assert await client.scheduler.proxy(msg=message, worker=worker.name) == expected[1]
            assert opened == expected
        given = await scheduler.broadcast(msg=message)  # for code in the scheduler
        assert given == {worker.address: expected[1]}

    play_with_worker(scenario)


def test_workers_are_found_and_removed_by_hand():
    async def scenario(scheduler, worker):
        assert scheduler.check_idle() >= scheduler.time_started
        assert scheduler.coerce_address(worker.name) == worker.address
        assert scheduler.coerce_address("localhost:80", resolve=False) == "tcp://localhost:80"
        assert scheduler.coerce_address(("127.0.0.1", 80)) == "tcp://127.0.0.1:80"
        assert scheduler.coerce_hostname(worker.name) == "127.0.0.1"
        assert scheduler.coerce_hostname("elsewhere") == "elsewhere"
        async with Client(scheduler.address, asynchronous=True) as client:
            future = client.submit(abs, -1, workers=["nobody"])
            while not scheduler.unrunnable:
                await asyncio.sleep(0)
            assert scheduler.check_idle() is None
            del future
        assert set(scheduler.stream_comms) == {worker.address}
        assert await scheduler.remove_worker(worker.name, stimulus_id="s") == "OK"
        assert not scheduler.workers
        removed = scheduler.remove_worker(worker.address, stimulus_id="s")
        assert await removed == "already-removed"
        with pytest.raises(KeyError):
            scheduler.close_worker(worker.address)
        await worker.finished()

    play_with_worker(scenario)


def test_what_is_blocked_by_a_setting_is_refused_whichever_way_it_is_called():
    async def scenario(scheduler, worker):
        for refusing in (scheduler, worker):
            async with rpc(refusing.address) as remote:
                with pytest.raises(ValueError, match="'echo' handler has been explicitly"):
                    await remote.echo(data=1)
        with pytest.raises(ValueError, match="'echo' handler has been explicitly"):
            await scheduler.broadcast(msg={"op": "echo"})

    blocked = ["echo"]
    names = ("distributed.scheduler.blocked-handlers", "distributed.worker.blocked-handlers")
    with dask.config.set(dict.fromkeys(names, blocked)):
        play_with_worker(scenario)


def test_a_service_that_closes_ends_what_is_under_way_for_programs():
    async def scenario(scheduler, worker):
        begun, ended = asyncio.Event(), asyncio.Event()

        async def last_forever(comm):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        worker.handlers["last"] = scheduler.handlers["last"] = last_forever
        tasks = [asyncio.create_task(scheduler.broadcast(msg={"op": "last"}))]
        await begun.wait()
        for service in (worker, scheduler):
            begun.clear()
            ended.clear()
            comm = await comms.connect(service.address)
            tasks.append(asyncio.create_task(send_recv(comm, op="last")))
            await begun.wait()
            await service.close()
            assert ended.is_set()
            for task in tasks:
                with pytest.raises(CommClosedError):
                    await task
            tasks.clear()

    play_with_worker(scenario)


@pytest.mark.parametrize("kind", [Scheduler, Worker])
def test_an_operation_that_goes_on_though_it_is_cancelled_keeps_no_service_open(kind, monkeypatch):
    async def scenario(scheduler, worker):
        by_comm, by_client = Stubborn(), Stubborn()
        service = scheduler if kind is Scheduler else worker
        service.handlers["guest"] = by_comm.__call__
        scheduler.handlers["client"] = by_client.__call__
        tasks = [asyncio.create_task(rpc(service.address).guest())]
        await by_comm.begun.wait()
        async with Client(scheduler.address, asynchronous=True) as client:
            tasks.append(asyncio.create_task(client.scheduler.client()))
            await by_client.begun.wait()
            await service.close()
            await scheduler.close()
        for task in tasks:
            with pytest.raises(CommClosedError):
                await task
        for stubborn in (by_comm, by_client):
            stubborn.may_end.set()

    for name in ("compat.servers.guests", "scheduler.shell.operations.answering"):
        monkeypatch.setattr(f"shoal.{name}.CANCEL_SECONDS", 0.01)
    play_with_worker(scenario)


def test_an_operation_may_end_its_service():
    async def scenario(scheduler, worker):
        async with rpc(worker.address) as remote:
            assert await remote.terminate() == "OK"
        await worker.finished()
        async with rpc(scheduler.address) as remote:
            assert await remote.terminate() == "OK"
        await scheduler.finished()

    play_with_worker(scenario)


def test_a_worker_that_closes_gracefully_leaves_its_results_to_others():
    async def scenario(scheduler, worker):
        async with (
            Worker(scheduler.address, nthreads=1) as other,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            future = await client.scatter(bytes(50_000), workers=[worker.address])
            await worker.close_gracefully()
            assert await client.who_has([future]) == {future.key: (other.address,)}

    play_with_worker(scenario)


def test_a_worker_that_closes_gracefully_closes_though_nobody_takes_its_results():
    async def scenario(scheduler, worker):
        async with Client(scheduler.address, asynchronous=True) as client:
            future = await client.scatter(bytes(50_000))
            await worker.close_gracefully()
            assert worker.status is Status.closed
            del future

    play_with_worker(scenario)


def test_every_operation_that_is_told_of_is_there_and_what_is_called_at_intervals_ends():
    async def scenario(scheduler, worker):
        stopped = []
        for service in (scheduler, worker):
            fails = SimpleNamespace(stop=stopped.pop)  # which keeps nobody from closing
            ends = SimpleNamespace(stop=lambda: stopped.append(1))
            service.periodic_callbacks |= {"fails": fails, "mine": ends, "also": ends}
            assert all(map(callable, service.handlers.values()))
            assert not set(service.reasons) & set(service.handlers)
        await worker.close()
        stopped.clear()
        await scheduler.close()
        assert len(stopped) == 2

    play_with_worker(scenario)


def test_a_worker_can_not_call_by_name_as_if_it_were_a_client():
    """What is called is code; a worker that went astray must not run any in the scheduler."""

    async def scenario(scheduler, worker):
        keyring = Keyring.from_token(scheduler.token).only(WORKER)
        decoder = Decoder(SchedulerToWorker)
        connection = await connect(scheduler.address, keyring, WORKER, decoder, timeout_seconds=5)
        ended = asyncio.get_running_loop().create_future()
        connection.start(lambda messages, buffers: None, ended.set_result)
        connection.send_with_buffers(Parcel(), [b"x" * 10])
        await ended
        assert "guests" not in scheduler.__dict__  # nobody was welcomed

    play_with_worker(scenario)


def test_what_was_told_of_an_address_by_one_who_is_gone_keeps_nobody_out():
    async def scenario(scheduler, worker):
        told = publish_token(worker.address, b"of one who was killed", file=False)
        try:
            assert await scheduler.rpc(worker.address).ping() == b"pong"
        finally:
            told.withdraw()

    play_with_worker(scenario)


def test_who_does_not_know_the_token_calls_nothing(monkeypatch):
    async def scenario(scheduler, worker):
        from shoal.compat.comm import keys

        wrong = Keyring.from_token(b"wrong")
        monkeypatch.setattr(keys, "published_token", lambda address: None)
        mark = keys.keys_of_caller.set(wrong)
        try:
            for address in (scheduler.address, worker.address):
                with pytest.raises(AuthenticationError):
                    await comms.connect(address)
        finally:
            keys.keys_of_caller.reset(mark)

    play_with_worker(scenario)
