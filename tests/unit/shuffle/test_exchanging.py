"""Transfers and unpacks on real workers, of a scheduler that says what a test has it say."""

from __future__ import annotations

import errno
import pickle
import threading
from pathlib import Path
from typing import Any, ClassVar

import dask.config
import pytest

from shoal.ids import Epoch
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.messages import (
    InputsUnavailable,
    ReplicasGone,
    TaskFailed,
    TaskFinished,
    WorkerLeaving,
)
from shoal.protocol.shuffles import (
    LocateShards,
    ShardHolder,
    ShardsJoined,
    ShardsLocated,
    ShardsMade,
)
from shoal.protocol.slots import RunRescheduled
from shoal.shuffle.errors import (
    NotInShuffle,
    P2POutOfDiskError,
    ShuffleStale,
)
from shoal.shuffle.exchange import WithExchanges, exchange_of
from shoal.shuffle.kept import KeptShards
from shoal.shuffle.transferring import NREFUSALS_MAX, transfer
from shoal.shuffle.unpacking import unpack
from shoal.storage.disk import Disk
from shoal.worker.shell.service import Worker
from tests.unit.shuffle.byte_exchange import ByteExchange
from tests.unit.worker.fake_scheduler import FakeScheduler, run, worker_of

EXCHANGE = ByteExchange("s", 4, 1000)
VALUES = [bytes([0, 1, 1, 3]), bytes([1, 0, 3, 3]), bytes([0, 0])]
EPOCH = 7


class Cluster:
    """Three workers, each of which cuts one input partition."""

    def __init__(self, protocol: str = "inproc://", **arguments: Any) -> None:
        self._protocol = protocol
        self._arguments = arguments
        self.made: list[ShardsMade] = []

    async def __aenter__(self) -> Cluster:
        self.scheduler = await FakeScheduler().start(self._protocol)
        self.workers = [
            await worker_of(self.scheduler, name=f"w{number}", **self._arguments)
            for number in range(3)
        ]
        return self

    async def __aexit__(self, *exception: object) -> None:
        for worker in self.workers:
            await worker.close()
        await self.scheduler.close()

    async def transfer_all(self) -> None:
        for number, (worker, value) in enumerate(zip(self.workers, VALUES, strict=True)):
            self.begin_transfer(worker, value, number)
            self.made.append(await self.scheduler.hear(worker, ShardsMade))
            finished = await self.scheduler.hear(worker, TaskFinished)
            assert finished.value is None  # it is kept, and does not travel

    def begin_transfer(self, worker: Worker, value: bytes, number: int) -> None:
        function = WithExchanges({"s": EXCHANGE}, transfer)
        self.scheduler.run(worker, function, value, "s", number, task=10 + number)

    def begin_unpack(self, worker: Worker, output: int, task: int = 100) -> None:
        function = WithExchanges({"s": EXCHANGE}, unpack)
        self.scheduler.run(worker, function, "s", output, EPOCH, task=task)

    def pairs(self) -> list[tuple[Worker, ShardsMade]]:
        return list(zip(self.workers, self.made, strict=True))

    def located(self) -> ShardsLocated:
        holders = [
            ShardHolder(worker.address, [made.task], [], [made.input_partition], [made.digest])
            for worker, made in self.pairs()
        ]
        return ShardsLocated(EPOCH, len(VALUES), holders)

    async def answer_where(self, worker: Worker) -> None:
        call = await self.scheduler.hear(worker, LocateShards)
        assert (call.shuffle, call.epoch) == ("s", EPOCH)
        self.scheduler.say(worker, answer(call.request, self.located()))


@pytest.mark.parametrize("protocol", ["inproc://", "tcp://127.0.0.1:0"])
@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_every_output_partition_gets_its_rows_in_the_order_of_input_partitions(
    protocol: str, disk: bool
) -> None:
    async def exchange() -> None:
        async with Cluster(protocol) as cluster:
            if disk:
                for worker in cluster.workers:
                    worker.shuffles.budget.nbytes_max = 0
            await cluster.transfer_all()
            held = [worker.results[made.task] for worker, made in cluster.pairs()]
            assert all(isinstance(kept, KeptShards) and kept.is_on_disk is disk for kept in held)
            asker = cluster.workers[0]
            for output in range(4):
                cluster.begin_unpack(asker, output, 100 + output)
                if output == 0:
                    await cluster.answer_where(asker)  # asked once in each epoch
                joined = await cluster.scheduler.hear(asker, ShardsJoined)
                nrows = sum([value.count(output) for value in VALUES])
                assert (joined.rows, joined.nbytes) == (nrows, 1000 * nrows)
                await cluster.scheduler.hear(asker, TaskFinished)
                assert asker.results[joined.task] == bytes([output]) * (1000 * nrows)

    run(exchange())


