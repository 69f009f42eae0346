"""Values between workers, clients and peers that misbehave."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from shoal.comms import CallTimeoutError, Connection, Listener, listen
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Epoch, Key, TaskId
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import (
    FreeReplicas,
    GetReplicas,
    Input,
    ReplicaHeader,
    Replicas,
    ReplicasAdded,
    TaskFailed,
    TaskFinished,
)
from shoal.protocol.payload import InputRef, dump, load
from shoal.protocol.placement import TransfersGauged
from shoal.protocol.shuffles import FetchShards
from shoal.worker.shell.errors import WrongEpoch
from shoal.worker.shell.replicas import LARGE_NBYTES, Held, pack
from shoal.worker.shell.serving import ReplicaServer
from shoal.worker.shell.transfers import Transfers
from tests.unit.worker.fake_scheduler import (
    TOKEN,
    FakeScheduler,
    bring_as_they_are,
    run,
    worker_of,
)

ADDRESSES = ["inproc://", "tcp://127.0.0.1:0", "unix://@shoal-test-transfers"]
KEYRING = Keyring.from_token(TOKEN)
EPOCH = Epoch(1)  # of the fake scheduler


def exchange() -> ReplicaExchange:
    return ReplicaExchange(KEYRING)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("nbytes", [100, 5_000_000])
def test_values_that_a_client_puts_are_kept_told_and_can_be_got(address: str, nbytes: int) -> None:
    """A text and an array; what is missing is said to be."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start(address)
        client = exchange()
        async with worker_of(scheduler) as worker:
            values = {1: "text", 2: np.arange(nbytes // 8)}
            headers: list[ReplicaHeader] = []
            buffers: list[Any] = []
            for task, value in values.items():
                header, pieces = dump(value)
                headers.append(ReplicaHeader(TaskId(task), Key(f"k{task}"), 9, header, len(pieces)))
                buffers += pieces
            await client.put(worker.address, headers, buffers, EPOCH)
            assert (await scheduler.hear(worker, ReplicasAdded)).tasks == [1, 2]
            assert worker.data["k1"] == "text"
            reply, buffers = await client.get(
                worker.address, [TaskId(3), TaskId(2), TaskId(1)], EPOCH
            )
            assert reply.missing == [3]
            assert [header.key for header in reply.replicas] == ["k2", "k1"]
            nfirst = reply.replicas[0].nbuffers
            array: Any = load(reply.replicas[0].header, buffers[:nfirst])
            assert (array == values[2]).all()
            assert load(reply.replicas[1].header, buffers[nfirst:]) == "text"
            scheduler.say(worker, FreeReplicas([TaskId(1)]))
            scheduler.run(worker, len, "x", task=9)
            await scheduler.hear(worker, TaskFinished)
            assert (await client.get(worker.address, [TaskId(1)], EPOCH))[0].missing == [1]
        await client.close()
        await scheduler.close()

    run(scene())


class Mine:
    """Loads only where it is allowed to."""

    def __reduce__(self) -> Any:
        return burst, ()


def burst() -> None:
    raise SystemExit("not here")


def test_a_value_that_can_not_be_loaded_is_refused_with_the_cause() -> None:
    """Loading it raises what would end a process; the worker goes on."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        client = exchange()
        async with worker_of(scheduler) as worker:
            header, buffers = dump(Mine())
            replica = ReplicaHeader(TaskId(1), Key("k"), 9, header, len(buffers))
            with pytest.raises(SystemExit, match="not here"):
                await client.put(worker.address, [replica], buffers, EPOCH)
            scheduler.run(worker, len, "abc")
            await scheduler.hear(worker, TaskFinished)
        await client.close()
        await scheduler.close()

    run(scene())


def test_an_input_that_can_not_be_loaded_fails_the_run_with_the_cause() -> None:
    """It pickles at its holder, and raises where it is needed."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            scheduler.run(a, Mine, task=1)
            await scheduler.hear(a, TaskFinished)
            item = Input(TaskId(1), Key("key-1"), 8, [a.address])
            scheduler.run(b, type, InputRef(0), task=2, inputs=[item])
            failed = await scheduler.hear(b, TaskFailed)
            assert isinstance(from_failure(failed.failure), SystemExit)
            assert failed.failure.worker == b.address
        await scheduler.close()

    run(scene())


class FakePeer:
    """Accepts connections, and treats every GetReplicas as it was told to."""

    def __init__(self, treat: Callable[[Connection, GetReplicas], None]) -> None:
        self.treat = treat
        self.nconnections = 0
        self.connections: list[Connection] = []
        self._listener: Listener

    async def start(self, address: str = "tcp://127.0.0.1:0") -> "FakePeer":
        self._listener = await listen(
            address, KEYRING, lambda role: Decoder(ToWorkerFromPeer), self._on_connection
        )
        self.address = self._listener.address
        return self

    def _on_connection(self, connection: Connection) -> None:
        self.nconnections += 1
        self.connections.append(connection)

        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            for message in messages:
                self.treat(connection, message)

        connection.start(on_messages, lambda reason: None)

    async def close(self) -> None:
        self._listener.close()
        for connection in self.connections:
            connection.abort()
            await connection.wait_closed()
        await self._listener.wait_closed()


def give(connection: Connection, message: GetReplicas) -> None:
    """What it is asked for: the number of each task, as its value."""
    held = [Held(task, Key(f"k{task}"), int(task), 8) for task in message.tasks]
    packed = pack(held, by_reference=False, address="peer")
    connection.send([Replicas(message.request, packed.headers)])


def give_so_many_bytes(connection: Connection, message: GetReplicas) -> None:
    """The number of each task says how many."""
    held = [Held(task, Key(f"k{task}"), bytes(task), task) for task in message.tasks]
    packed = pack(held, by_reference=False, address="peer")
    connection.send_with_buffers(Replicas(message.request, packed.headers), packed.buffers)


def ignore(connection: Connection, message: GetReplicas) -> None:
    """It is busy, or stopped."""


def hang_up(connection: Connection, message: GetReplicas) -> None:
    """It dies over it."""
    connection.abort()


def with_transfers(
    scene: Callable[[Transfers], Any], answer_seconds: float = 10.0
) -> list[TransfersGauged]:
    """Play it; what was told of how fast results came."""
    told: list[TransfersGauged] = []

    async def work() -> None:
        with ThreadPoolExecutor(1) as executor:
            peers = ReplicaExchange(KEYRING, stall_seconds=answer_seconds)
            transfers = Transfers("me", peers, executor, told.append)
            await scene(transfers)
            await transfers.close()

    run(work())
    return told


def test_how_fast_results_come_is_told_once_enough_has_come_and_when_asked() -> None:
    """Eighteen megabytes at once, then one, then what is too small to say anything."""

    async def scene(transfers: Transfers) -> None:
        peer = await FakePeer(give_so_many_bytes).start()
        for nbytes in (18_000_000, 1_000_000, 1000):
            await transfers.fetch(peer.address, [TaskId(nbytes)], EPOCH, nbytes)
        transfers.tell_rates()
        transfers.tell_rates()
        await peer.close()

    first, second = with_transfers(scene)
    assert len(first.peers) == len(second.peers) == 1
    assert first.nbytes[0] >= 18_000_000 > second.nbytes[0] >= 1_000_000
    assert min(*first.seconds, *second.seconds) > 0


def test_a_connection_is_used_again() -> None:
    """Many requests, some at once: one connection."""

    async def scene(transfers: Transfers) -> None:
        peer = await FakePeer(give).start()
        for _ in range(3):
            fetched = await asyncio.gather(
                *[transfers.fetch(peer.address, [TaskId(n)], EPOCH, 8) for n in range(5)]
            )
            assert [held[0].value for held, _ in fetched] == [0, 1, 2, 3, 4]
        assert peer.nconnections == 1
        await peer.close()

    with_transfers(scene)


def test_a_peer_that_dies_over_a_request_is_an_error_and_no_hang() -> None:
    """The next request makes a new connection."""

    async def scene(transfers: Transfers) -> None:
        peer = await FakePeer(hang_up).start()
        with pytest.raises(OSError, match="lost"):
            await transfers.fetch(peer.address, [TaskId(1)], EPOCH, 8)
        peer.treat = give
        held, _ = await transfers.fetch(peer.address, [TaskId(1)], EPOCH, 8)
        assert held[0].value == 1
        await peer.close()

    with_transfers(scene)


def test_a_connection_that_went_stale_is_made_again() -> None:
    """The peer was replaced at its address between two requests."""

    async def scene(transfers: Transfers) -> None:
        peer = await FakePeer(give).start("unix://@shoal-test-stale")
        await transfers.fetch(peer.address, [TaskId(1)], EPOCH, 8)
        peer.treat = hang_up
        follower = threading.Event()

        def once(connection: Connection, message: GetReplicas) -> None:
            if follower.is_set():
                give(connection, message)
            else:
                follower.set()
                connection.abort()

        peer.treat = once
        held, _ = await transfers.fetch(peer.address, [TaskId(2)], EPOCH, 8)
        assert held[0].value == 2
        assert peer.nconnections == 2
        await peer.close()

    with_transfers(scene)


def test_a_peer_that_does_not_answer_is_given_up() -> None:
    """It may be stopped; its connection is of no use any more."""

    async def scene(transfers: Transfers) -> None:
        peer = await FakePeer(ignore).start()
        with pytest.raises(CallTimeoutError, match="did not answer"):
            await transfers.fetch(peer.address, [TaskId(1)], EPOCH, 8)
        peer.treat = give
        await transfers.fetch(peer.address, [TaskId(1)], EPOCH, 8)
        assert peer.nconnections == 2
        await peer.close()

    with_transfers(scene, answer_seconds=0.1)


def test_numbers_of_another_epoch_mean_nothing() -> None:
    """What is asked for is missing, what is put is refused; also while there is no scheduler."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        client = exchange()
        async with worker_of(scheduler, reconnect_seconds=10) as worker:
            scheduler.run(worker, len, "abc", task=1)
            await scheduler.hear(worker, TaskFinished)
            header, buffers = dump("value")
            replica = ReplicaHeader(TaskId(1), Key("k"), 9, header, len(buffers))
            with pytest.raises(WrongEpoch, match="did not keep these values"):
                await client.put(worker.address, [replica], buffers, Epoch(7))
            assert (await client.get(worker.address, [TaskId(1)], Epoch(7)))[0].missing == [1]
            assert (await client.get(worker.address, [TaskId(1)], EPOCH))[0].missing == []
            scheduler.welcomes = False
            scheduler.connections[worker.address].close()
            await scheduler.registered()
            with pytest.raises(OSError, match="has lost its scheduler"):
                await client.put(worker.address, [replica], buffers, EPOCH)
        await client.close()
        await scheduler.close()

    run(scene())


def test_the_loop_stays_responsive_while_a_large_value_is_loaded() -> None:
    """Values of many megabytes that take time to load: timers are not late."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            scheduler.run(a, SlowToLoad, task=1)
            await scheduler.hear(a, TaskFinished)
            LOADING.clear()
            item = Input(TaskId(1), Key("key-1"), 8, [a.address])
            scheduler.run(b, len, InputRef(0), task=2, inputs=[item])
            assert await asyncio.to_thread(LOADING.wait, 10)
            GO.set()  # only reached if the loop goes on while the value is being loaded
            await scheduler.hear(b, ReplicasAdded)
            await scheduler.hear(b, TaskFinished)
        await scheduler.close()

    run(scene())


LOADING, GO = threading.Event(), threading.Event()


class SlowToLoad:
    """Two megabytes."""

    def __init__(self) -> None:
        self.content = bytes(2_000_000)

    def __reduce__(self) -> Any:
        return load_slowly, (self.content,)

    def __len__(self) -> int:
        return len(self.content)


def load_slowly(content: bytes) -> SlowToLoad:
    LOADING.set()
    assert GO.wait(10)
    return SlowToLoad()


class Taker:
    """A connection of a peer that takes what it is sent, or never does."""

    scheme = "tcp"
    peer_address = "tcp://taker:1"

    def __init__(self, *, takes: bool) -> None:
        self.closed = False
        self.takes = takes
        self.sent = asyncio.Event()
        self.aborted = asyncio.Event()

    def send_with_buffers(self, message: Any, buffers: Any) -> None:
        self.sent.set()

    async def drain(self) -> None:
        if not self.takes:
            await self.aborted.wait()

    def abort(self) -> None:
        self.closed = True
        self.aborted.set()


def server_of_one(executor: ThreadPoolExecutor, **options: Any) -> ReplicaServer:
    """It has one result, large, and gives it to one peer at a time."""
    held = Held(TaskId(1), Key("k"), np.zeros(LARGE_NBYTES // 8 + 1), LARGE_NBYTES)
    return ReplicaServer(
        "tcp://us:1",
        executor,
        is_in=lambda epoch: True,
        look_up=lambda task: held,
        bring=bring_as_they_are,
        put=lambda values: None,
        begin=lambda say, call: None,
        on_actor_call=lambda connection, message, buffers: None,
        send_shards=no_shards,
        transfers_max=1,
        **options,
    )


def test_a_peer_that_takes_nothing_does_not_keep_others_from_being_served() -> None:
    async def scene() -> None:
        with ThreadPoolExecutor(1) as executor:
            server = server_of_one(executor, stall_seconds=0.01)
            stuck: Any = Taker(takes=False)
            other: Any = Taker(takes=True)
            for taker in (stuck, other):
                server.on_get_replicas(taker, GetReplicas(1, [TaskId(1)], EPOCH))
            await asyncio.wait_for(other.sent.wait(), 10)
            assert stuck.aborted.is_set()
            assert not other.closed
            await server.close()

    run(scene())


def test_an_answer_that_can_not_be_made_ends_the_connection() -> None:
    """Nothing can be pickled where the threads for it have gone; the peer shall not wait for it."""

    async def scene() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: told.append(context["message"])
        )
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        server = server_of_one(executor)
        peer: Any = Taker(takes=True)
        server.on_get_replicas(peer, GetReplicas(1, [TaskId(1)], EPOCH))
        await asyncio.wait_for(peer.aborted.wait(), 10)
        assert told == ["Serving a peer failed"]
        await server.close()

    run(scene())


async def no_shards(connection: Connection, call: FetchShards) -> None:
    """These workers take part in no shuffle."""
    raise AssertionError(f"{connection} asks for shards: {call}")
