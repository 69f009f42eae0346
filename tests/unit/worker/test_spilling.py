"""A worker whose results are more than may be in memory, on real files and on bad disks."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Epoch, TaskId
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import (
    FreeReplicas,
    ReplicasGone,
    RunReturned,
    TaskFinished,
)
from shoal.protocol.payload import InputRef, load
from shoal.storage.disk import Disk
from shoal.storage.errors import FileLost
from shoal.storage.spilled import Spilled
from shoal.worker.shell.service import Worker
from tests.unit.worker.fake_scheduler import TOKEN, FakeScheduler, run, worker_of
from tests.until import until

LIMIT = 1_000_000
"""Of memory: six arrays of 100 kB may stay there."""

ADDRESSES = ["inproc://", "tcp://127.0.0.1:0"]


@pytest.fixture(autouse=True)
def only_results_count() -> Iterator[None]:
    """The process of the tests has far more than that.  Nor is anything compressed."""
    off = dict.fromkeys(("spill", "pause", "terminate", "spill-compression"), False)
    with dask.config.set({f"distributed.worker.memory.{name}": off[name] for name in off}):
        yield


def array(i: int) -> Any:
    return np.full(12_500, i, dtype=float)


def total(x: Any) -> float:
    return float(x.sum())


async def make(scheduler: FakeScheduler, worker: Worker, *numbers: int) -> None:
    """Have arrays made, each as the result of the task of its number."""
    for i in numbers:
        scheduler.run(worker, array, i, task=i)
        await scheduler.hear(worker, TaskFinished)


async def sum_of(scheduler: FakeScheduler, worker: Worker, i: int) -> object:
    """Have a run use the result of task i."""
    scheduler.run(worker, total, InputRef(0), task=100 + i, inputs=[TaskId(i)])
    finished = await scheduler.hear(worker, TaskFinished)
    assert finished.value is not None
    return load(finished.value)


async def are_on_disk(worker: Worker, n: int) -> None:
    """Wait until the oldest `n` results are nowhere but on disk.

    Several are written at once, and while a value is being freed it is had without its file.
    """
    oldest = {f"key-{i}" for i in range(n)}
    await until(lambda: set(worker.data.disk) == oldest and not worker.feed.leaving_nbytes)


def files_of(worker: Worker) -> list[Path]:
    return sorted(Path(worker.local_directory).glob("storage/*"))


def file_of(worker: Worker, i: int) -> Path:
    """That of the result of task i."""
    entry = worker.results.entry(TaskId(i))
    assert entry is not None
    assert isinstance(entry[1], Spilled)
    return Path(entry[1].path)


class Gated(Disk):
    """Writes nothing until somebody lets it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.gate = threading.Event()
        self.is_asked = threading.Event()

    def _write(self, descriptor: int, view: memoryview) -> int:
        self.is_asked.set()
        assert self.gate.wait(20)
        return super()._write(descriptor, view)


class Fickle(Disk):
    """Is full, until somebody makes room."""

    has_room = False

    def _write(self, descriptor: int, view: memoryview) -> int:
        if not self.has_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super()._write(descriptor, view)


def of_kind(kind: type[Disk], made: list[Any]) -> Any:
    """A disk of that kind, for tests to have."""

    def make_disk(*arguments: Any) -> Disk:
        made.append(kind(*arguments))
        disk: Disk = made[-1]
        return disk

    return make_disk


def test_more_results_than_fit_are_held_and_right() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(20))
            await until(lambda: worker.results.nbytes <= 0.6 * LIMIT)
            results = worker.results
            assert results.nbytes + results.spilled_nbytes == 20 * 100_000
            assert results.disk_nbytes == sum(file.stat().st_size for file in files_of(worker))
            for i in range(20):
                assert await sum_of(scheduler, worker, i) == 12_500 * i
            await until(lambda: worker.results.nbytes <= 0.6 * LIMIT)
            folder = files_of(worker)[0].parent
        assert not folder.exists()
        await scheduler.close()

    run(scene())


def test_values_on_disk_can_be_looked_at_and_stay_there() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(10))
            await are_on_disk(worker, 4)
            assert set(worker.data.disk) == {f"key-{i}" for i in range(4)}
            assert set(worker.data.memory) == {f"key-{i}" for i in range(4, 10)}
            assert worker.data.spilled_total == (400_000, worker.results.disk_nbytes)
            assert worker.data["key-2"].sum() == 25_000  # type: ignore[attr-defined]
            assert len(worker.data.disk) == 4
            with pytest.raises(KeyError):
                worker.data.memory["key-2"]
            file_of(worker, 0).unlink()
            with pytest.raises(FileLost):
                worker.data["key-0"]
        await scheduler.close()

    run(scene())


def test_what_is_freed_takes_no_room_on_disk() -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(10))
            await are_on_disk(worker, 4)
            scheduler.say(worker, FreeReplicas([TaskId(i) for i in range(10)]))
            await until(lambda: not files_of(worker))
            results = worker.results
            assert (results.nbytes, results.spilled_nbytes, results.disk_nbytes) == (0, 0, 0)
        await scheduler.close()

    run(scene())