def test_what_a_transfer_tells_adds_up() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            await cluster.transfer_all()
            for made, value in zip(cluster.made, VALUES, strict=True):
                lanes = made.nbytes_by_output
                found = [int.from_bytes(lanes[at : at + 8], "little") for at in range(0, 32, 8)]
                assert found == [1000 * value.count(output) for output in range(4)]
                assert made.nbytes == sum(found)
                assert made.rows == len(value)

    run(exchange())


def test_a_holder_that_has_gone_is_named_with_what_it_held() -> None:
    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0") as cluster:
            await cluster.transfer_all()
            asker, gone, _ = cluster.workers
            await gone.close()
            cluster.begin_unpack(asker, 1)
            await cluster.answer_where(asker)
            ended = await cluster.scheduler.hear(asker, InputsUnavailable)
            assert ended.missing == [cluster.made[1].task]
            assert ended.unreachable == [gone.address]
            assert ended.lacking == []
            cluster.begin_unpack(asker, 1)  # it is asked anew where they are
            await cluster.scheduler.hear(asker, LocateShards)

    run(exchange())


@pytest.mark.parametrize("which", [0, 1], ids=["own", "a peer's"])
def test_a_damaged_file_is_a_lost_replica_and_no_wrong_rows(which: int) -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            for worker in cluster.workers:
                worker.shuffles.budget.nbytes_max = 0
            await cluster.transfer_all()
            asker, holder = cluster.workers[0], cluster.workers[which]
            [path] = Path(holder.shuffles.files.disk.folder).iterdir()
            content = bytearray(path.read_bytes())
            content[0] ^= 1
            path.write_bytes(content)
            cluster.begin_unpack(asker, 0)
            await cluster.answer_where(asker)
            if holder is not asker:
                gone = await cluster.scheduler.hear(holder, ReplicasGone)
                ended = await cluster.scheduler.hear(asker, InputsUnavailable)
            else:
                said = [await cluster.scheduler.hear(asker, object) for _ in range(2)]
                [gone] = [one for one in said if isinstance(one, ReplicasGone)]
                [ended] = [one for one in said if isinstance(one, InputsUnavailable)]
            assert gone.tasks == ended.missing == [cluster.made[which].task]
            assert ended.lacking == [holder.address]
            assert holder.shuffles.counters.nlost == 1
            assert gone.tasks[0] not in holder.results

    run(exchange())


def test_shards_of_another_cut_are_missing() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            await cluster.transfer_all()
            asker = cluster.workers[0]
            cluster.made[2] = ShardsMade(
                cluster.made[2].task, cluster.made[2].run, "s", 2, 2, digest=1, nbytes=0
            )
            cluster.begin_unpack(asker, 0)
            await cluster.answer_where(asker)
            ended = await cluster.scheduler.hear(asker, InputsUnavailable)
            assert ended.missing == [cluster.made[2].task]
            assert ended.lacking == [cluster.workers[2].address]

    run(exchange())


def test_a_run_of_a_stale_epoch_is_given_back() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            asker = cluster.workers[0]
            cluster.begin_unpack(asker, 0)
            call = await cluster.scheduler.hear(asker, LocateShards)
            failure = to_failure(ShuffleStale("The shuffle 's' is in another epoch."))
            cluster.scheduler.say(asker, Refusal(call.request, failure))
            await cluster.scheduler.hear(asker, RunRescheduled)

    run(exchange())


def test_what_another_life_of_the_scheduler_has_said_is_not_believed() -> None:
    """It counts tasks and epochs from the start, so that the same numbers mean something else."""

    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0", reconnect_seconds=10) as cluster:
            await cluster.transfer_all()
            asker = cluster.workers[0]
            cluster.begin_unpack(asker, 0)
            await cluster.answer_where(asker)
            await cluster.scheduler.hear(asker, ShardsJoined)
            await cluster.scheduler.hear(asker, TaskFinished)
            cluster.scheduler.epoch = 2
            cluster.scheduler.connections[asker.address].close()
            await cluster.scheduler.registered()
            cluster.begin_unpack(asker, 0)
            await cluster.scheduler.hear(asker, LocateShards)

    run(exchange())


