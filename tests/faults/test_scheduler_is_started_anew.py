"""A scheduler is killed and another takes its address: clients go on with what they have."""

import asyncio
import contextlib
import logging
import signal
from pathlib import Path

import dask
import pytest

from shoal import Client
from shoal.comms import OutcomeUnknown
from shoal.errors import FutureCancelledError
from tests.cluster.commands import FACES, Command, environment

SECONDS = 60


@pytest.fixture
def start(tmp_path: Path):
    """Start a command in a home of its own; what still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def started(*arguments: str) -> Command:
            command = Command(FACES["shoal"], arguments, tmp_path)
            stack.callback(command.kill)
            return command

        yield started


def make(n):
    """A result that travels by itself."""
    return bytes(n)


def test_futures_outlive_the_scheduler_and_calls_that_await_an_answer_do_not(
    start, tmp_path, caplog
):
    caplog.set_level(logging.CRITICAL, "shoal")
    first = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = first.line()
    port = address.rpartition(":")[2]
    start("worker", address, "--nthreads", "1").line()
    with environment(tmp_path), Client(address) as client:
        small, large = client.submit(sum, [1, 2]), client.submit(make, 100_000)
        assert small.result(timeout=SECONDS) == 3
        assert len(large.result(timeout=SECONDS)) == 100_000
        asked = client.sync(_asking, client)

        first.signal(signal.SIGKILL)
        assert isinstance(client.sync(_outcome, asked), OutcomeUnknown)
        assert client.status == "connecting"
        assert (small.status, large.status) == ("finished", "finished")
        assert small.result() == 3
        later = client.submit(len, large)
        assert later.status == "pending"
        with pytest.raises(TimeoutError):
            later.result(timeout=0.05)

        start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard").line()
        start("worker", address, "--nthreads", "1").line()
        assert later.result(timeout=SECONDS) == 100_000
        assert len(large.result(timeout=SECONDS)) == 100_000
        assert client.gather([small, later]) == [3, 100_000]
        assert client.status == "running"


async def _asking(client):
    """A question that is not answered before somebody comes: five hundred workers."""
    return asyncio.ensure_future(client._async.wait_for_workers(500))


async def _outcome(asked):
    (outcome,) = await asyncio.gather(asked, return_exceptions=True)
    return outcome


def test_a_scheduler_that_stays_away_is_given_up_once(start, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "shoal")
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = scheduler.line()
    with (
        environment(tmp_path),
        dask.config.set({"shoal.client.reconnect-seconds": 0.5}),
        Client(address) as client,
    ):
        future = client.submit(sum, [1, 2])
        scheduler.signal(signal.SIGKILL)
        with pytest.raises(FutureCancelledError, match=r"within 0\.5 s"):
            future.result(timeout=SECONDS)
    lost, given_up = [record.getMessage() for record in caplog.records]
    assert "looks for it for 0.5 s" in lost
    assert "none has let this client in again" in given_up
