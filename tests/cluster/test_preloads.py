"""Preloads of schedulers, workers, nannies and clients, by argument, setting and command line."""

import asyncio
import contextlib
import signal

import dask
import pytest

from shoal import Client, LocalCluster, Nanny, Scheduler, Worker
from shoal.errors import ShoalError
from tests.cluster.commands import FACES, Command, environment
from tests.cluster.conftest import SMALL

TEXT = """
def dask_setup(service):
    service.mark = "set up"

def dask_teardown(service):
    service.mark = "torn down"
"""

WITH_ARGUMENTS = """
import click

@click.command()
@click.argument("word")
@click.option("--loud", is_flag=True)
def dask_setup(service, word, loud):
    service.mark = word.upper() if loud else word
"""


def mark_of(dask_worker):
    return dask_worker.mark


def test_a_scheduler_and_its_workers_have_them():
    async def scenario():
        async with Scheduler(protocol="inproc", preload=TEXT) as scheduler:
            assert (scheduler.mark, len(scheduler.preloads)) == ("set up", 1)
            async with Worker(scheduler.address, preload=[TEXT]) as worker:
                assert worker.mark == "set up"
            assert worker.mark == "torn down"
        assert scheduler.mark == "torn down"

    asyncio.run(scenario())


def test_a_preload_may_say_where_the_scheduler_is():
    async def scenario():
        async with Scheduler(protocol="inproc") as scheduler:
            text = f"import dask\ndask.config.set(scheduler_address={scheduler.address!r})"
            with dask.config.set({"scheduler-address": None}):
                async with Worker(preload=text) as worker:
                    assert worker.scheduler_address == scheduler.address
            nowhere = dask.config.set({"scheduler-address": None})
            with nowhere, pytest.raises(ValueError, match="Which scheduler"):
                Worker()

    asyncio.run(scenario())


def test_a_nanny_has_its_own_and_its_worker_has_others():
    async def scenario():
        async with Scheduler() as scheduler:
            async with (
                Nanny(scheduler.address, token=scheduler.token, preload=TEXT, nthreads=1) as plain,
                Client(scheduler.address, asynchronous=True) as client,
            ):
                assert not hasattr(plain, "mark")
                assert await client.run(mark_of) == {plain.worker_address: "set up"}
            async with Nanny(scheduler.address, preload_nanny=[TEXT], nthreads=1) as nanny:
                assert nanny.mark == "set up"
            assert nanny.mark == "torn down"

    asyncio.run(scenario())


def test_a_cluster_hands_them_on(tmp_path):
    beside = f"with open({str(tmp_path / 'nanny')!r}, 'a') as opened: opened.write('x')\n"
    with (
        LocalCluster(**SMALL, preload=TEXT, preload_nanny=[beside]) as cluster,
        Client(cluster) as client,
    ):
        assert set(client.run(mark_of).values()) == {"set up"}
        assert (tmp_path / "nanny").read_text() == "xx"
    with LocalCluster(**SMALL, processes=False, preload=TEXT) as cluster, Client(cluster) as client:
        assert set(client.run(mark_of).values()) == {"set up"}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_settings_have_them_for_everybody(asynchronous):
    def blocking():
        with dask.config.set(named), Client(processes=False, **SMALL) as client:
            assert client.mark == "set up"
            assert set(client.run(mark_of).values()) == {"set up"}
            assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.mark) == "set up"
        assert client.mark == "torn down"

    async def scenario():
        with dask.config.set(named):
            async with Client(processes=False, asynchronous=True, **SMALL) as client:
                assert client.mark == "set up"
            assert client.mark == "torn down"

    roles = ("scheduler", "worker", "client")
    named = {f"distributed.{role}.preload": [TEXT] for role in roles}
    if asynchronous:
        asyncio.run(scenario())
    else:
        blocking()


@pytest.fixture
def start(tmp_path):
    with contextlib.ExitStack() as stack:

        def started(*arguments):
            command = Command(FACES["shoal"], arguments, tmp_path)
            stack.callback(command.kill)
            return command

        yield started


def test_the_command_line_has_them_with_what_it_does_not_know(start, tmp_path):
    (tmp_path / "marking.py").write_text(WITH_ARGUMENTS)
    scheduler = start(
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--preload",
        "marking.py",
        "hello",
        "--loud",
    )
    address = scheduler.line()
    worker = start("worker", address, "--nthreads", "1", "--preload", "marking.py", "quiet")
    worker.line()
    with environment(tmp_path), Client(address) as client:
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.mark) == "HELLO"
        assert set(client.run(mark_of).values()) == {"quiet"}
    for command in (worker, scheduler):
        command.signal(signal.SIGTERM)
        assert command.end() == (0, "")


def beside_a_worker(folder):
    """A preload that leaves a file as it is set up, and removes it as it is torn down."""
    return (
        "from pathlib import Path\n"
        f"folder = Path({str(folder)!r})\n"
        "def dask_setup(nanny):\n    (folder / str(nanny.name)).touch()\n"
        "def dask_teardown(nanny):\n"
        "    (folder / str(nanny.name)).unlink()\n"
        "    (folder / 'torn down').touch()\n"
    )


def test_preloads_of_a_nanny_are_torn_down_though_its_worker_could_not_start(tmp_path):
    async def scenario():
        async with Scheduler() as scheduler:
            with pytest.raises(ShoalError, match="ZeroDivisionError"):
                await Nanny(
                    scheduler.address,
                    nthreads=1,
                    preload="1 / 0",
                    preload_nanny=beside_a_worker(tmp_path),
                )

    asyncio.run(scenario())
    assert [path.name for path in tmp_path.iterdir()] == ["torn down"]


def test_a_cluster_whose_workers_can_not_start_tears_down_what_is_beside_them(tmp_path):
    options = {"preload": "1 / 0", "preload_nanny": beside_a_worker(tmp_path)}
    settings = dask.config.set({"distributed.nanny.preload": ["raise LookupError('no')"]})
    with settings, pytest.raises(ShoalError, match="ZeroDivisionError"):
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["torn down"]
