"""Scenarios on a loop of their own, with what several files of tests have in common."""

import asyncio
import contextlib
import logging

from shoal import Scheduler, Worker


def play_with_worker(scenario):
    """Play it with a scheduler and a worker of this process."""

    async def run():
        async with asyncio.timeout(20):
            async with Scheduler() as scheduler, Worker(scheduler.address, nthreads=1) as worker:
                await scenario(scheduler, worker)

    asyncio.run(run())


@contextlib.contextmanager
def heard():
    """What is told comes to whoever reads all of the log, and not to stderr."""
    logger = logging.getLogger("shoal")
    before, logger.propagate = logger.propagate, True
    try:
        yield
    finally:
        logger.propagate = before
