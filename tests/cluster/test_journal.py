"""Schedulers that keep a journal: what is there again, and what becomes of a bad disk."""

import asyncio
import errno
import logging
import os
from pathlib import Path

import dask
import pytest

from shoal import Client, LocalCluster, Scheduler, fire_and_forget
from shoal.scheduler.shell import service
from shoal.scheduler.shell.errors import JournalInUse, JournalUnusable
from shoal.scheduler.shell.journal import Journaling
from shoal.scheduler.shell.journal_folder import JournalFolder
from tests.cluster.conftest import SMALL
from tests.until import until

NEAR = {**SMALL, "processes": False, "asynchronous": True}


def inc(x):
    return x + 1


def nothing_works(x):
    raise ValueError("not this way")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal")


def keeping(path: str) -> dict:
    return {**NEAR, "scheduler_kwargs": {"journal": path}}


async def published(path: str) -> None:
    """A cluster in which something is published, and that ends."""
    async with LocalCluster(**keeping(path)) as cluster, Client(cluster, asynchronous=True) as c:
        good, bad = c.submit(inc, 1), c.submit(nothing_works, 1)
        await good
        await c.publish_dataset(good=[good, c.submit(inc, good)], bad=bad, text="as it is")


def test_a_cluster_that_is_made_on_the_same_folder_has_what_was_published(path: str) -> None:
    async def scenario() -> None:
        await published(path)
        async with (
            LocalCluster(**keeping(path)) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert await client.list_datasets() == ("bad", "good", "text")
            assert await client.gather(await client.get_dataset("good")) == [2, 3]
            assert await client.get_dataset("text") == "as it is"
            with pytest.raises(ValueError, match="not this way"):
                await (await client.get_dataset("bad"))
            for name in await client.list_datasets():
                await client.unpublish_dataset(name)
        async with Scheduler(journal=path, protocol="inproc") as scheduler:
            assert not scheduler.machine.state.datasets
            assert not scheduler.machine.state.tasks

    asyncio.run(scenario())


def test_the_setting_is_heeded_and_a_folder_is_of_one_scheduler(path: str) -> None:
    async def scenario() -> None:
        with dask.config.set({"shoal.scheduler.journal": path}):
            async with Scheduler(protocol="inproc"):
                assert sorted(os.listdir(path)) == ["journal", "lock"]
                with pytest.raises(JournalInUse, match="in use: process"):
                    await Scheduler(protocol="inproc")
            async with Scheduler(protocol="inproc"):
                pass

    asyncio.run(scenario())


def test_a_scheduler_that_can_keep_no_journal_does_not_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(JournalUnusable, match="can't be opened"):
            await Scheduler(protocol="inproc", journal=str(tmp_path / "file" / "below"))

    asyncio.run(scenario())


def test_a_port_that_is_taken_leaves_the_journal_to_others(path: str) -> None:
    async def scenario() -> None:
        async with Scheduler() as other:
            port = int(other.address.rpartition(":")[2])
            with pytest.raises(OSError, match="in use"):
                await Scheduler(port=port, journal=path)
        async with Scheduler(protocol="inproc", journal=path):
            pass

    asyncio.run(scenario())


class FullDisk(JournalFolder):
    """Has room for what is written as it is opened."""

    is_full = False

    def open(self):
        found = super().open()
        self.is_full = True
        return found

    def _write(self, file, piece):
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super()._write(file, piece)


def test_a_full_disk_is_told_and_nobody_waits_for_it(path: str, monkeypatch, caplog) -> None:
    """The scheduler goes on; once it says so itself, and whoever publishes hears it."""
    monkeypatch.setattr(service, "JournalFolder", FullDisk)

    async def scenario() -> None:
        async with (
            LocalCluster(**keeping(path)) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            future = client.submit(inc, 1)
            await client.publish_dataset(future, name="n")
            await client.publish_dataset(future, name="m")
            fire_and_forget(client.submit(inc, 2))
            assert await client.gather(await client.get_dataset("n")) == 2
            assert "no space left on device" in await client.explain([future])

    with caplog.at_level(logging.WARNING, "shoal"):
        asyncio.run(scenario())
    said = [record for record in caplog.records if "has stopped" in record.getMessage()]
    loud = [record for record in said if record.levelno == logging.CRITICAL]
    assert [path in record.getMessage() for record in loud] == [True]
    told = [record for record in said if record.name == "shoal.client"]
    assert len(told) >= 2


class SlowThenFull(FullDisk):
    """Its first write takes until somebody lets it, and fails."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.pipe = os.pipe()

    def _write(self, file, piece):
        if self.is_full:
            os.read(self.pipe[0], 1)
        super()._write(file, piece)


def test_whoever_waits_as_it_closes_is_told_that_it_is_not_written(
    path: str, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(service, "JournalFolder", SlowThenFull)

    async def scenario() -> None:
        async with Scheduler(protocol="inproc", journal=path) as scheduler:
            async with Client(scheduler.address, asynchronous=True) as client:
                publishing = asyncio.ensure_future(client.publish_dataset(1, name="n"))
                journal = scheduler._journaling
                await until(lambda: journal._is_busy)
                closing = asyncio.ensure_future(scheduler.close())
                await until(lambda: journal._is_over)
                os.write(journal.folder.pipe[1], b"go on")
                await closing
                await asyncio.wait([publishing])
            for descriptor in journal.folder.pipe:
                os.close(descriptor)

    with caplog.at_level(logging.WARNING, "shoal"):
        asyncio.run(scenario())
    said = [record for record in caplog.records if "has stopped" in record.getMessage()]
    assert {record.name for record in said} == {"shoal.scheduler", "shoal.client"}


class StuckDisk(JournalFolder):
    """Never comes back from a write, until it is let go of."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.pipe = os.pipe()

    def append(self, entries):
        os.read(self.pipe[0], 1)


def test_a_disk_that_does_not_come_back_is_given_up(path: str, monkeypatch, caplog) -> None:
    monkeypatch.setattr(service, "JournalFolder", StuckDisk)
    monkeypatch.setattr(Journaling, "write_seconds_max", 0.05)

    async def scenario() -> None:
        async with (
            Scheduler(protocol="inproc", journal=path) as scheduler,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await client.publish_dataset(1, name="n")
            assert "has stopped: nothing has come back" in caplog.text
            folder = scheduler._journaling.folder
            os.write(folder.pipe[1], b"go on")
            await until(lambda: folder._lock < 0)
            for descriptor in folder.pipe:
                os.close(descriptor)

    asyncio.run(scenario())


def test_what_gathers_while_the_disk_writes_is_one_record(path: str, monkeypatch) -> None:
    """And who waits for it is answered in the order in which they asked."""
    appended: list[int] = []

    class Counting(JournalFolder):
        def append(self, entries):
            appended.append(len(entries))
            super().append(entries)

    monkeypatch.setattr(service, "JournalFolder", Counting)

    async def scenario() -> None:
        async with (
            Scheduler(protocol="inproc", journal=path) as scheduler,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await asyncio.gather(*(client.publish_dataset(n, name=str(n)) for n in range(200)))
            assert len(scheduler.machine.state.datasets) == 200

    asyncio.run(scenario())
    assert sum(appended) == 200
    assert len(appended) < 100
    folder = JournalFolder(path)
    journaled, _ = folder.open()
    folder.close()
    assert len(journaled.datasets) == 200
