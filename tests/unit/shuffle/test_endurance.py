"""What goes wrong around shards, on real workers of a scheduler that a test speaks for."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from shoal.comms import Connection, listen
from shoal.ids import Key, RunId, TaskId
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import ToWorkerFromPeer
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import (
    InputsUnavailable,
    RecallRuns,
    RunReturned,
    TaskFailed,
    TaskFinished,
)
from shoal.protocol.shuffles import LocateShards, ShardHolder, ShardsMade
from shoal.protocol.slots import RunRescheduled
from shoal.shuffle.errors import P2PConsistencyError
from shoal.shuffle.exchange import Buffer, WithExchanges
from shoal.shuffle.keeping import keep
from shoal.shuffle.kept import KeptShards
from shoal.shuffle.unpacking import unpack
from shoal.storage.disk import Disk
from shoal.worker.shell.replicas import Held
from tests.unit.shuffle.byte_exchange import ByteExchange
from tests.unit.shuffle.test_exchanging import EPOCH, VALUES, Cluster
from tests.unit.worker.fake_scheduler import TOKEN, run
from tests.until import until


def test_a_run_that_is_taken_back_waits_no_more() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            asker = cluster.workers[0]
            cluster.begin_unpack(asker, 0)
            await cluster.scheduler.hear(asker, LocateShards)  # and is never answered
            cluster.scheduler.say(asker, RecallRuns([(TaskId(100), RunId(1))]))
            returned = await cluster.scheduler.hear(asker, RunReturned)
            assert (returned.task, returned.run) == (100, 1)

    run(exchange())


class MuteHolder:
    """Lets everybody in, and answers nothing."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []

    async def __aenter__(self) -> MuteHolder:
        decoder = Decoder(ToWorkerFromPeer)
        self._listener = await listen(
            "tcp://127.0.0.1:0", Keyring.from_token(TOKEN), lambda role: decoder, self._let_in
        )
        self.address = self._listener.address
        return self

    def _let_in(self, connection: Connection) -> None:
        connection.start(lambda messages, buffers: None, lambda reason: None)
        self.connections.append(connection)

    async def let_nobody_in(self) -> None:
        self._listener.close()
        await self._listener.wait_closed()

    async def __aexit__(self, *exception: object) -> None:
        for connection in self.connections:
            connection.close()
        await self.let_nobody_in()


def test_a_holder_that_does_not_answer_is_waited_for_as_long_as_it_lets_anybody_in() -> None:
    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0") as cluster, MuteHolder() as mute:
            await cluster.transfer_all()
            asker = cluster.workers[0]
            asker.shuffles.patience_seconds = 0.02
            located = cluster.located()
            gone = located.holders[1]
            located.holders[1] = ShardHolder(
                mute.address, gone.transfers, [], gone.input_partitions, gone.digests
            )
            cluster.located = lambda: located  # type: ignore[method-assign]
            cluster.begin_unpack(asker, 0)
            await cluster.answer_where(asker)
            await until(lambda: len(mute.connections) > 3)  # one that asks, others that look
            assert not cluster.scheduler.heard[asker.address]
            await mute.let_nobody_in()
            ended = await cluster.scheduler.hear(asker, InputsUnavailable)
            assert ended.unreachable == [mute.address]
            assert ended.missing == gone.transfers

    run(exchange())


class FullDisk(Disk):
    """Takes nothing while it is full."""

    is_full = True

    def _write(self, descriptor: int, view: memoryview) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super()._write(descriptor, view)


def test_refusals_of_before_mean_nothing_once_there_is_room() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            worker = cluster.workers[0]
            shuffles = worker.shuffles
            shuffles.budget.nbytes_max = shuffles.budget.nbytes_hard_max = 0
            disk = shuffles.files.disk = FullDisk(shuffles.files._make_folder)
            for _ in range(3):
                for _ in range(2):
                    cluster.begin_transfer(worker, VALUES[0], 0)
                    await cluster.scheduler.hear(worker, RunRescheduled)
                disk.is_full = False
                cluster.begin_transfer(worker, VALUES[0], 0)
                made = await cluster.scheduler.hear(worker, ShardsMade)
                assert made.disk_nbytes == made.nbytes
                await cluster.scheduler.hear(worker, TaskFinished)
                disk.is_full = True

    run(exchange())


