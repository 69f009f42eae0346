"""Calls to a worker beside its tasks, and calls of a worker to its scheduler."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shoal.comms import CommClosedError, Connection, FrameTooLarge, connect, listen
from shoal.protocol.answers import Answer, Refusal, answer
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import (
    FromWorkerToPeer,
    ToWorkerFromPeer,
    WorkerToScheduler,
    answered,
)
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.payload import dump_function, load
from shoal.protocol.questions import NThreads
from shoal.protocol.running import Outcome, RunFunction
from shoal.protocol.shuffles import FetchShards
from shoal.worker.shell.operations import Operations
from shoal.worker.shell.serving import ReplicaServer
from tests.unit.worker.fake_scheduler import (
    TOKEN,
    FakeScheduler,
    bring_as_they_are,
    run,
    worker_of,
)


def double(x: int) -> int:
    return 2 * x


def doubling(request: int, x: int) -> RunFunction:
    return RunFunction(request, dump_function((double, (x,), {})))


def test_a_worker_asks_its_scheduler_and_gets_the_value() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler(hears=WorkerToScheduler | NThreads).start()
        async with worker_of(scheduler) as worker:
            asking = asyncio.create_task(worker.scheduler.call(NThreads))
            call = await scheduler.hear(worker, NThreads)
            scheduler.say(worker, answer(call.request, {"tcp://a:1": 4}))
            assert await asking == {"tcp://a:1": 4}
        await scheduler.close()

    run(scene())


def test_what_the_scheduler_refuses_a_worker_is_raised() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler(hears=WorkerToScheduler | NThreads).start()
        async with worker_of(scheduler) as worker:
            asking = asyncio.create_task(worker.scheduler.call(NThreads))
            call = await scheduler.hear(worker, NThreads)
            scheduler.say(worker, Refusal(call.request, to_failure(KeyError("nobody"))))
            with pytest.raises(KeyError, match="nobody"):
                await asking
        await scheduler.close()

    run(scene())


def test_a_question_fails_when_its_worker_closes() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler(hears=WorkerToScheduler | NThreads).start()
        async with worker_of(scheduler) as worker:
            asking = asyncio.create_task(worker.scheduler.call(NThreads))
            await scheduler.hear(worker, NThreads)
        with pytest.raises(CommClosedError):
            await asking
        await scheduler.close()

    run(scene())


def test_a_peer_may_call_what_the_scheduler_may() -> None:
    """On the connection that also serves results."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            operations = Operations(worker)
            server = ReplicaServer(
                worker.address,
                ThreadPoolExecutor(1),
                is_in=lambda epoch: True,
                look_up=lambda task: None,
                bring=bring_as_they_are,
                put=lambda values: None,
                begin=operations.begin,
                on_actor_call=lambda connection, message, buffers: None,
                send_shards=no_shards,
                transfers_max=1,
            )
            keyring = Keyring.from_token(TOKEN)
            decoder = Decoder(ToWorkerFromPeer | RunFunction)
            listener = await listen("inproc://", keyring, lambda _: decoder, server.on_connection)
            connection = await connect(
                listener.address, keyring, "worker", Decoder(FromWorkerToPeer), timeout_seconds=5.0
            )
            replies: asyncio.Queue[Any] = asyncio.Queue()

            def on_messages(messages: list[Any], buffers: list[Any]) -> None:
                replies.put_nowait(messages[0])

            connection.start(on_messages, lambda reason: None)
            connection.send([doubling(7, 21)])
            reply = await replies.get()
            assert reply.request == 7
            assert load(answered(RunFunction, reply).value) == 42
            connection.close()
            await connection.wait_closed()
            await server.close()
            listener.close()
            await listener.wait_closed()
        await scheduler.close()

    run(scene())


def test_a_value_that_is_too_large_is_refused_instead() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            said: asyncio.Queue[Any] = asyncio.Queue()

            def say(messages: Sequence[Any]) -> None:
                if isinstance(messages[0], Answer):
                    raise FrameTooLarge("the frame", 2, 1)
                said.put_nowait(messages[0])

            Operations(worker).begin(say, doubling(1, 1))
            refusal = await said.get()
            assert isinstance(refusal, Refusal)
            assert isinstance(from_failure(refusal.failure), FrameTooLarge)
        await scheduler.close()

    run(scene())


def test_calls_are_begun_in_the_order_in_which_they_come() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            for number in range(5):
                scheduler.say(worker, doubling(number, number))
            heard = [await scheduler.hear(worker, Answer) for _ in range(5)]
            outcomes: list[Outcome] = [answered(RunFunction, reply) for reply in heard]
            assert [load(outcome.value) for outcome in outcomes] == [0, 2, 4, 6, 8]
        await scheduler.close()

    run(scene())


async def no_shards(connection: Connection, call: FetchShards) -> None:
    """These workers take part in no shuffle."""
    raise AssertionError(f"{connection} asks for shards: {call}")
