"""A cluster whose traffic a third party's backend carries, and nothing else does."""

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest

from shoal import Client, Scheduler, Worker
from shoal.comms import connect
from shoal.comms.backends import BACKENDS
from shoal.comms.errors import AuthenticationError
from shoal.protocol.codec import Decoder
from shoal.protocol.freestanding import Parcel
from shoal.protocol.handshake import Keyring
from tests.unit.comms import pipes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def pipe(monkeypatch):
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, pipes.PipeBackend())


async def use(client, first, second):
    """Small and large things, to all sides, and an error."""
    assert await client.gather(client.map(abs, range(-50, 0))) == list(range(50, 0, -1))
    array = np.arange(1_000_000)
    (there,) = await client.scatter([array], workers=[first])
    moved = client.submit(np.sum, there, workers=[second])
    assert await moved == array.sum()
    assert ((await there) == array).all()
    with pytest.raises(ZeroDivisionError):
        await client.submit(lambda: 1 / 0)


def test_tasks_data_and_errors_go_by_it_and_nobody_is_let_in_without_the_token():
    async def main():
        async with (
            Scheduler(protocol="pipe", host="127.0.0.1", dashboard_address=None) as scheduler,
            Worker(scheduler.address, nthreads=1) as first,
            Worker(scheduler.address, nthreads=1) as second,
        ):
            assert {first.address[:7], second.address[:7], scheduler.address[:7]} == {"pipe://"}
            async with Client(scheduler.address, asynchronous=True) as client:
                await use(client, first.address, second.address)
            stranger = Keyring.from_token(b"another")
            with pytest.raises(AuthenticationError):
                await connect(
                    scheduler.address, stranger, "client", Decoder(Parcel), timeout_seconds=5
                )

    asyncio.run(main())


def test_a_worker_in_a_process_of_its_own_finds_the_backend_by_its_entry_point(tmp_path):
    (tmp_path / "dask_pipe.py").write_text("from tests.unit.comms.pipes import PipeBackend\n")
    told = tmp_path / "dask_pipe-1.0.dist-info"
    told.mkdir()
    (told / "entry_points.txt").write_text(
        "[distributed.comm.backends]\npipe = dask_pipe:PipeBackend\n"
    )
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import asyncio; from shoal import Worker\n"
        "async def main():\n"
        "    async with Worker(sys.argv[1], nthreads=1) as worker: await worker.finished()\n"
        "asyncio.run(main())\n"
    )

    async def main():
        async with Scheduler(
            protocol="pipe", host="127.0.0.1", dashboard_address=None
        ) as scheduler:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, scheduler.address, str(tmp_path), str(ROOT)
            )
            try:
                async with Client(scheduler.address, asynchronous=True) as client:
                    await client.wait_for_workers(1, timeout=20)
                    assert await client.submit(sum, [1, 2]) == 3
                    (address,) = scheduler.workers
                    assert address.startswith("pipe://")
                await scheduler.close()
                assert await asyncio.wait_for(worker.wait(), 20) == 0
            finally:
                if worker.returncode is None:
                    worker.kill()
                    await worker.wait()

    asyncio.run(main())