def test_a_slow_disk_holds_nobody_up_but_what_waits_for_memory() -> None:
    """Tasks go on, results that are being written are used, and those freed leave no file."""
    made: list[Gated] = []

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = worker_of(scheduler, memory_limit=LIMIT)
        worker.disk_type = of_kind(Gated, made)
        async with worker:
            await make(scheduler, worker, *range(10))
            [disk] = made
            await asyncio.to_thread(disk.is_asked.wait, 10)
            assert worker.feed.leaving_nbytes == 100_000
            assert await sum_of(scheduler, worker, 0) == 0.0
            scheduler.say(worker, FreeReplicas([TaskId(0), TaskId(1)]))
            await until(lambda: TaskId(1) not in worker.results)
            disk.gate.set()
            await until(lambda: not worker.feed.leaving_nbytes and len(files_of(worker)) == 3)
            assert set(worker.data.disk) == {"key-2", "key-3", "key-4"}  # 24 bytes too many
        await scheduler.close()

    run(scene())


def test_a_worker_closes_though_its_disk_hangs() -> None:
    made: list[Gated] = []

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = worker_of(scheduler, memory_limit=LIMIT)
        worker.disk_type = of_kind(Gated, made)
        async with worker:
            await make(scheduler, worker, *range(10))
            await asyncio.to_thread(made[0].is_asked.wait, 10)
            folder = Path(worker.local_directory)
        assert not folder.exists()
        made[0].gate.set()
        await scheduler.close()

    run(scene())


def test_a_full_disk_is_told_once_and_used_again_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Results stay in memory until then, and no task fails of it."""
    made: list[Fickle] = []

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = worker_of(scheduler, memory_limit=LIMIT)
        worker.disk_type = of_kind(Fickle, made)
        async with worker:
            await make(scheduler, worker, *range(20))
            await until(lambda: not worker.feed.leaving_nbytes and worker.feed.disk_trouble)
            assert worker.results.nbytes == 20 * 100_000
            assert "No space left on device" in worker.feed.disk_trouble
            assert worker.feed.spill(10**6, "a test") == 0
            assert await sum_of(scheduler, worker, 3) == 37_500
            made[0].has_room = True
            await until(lambda: worker.feed.spill(10**6, "a test") > 0)
            await until(lambda: worker.results.nbytes <= 0.6 * LIMIT)
            assert worker.feed.disk_trouble == ""
        await scheduler.close()

    with caplog.at_level(logging.INFO, "shoal.worker"):
        run(scene())
    told = [record.getMessage() for record in caplog.records]
    assert sum("can't be spilled" in line for line in told) == 1
    assert sum("spilled to disk again" in line for line in told) == 1


def test_files_that_go_make_room_for_others() -> None:
    """Results may take 250 kB of disk."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = worker_of(scheduler, memory_limit=LIMIT)
        with dask.config.set({"distributed.worker.memory.max-spill": "250 kB"}):
            await worker
        async with worker:
            await make(scheduler, worker, *range(10))
            await until(lambda: not worker.feed.leaving_nbytes and worker.feed.disk_trouble)
            assert "and 244.14 kiB may be" in worker.feed.disk_trouble
            on_disk = [TaskId(i) for i in range(10) if f"key-{i}" in worker.data.disk]
            assert len(on_disk) == 2
            scheduler.say(worker, FreeReplicas(on_disk))
            await until(lambda: not files_of(worker))
            await make(scheduler, worker, 10)
            await until(lambda: len(worker.data.disk) == 2 and not worker.feed.leaving_nbytes)
        await scheduler.close()

    run(scene())


def holding_a_lock(nbytes: int) -> Any:
    return [bytes(nbytes), threading.Lock()]


def test_what_can_not_be_pickled_stays_in_memory_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            for i in range(3):
                scheduler.run(worker, holding_a_lock, 200_000, task=50 + i)
                await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(6))
            await are_on_disk(worker, 6)
            assert set(worker.data.memory) == {"key-50", "key-51", "key-52"}
            assert worker.feed.disk_trouble == ""
        await scheduler.close()

    run(scene())
    told = [record.getMessage() for record in caplog.records]
    [line] = [line for line in told if "can't be pickled" in line]
    assert re.search("'key-5[012]', a builtins.list of 195.* kiB", line)


@pytest.mark.parametrize("damage", ["torn", "flipped", "deleted"])
def test_a_run_whose_input_is_lost_goes_back_and_the_loss_is_told(damage: str) -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(10))
            await are_on_disk(worker, 4)
            for file in files_of(worker):
                if damage == "torn":
                    os.truncate(file, 1000)
                elif damage == "flipped":
                    content = bytearray(file.read_bytes())
                    content[5000] ^= 1
                    file.write_bytes(content)
                else:
                    file.unlink()
            told = scheduler.run(worker, total, InputRef(0), task=100, inputs=[TaskId(2)])
            gone = await scheduler.hear(worker, ReplicasGone)
            returned = await scheduler.hear(worker, RunReturned)
            assert (gone.tasks, returned.task, returned.run) == ([TaskId(2)], 100, told.run)
            assert await sum_of(scheduler, worker, 7) == 12_500 * 7
            await make(scheduler, worker, 2)  # computed again
            assert await sum_of(scheduler, worker, 2) == 25_000
        await scheduler.close()

    run(scene())


