"""Connections to the scheduler break and come back, and nothing is lost; dead processes don't."""

import asyncio
import collections
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from shoal import Client, Nanny, as_completed
from shoal.comms import publish_token
from shoal.scheduler.shell.service import Scheduler
from shoal.worker.shell.service import Worker
from tests.faults.breaking import Passage

NRUNS: collections.Counter[int] = collections.Counter()
LOCK = threading.Lock()
NTASKS = 300


def double(number: int) -> int:
    """Counts its runs."""
    with LOCK:
        NRUNS[number] += 1
    return 2 * number


def spread(number: int) -> np.ndarray:
    """A result that does not travel with messages."""
    return np.full(20_000, number)


def begin(line: str, mark: str) -> int:
    """The first run tells who it is, and waits for its end."""
    if not os.path.exists(mark):
        Path(mark).touch()
        Path(line).write_text(str(os.getpid()))
        signal.pause()
    return os.getpid()


@contextlib.asynccontextmanager
async def passage_to(**options: float) -> AsyncIterator[tuple[Scheduler, Passage]]:
    """A scheduler, and a way to it that breaks."""
    async with (
        Scheduler(validate=True, **options) as scheduler,
        Passage(scheduler.address) as passage,
    ):
        publication = publish_token(passage.address, scheduler.token)
        try:
            yield scheduler, passage
        finally:
            publication.withdraw()


async def work_through(passage: Passage, scheduler: Scheduler) -> None:
    """Much is computed while all connections are reset, again and again."""
    NRUNS.clear()
    async with Client(passage.address, asynchronous=True, direct_to_workers=False) as client:
        workers = list(scheduler.machine.state.workers.values())
        nreset = 0
        for first in range(0, NTASKS, 30):
            small = client.map(double, range(first, first + 30), pure=False)
            nreset += passage.reset()
            large = client.map(spread, range(first, first + 3), pure=False)
            async for future in as_completed(small):
                if future.key == small[7].key:
                    nreset += passage.reset()
            assert await client.gather(small) == [2 * n for n in range(first, first + 30)]
            arrays = client.gather(large)
            nreset += passage.reset()
            assert [int(array[-1]) for array in await arrays] == list(range(first, first + 3))
        assert nreset > 3 * NTASKS // 30
        assert list(scheduler.machine.state.workers.values()) == workers
        assert set(NRUNS.values()) == {1}
        assert len(NRUNS) == NTASKS


def test_nothing_is_lost_or_run_twice_while_all_connections_are_reset() -> None:
    async def main() -> None:
        async with asyncio.timeout(50), passage_to() as (scheduler, passage):
            options = {"nthreads": 2, "token": scheduler.token, "validate": True}
            async with Worker(passage.address, **options), Worker(passage.address, **options):
                await work_through(passage, scheduler)
                assert passage.nconnections > 10

    asyncio.run(main())


def test_a_worker_that_was_killed_is_not_waited_for(tmp_path: Path) -> None:
    """Though its connection would have a minute to come back."""

    async def main() -> None:
        line, mark = tmp_path / "line", tmp_path / "mark"
        os.mkfifo(line)
        async with (
            asyncio.timeout(40),
            passage_to(resume_seconds=60.0) as (scheduler, passage),
            Nanny(passage.address, nthreads=1, token=scheduler.token),
            Client(passage.address, asynchronous=True) as client,
        ):
            future = client.submit(begin, str(line), str(mark))
            pid = int(await asyncio.to_thread(line.read_text))
            os.kill(pid, signal.SIGKILL)
            assert await future != pid

    asyncio.run(main())


def test_a_worker_that_does_not_come_back_in_time_is_lost() -> None:
    """And it ends, as it has no scheduler any more."""

    async def main() -> None:
        async with (
            asyncio.timeout(40),
            passage_to(resume_seconds=0.2) as (scheduler, passage),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            lonely = await Worker(passage.address, nthreads=1, token=scheduler.token)
            future = client.submit(double, 1)
            assert await future == 2
            passage.close()
            await lonely.finished()
            async with Worker(scheduler.address, nthreads=1, token=scheduler.token):
                assert await client.submit(double, future) == 4
            await lonely.close()

    asyncio.run(main())


def test_another_scheduler_at_the_address_knows_no_stream_and_takes_the_worker_as_a_new_one() -> (
    None
):
    """Long before the worker would have given up to come back to the first."""

    async def main() -> None:
        async with (
            asyncio.timeout(40),
            passage_to(resume_seconds=600.0) as (first, passage),
            Scheduler(token=first.token, validate=True) as second,
            Worker(
                passage.address, nthreads=1, token=first.token, reconnect_seconds=600.0
            ) as worker,
            Client(second.address, asynchronous=True) as client,
        ):
            passage.lead_to(second.address)
            passage.reset()
            await client.wait_for_workers(1)
            assert await client.submit(double, 2) == 4
            assert list(second.machine.state.workers) == [worker.address]

    asyncio.run(main())
