"""Results that are asked for from another machine come compressed, if that is set."""

import asyncio
import sys
from typing import Any

import dask
import numpy as np
import pytest

from shoal import Client, Scheduler, Worker
from shoal.comms import CommClosedError, Connection
from shoal.comms.compressing import is_on_another_machine
from shoal.comms.exchange import ReplicaExchange
from shoal.config import SettingError
from shoal.observe.status import Status
from shoal.protocol import compression
from shoal.protocol.framing import ProtocolError
from shoal.protocol.handshake import Keyring
from shoal.protocol.payload import load

NBYTES = 8_000_000


def regular() -> Any:
    return np.arange(NBYTES // 8)


async def fetched(setting: str | None, *, is_far: bool) -> tuple[list[str], Any]:
    """How the buffers of a task's result were compressed, and the result."""
    async with (
        Scheduler() as scheduler,
        Worker(scheduler.address, nthreads=1, token=scheduler.token) as worker,
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        future = client.submit(regular)
        await future
        state = scheduler.machine.state
        [task] = state.tasks.values()
        with dask.config.set({"distributed.comm.compression": setting}):
            keyring = Keyring.from_token(scheduler.token)
            peers = ReplicaExchange(keyring, is_far=lambda connection: is_far)
        try:
            replicas, buffers = await peers.get(worker.address, [task.id], state.epoch)
        finally:
            await peers.close()
        return [name for name, _ in replicas.marks], load(replicas.replicas[0].header, buffers)


@pytest.mark.parametrize(
    ("setting", "is_far", "ways"),
    [("zlib", True, ["zlib"]), ("zlib", False, []), (None, True, [])],
)
def test_a_result_comes_compressed_if_that_is_set_and_a_network_is_between(
    setting: str | None, is_far: bool, ways: list[str]
) -> None:
    found, value = asyncio.run(fetched(setting, is_far=is_far))
    assert found == ways
    assert np.array_equal(value, regular())
    assert value.flags.writeable


class Elsewhere:
    """A connection, as far as its ends go."""

    def __init__(self, scheme: str, peer_address: str) -> None:
        self.scheme, self.peer_address = scheme, peer_address


@pytest.mark.parametrize(
    ("scheme", "address", "is_far"),
    [
        ("tcp", "tcp://192.0.2.7:8786", True),
        ("tcp", "tcp://127.0.0.1:8786", False),
        ("unix", "tcp://192.0.2.7:8786", False),
        ("inproc", "inproc://x", False),
    ],
)
def test_a_network_is_between_unless_both_ends_are_on_this_machine(
    scheme: str, address: str, is_far: bool
) -> None:
    connection: Connection = Elsewhere(scheme, address)  # type: ignore[assignment]
    assert is_on_another_machine(connection) is is_far


def test_a_library_that_is_not_installed_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    keyring = Keyring.from_token(b"token")
    with (
        dask.config.set({"distributed.comm.compression": "zstd"}),
        pytest.raises(SettingError, match="pip install lz4 zstandard") as refusal,
    ):
        ReplicaExchange(keyring)
    assert "distributed.comm.compression" in str(refusal.value)


def test_a_scheduler_that_can_not_start_for_that_has_failed_and_can_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        scheduler = Scheduler(protocol="inproc")
        with pytest.raises(SettingError):
            await scheduler
        assert scheduler.status is Status.failed
        await scheduler.close()

    monkeypatch.setitem(sys.modules, "zstandard", None)
    with dask.config.set({"distributed.comm.compression": "zstd"}):
        asyncio.run(main())


def test_what_makes_no_sense_loses_the_connection_and_not_the_one_who_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked goes on as with any other holder that is out of reach."""

    def refuse(buffers: Any, marks: Any) -> Any:
        raise ProtocolError("What was compressed by zlib can't be read")

    monkeypatch.setattr(compression, "restore", refuse)
    with pytest.raises(CommClosedError, match="What was compressed by zlib can't be read"):
        asyncio.run(fetched("zlib", is_far=True))