@pytest.mark.parametrize("address", ADDRESSES)
def test_peers_get_what_is_on_disk_and_are_told_what_is_lost(address: str) -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start(address)
        exchange = ReplicaExchange(Keyring.from_token(TOKEN))
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(10))
            await are_on_disk(worker, 4)
            file_of(worker, 1).unlink()
            asked = [TaskId(i) for i in (0, 1, 9)]
            replicas, buffers = await exchange.get(worker.address, asked, Epoch(1))
            assert replicas.missing == [TaskId(1)]
            values = {}
            for header in replicas.replicas:
                own, buffers = buffers[: header.nbuffers], buffers[header.nbuffers :]
                values[header.task] = total(load(header.header, own))
            assert values == {0: 0.0, 9: 112_500.0}
            assert (await scheduler.hear(worker, ReplicasGone)).tasks == [TaskId(1)]
            assert set(worker.data.disk) == {"key-0", "key-2", "key-3"}
        await exchange.close()
        await scheduler.close()

    run(scene())


class Unloadable:
    """Is written, and raises `error` as it is read."""

    __slots__ = ("error",)  # and no weak reference, by which it would be had without a file

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __sizeof__(self) -> int:
        return 200_000

    def __reduce__(self) -> Any:
        return _raise, (self.error,)


def _raise(error: Exception) -> object:
    raise error


def test_a_peer_is_told_what_can_not_be_made_of_a_file() -> None:
    """In one process, values are handed over, and so have to be made here."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("inproc://")
        exchange = ReplicaExchange(Keyring.from_token(TOKEN))
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            scheduler.run(worker, Unloadable, ValueError("broken"), task=0)
            await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(1, 10))
            await until(lambda: "key-0" in worker.data.disk)
            replicas, _ = await exchange.get(worker.address, [TaskId(0), TaskId(9)], Epoch(1))
            assert replicas.missing == [TaskId(0)]
            assert [header.task for header in replicas.replicas] == [TaskId(9)]
            assert (await scheduler.hear(worker, ReplicasGone)).tasks == [TaskId(0)]
        await exchange.close()
        await scheduler.close()

    run(scene())


@pytest.mark.parametrize(
    ("error", "is_written_again"), [(ValueError("broken"), False), (MemoryError("none"), True)]
)
def test_a_kind_that_can_not_be_read_stays_in_memory_unless_that_was_short(
    error: Exception, is_written_again: bool
) -> None:
    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            scheduler.run(worker, Unloadable, error, task=0)
            await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(1, 10))
            await until(lambda: "key-0" in worker.data.disk)
            scheduler.run(worker, type, InputRef(0), task=100, inputs=[TaskId(0)])
            assert (await scheduler.hear(worker, ReplicasGone)).tasks == [TaskId(0)]
            await scheduler.hear(worker, RunReturned)
            scheduler.run(worker, Unloadable, error, task=20)
            await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(21, 30))
            await until(lambda: "key-23" in worker.data.disk)  # it came later
            assert ("key-20" in worker.data.disk) == is_written_again
        await scheduler.close()

    run(scene())


freed_by: list[str] = []


class Telling:
    """Tells who lets go of it."""

    def __sizeof__(self) -> int:
        return 200_000

    def __del__(self) -> None:
        freed_by.append(threading.current_thread().name)


def test_memory_of_what_is_on_disk_is_not_given_back_by_the_loop() -> None:
    """Of large values that takes long, and waits for page faults of others."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            scheduler.run(worker, Telling, task=0)
            await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(1, 10))
            await until(lambda: len(freed_by) == 1)
            scheduler.run(worker, id, InputRef(0), task=100, inputs=[TaskId(0)])
            await scheduler.hear(worker, TaskFinished)
            await make(scheduler, worker, *range(11, 20))
            await until(lambda: len(freed_by) == 2)
            assert threading.current_thread().name not in freed_by
        await scheduler.close()

    freed_by.clear()
    run(scene())


def test_a_disk_that_loses_everything_is_not_written_to_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Or results would be computed, and lost, for ever."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, memory_limit=LIMIT) as worker:
            await make(scheduler, worker, *range(20))
            await are_on_disk(worker, 14)
            for file in files_of(worker):
                file.unlink()
            for i in range(10):
                scheduler.run(worker, total, InputRef(0), task=100 + i, inputs=[TaskId(i)])
                await scheduler.hear(worker, ReplicasGone)
                await scheduler.hear(worker, RunReturned)
            assert "10 spilled results" in worker.feed.disk_trouble
            on_disk = files_of(worker)
            await make(scheduler, worker, *range(20, 30))
            assert files_of(worker) == on_disk
        await scheduler.close()

    run(scene())
    assert sum("are written there" in record.getMessage() for record in caplog.records) == 1
