"""A worker that is retired and stays connected knows that it is given nothing more."""

from __future__ import annotations

import asyncio

from shoal import Client, Scheduler, Worker
from shoal.observe.status import Status
from tests.until import until


def test_who_is_retired_and_not_removed_says_so_and_closes_as_others_do() -> None:
    async def scenario() -> None:
        async with (
            Scheduler(protocol="inproc", validate=True) as scheduler,
            Worker(scheduler.address, name="a", nthreads=1) as a,
            Worker(scheduler.address, name="b", nthreads=1) as b,
            Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
        ):
            kept = client.submit(int, 7, workers=["a"])
            await kept
            retired = await client.retire_workers([a.address], remove=False)
            assert list(retired) == [a.address]
            await until(lambda: a.status is Status.closing_gracefully)
            assert b.status is Status.running
            assert await client.submit(int, 8) == 8
            assert await kept == 7
            await a.close()
            assert a.status is Status.closed

    asyncio.run(scenario())