class LosesRows(ByteExchange):
    """Joins all but one row."""

    def join(self, output: int, shards: Sequence[Buffer]) -> bytes:
        return super().join(output, shards)[:-1]


def test_rows_that_a_join_loses_are_an_error() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            await cluster.transfer_all()
            asker = cluster.workers[0]
            function = WithExchanges({"s": LosesRows("s", 4, 1000)}, unpack)
            cluster.scheduler.run(asker, function, "s", 0, EPOCH, task=100)
            await cluster.answer_where(asker)
            failed = await cluster.scheduler.hear(asker, TaskFailed)
            error = from_failure(failed.failure)
            assert isinstance(error, P2PConsistencyError)
            assert "output partition 0 has 3 rows or elements, and its shards have 4" in str(error)

    run(exchange())


async def copied(cluster: Cluster) -> tuple[Any, KeptShards]:
    """The second worker, which has got a copy of the first one's shards, and that."""
    await cluster.transfer_all()
    [first, second, _] = cluster.workers
    [task] = [cluster.made[0].task]
    epoch = first.feed.machine.state.epoch
    answer, buffers = await second.feed.exchange.get(first.address, [task], epoch)
    from shoal.worker.shell.replicas import unpack as unpacked

    [held] = unpacked(answer.replicas, buffers, second.address).held
    assert held.nbytes == cluster.made[0].nbytes
    second.feed.on_put([Held(task, *held[1:])])
    kept = second.results[task]
    assert isinstance(kept, KeptShards)
    return second, kept


def test_a_copy_is_as_large_as_its_bytes_and_counts_where_it_is() -> None:
    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0") as cluster:
            cluster.workers[0].shuffles.budget.nbytes_max = 0
            worker, kept = await copied(cluster)
            assert not kept.is_on_disk
            expected = cluster.made[0].nbytes + cluster.made[1].nbytes
            assert worker.shuffles.budget.nbytes == expected

    run(exchange())


def test_a_copy_that_is_too_much_for_memory_goes_to_disk() -> None:
    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0") as cluster:
            budget = cluster.workers[1].shuffles.budget
            budget.nbytes_max = 2000
            _, kept = await copied(cluster)
            await until(lambda: kept.is_on_disk)
            assert budget.nbytes <= 2000
            for output in range(4):
                shard = kept.shard(output)
                nrows = VALUES[0].count(output)
                assert (0 if shard is None else shard.nrows) == nrows
                content = b"" if shard is None else bytes(shard.content)
                assert content == bytes([output]) * (1000 * nrows)

    run(exchange())


def test_shards_that_make_room_for_others_are_read_in_part_from_a_file_of_their_own() -> None:
    async def exchange() -> None:
        async with Cluster(memory_limit=1 << 30) as cluster:
            worker = cluster.workers[0]
            shuffles = worker.shuffles
            cut = ByteExchange("s", 4, 200_000).cut(VALUES[0], 0)
            kept = keep(cut, shuffles.budget, shuffles.files, may_write=True)
            task = TaskId(10)
            worker.feed.on_put([Held(task, Key("transfer"), kept, kept.__sizeof__())])
            nbytes_before = worker.results.nbytes
            assert not kept.is_on_disk
            worker.feed.spill(nbytes_before, "a test says so")
            await until(lambda: kept.is_on_disk)
            await until(lambda: worker.results.nbytes < nbytes_before / 10)
            assert worker.results[task] is kept
            assert shuffles.budget.nbytes == 0
            shard = kept.shard(1)
            assert shard is not None
            assert bytes(shard.content) == bytes([1]) * 400_000

    run(exchange())