class WatchedDisk(Disk):
    """Knows which threads read."""

    def open(self, path: str) -> int:
        self.readers.append(threading.get_ident())
        return super().open(path)

    readers: ClassVar[list[int]] = []


def test_the_loop_waits_for_no_disk_as_shards_are_copied_however_few() -> None:
    async def exchange() -> None:
        async with Cluster("tcp://127.0.0.1:0") as cluster:
            for worker in cluster.workers:
                shuffles = worker.shuffles
                shuffles.budget.nbytes_max = 0
                shuffles.files.disk = WatchedDisk(shuffles.files._make_folder)
            await cluster.transfer_all()
            holder, asker, _ = cluster.workers
            WatchedDisk.readers.clear()
            replicas, _ = await asker.feed.exchange.get(
                holder.address, [cluster.made[0].task], Epoch(1)
            )
            assert [header.task for header in replicas.replicas] == [cluster.made[0].task]
            assert WatchedDisk.readers
            assert threading.get_ident() not in WatchedDisk.readers

    run(exchange())


class FullDisk(Disk):
    """Takes nothing."""

    def _write(self, descriptor: int, view: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_worker_without_room_hands_the_transfer_on_and_says_so_in_the_end() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            worker = cluster.workers[0]
            shuffles = worker.shuffles
            shuffles.budget.nbytes_max = shuffles.budget.nbytes_hard_max = 0
            shuffles.files.disk = FullDisk(shuffles.files._make_folder)
            for _ in range(NREFUSALS_MAX):
                cluster.begin_transfer(worker, VALUES[0], 0)
                await cluster.scheduler.hear(worker, RunRescheduled)
            cluster.begin_transfer(worker, VALUES[0], 0)
            failed = await cluster.scheduler.hear(worker, TaskFailed)
            error = from_failure(failed.failure)
            assert isinstance(error, P2POutOfDiskError)
            assert "No space left on device" in str(error)

    run(exchange())


def test_a_full_disk_does_no_harm_while_memory_has_room() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            worker = cluster.workers[0]
            shuffles = worker.shuffles
            shuffles.budget.nbytes_max = 0
            shuffles.files.disk = FullDisk(shuffles.files._make_folder)
            cluster.begin_transfer(worker, VALUES[0], 0)
            made = await cluster.scheduler.hear(worker, ShardsMade)
            assert made.disk_nbytes == 0
            await cluster.scheduler.hear(worker, TaskFinished)
            assert not worker.results[made.task].is_on_disk

    run(exchange())


def test_a_run_that_waits_for_shards_ends_when_its_worker_closes() -> None:
    async def exchange() -> None:
        async with Cluster() as cluster:
            asker = cluster.workers[0]
            cluster.begin_unpack(asker, 0)
            await cluster.scheduler.hear(asker, LocateShards)
            await asker.close()
            await cluster.scheduler.hear(asker, WorkerLeaving)

    run(exchange())


def test_no_disk_is_used_where_the_settings_say_so() -> None:
    async def exchange() -> None:
        with dask.config.set({"distributed.p2p.storage.disk": False}):
            async with Cluster() as cluster:
                worker = cluster.workers[0]
                worker.shuffles.budget.nbytes_max = worker.shuffles.budget.nbytes_hard_max = 0
                await cluster.transfer_all()
                assert not worker.results[cluster.made[0].task].is_on_disk

    run(exchange())


def test_outside_of_a_worker_it_is_said_what_is_needed() -> None:
    with pytest.raises(NotInShuffle, match="requires the distributed scheduler"):
        transfer(b"", "s", 0)
    with pytest.raises(RuntimeError, match="requires the distributed scheduler"):
        unpack("s", 0, 1)


def test_a_function_knows_its_exchanges_and_those_around_it() -> None:
    other = ByteExchange("t", 1)
    inner = WithExchanges({"t": other}, lambda: (exchange_of("s"), exchange_of("t")))
    assert WithExchanges({"s": EXCHANGE}, inner)() == (EXCHANGE, other)
    with pytest.raises(NotInShuffle):
        exchange_of("s")


def test_what_knows_its_exchanges_survives_a_journey() -> None:
    function = pickle.loads(pickle.dumps(WithExchanges({"s": EXCHANGE}, transfer)))
    assert function.exchanges["s"].noutputs == 4
    assert function.function is transfer
