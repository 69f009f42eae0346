"""What the scheduler's log tells of workers that come and go."""

import asyncio
import logging

from shoal import Client, Scheduler, Worker


class Heard(logging.Handler):
    """Keeps what is logged, except of clients; `warned` is set at the first warning."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.warned = asyncio.Event()

    def emit(self, record):
        if not record.getMessage().startswith("Client-"):
            self.lines.append((record.levelname, record.getMessage()))
        if record.levelno >= logging.WARNING:
            self.warned.set()


async def play(scenario):
    """Play it with a scheduler, a client, and the scheduler's log from INFO on."""
    heard, log = Heard(), logging.getLogger("shoal.scheduler")
    before = log.level, log.propagate
    log.addHandler(heard)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        async with Scheduler(protocol="inproc") as scheduler:
            scheduler.membership.stranded_after_seconds = 0.0
            async with Client(scheduler.address, asynchronous=True) as client:
                await scenario(scheduler, client, heard)
    finally:
        log.removeHandler(heard)
        log.setLevel(before[0])
        log.propagate = before[1]


def lose(scheduler):
    """Break the connection to the only worker, as its death does."""
    (worker,) = scheduler.machine.state.workers.values()
    scheduler.peer_of(worker).connection.abort()


def test_the_last_death_while_tasks_wait_is_a_warning_that_counts_them():
    async def scenario(scheduler, client, heard):
        worker = await Worker(scheduler.address, nthreads=1, name="bee")
        futures = client.map(abs, [1, 2], workers=["nobody"], pure=False)
        other = client.submit(sum, [1, 2])
        assert await other == 3
        lose(scheduler)
        await heard.warned.wait()
        await worker.finished()
        levels, lines = zip(*heard.lines, strict=True)
        assert lines[1] == f"Worker bee ({worker.address}) has joined"
        assert lines[2].startswith(f"Worker bee ({worker.address}) was lost: ")
        assert lines[3] == "2 tasks wait: no worker is left"
        assert levels == ("INFO", "INFO", "INFO", "WARNING")
        del futures

    asyncio.run(play(scenario))


def test_a_worker_that_leaves_in_good_order_is_no_warning_whatever_waits():
    async def scenario(scheduler, client, heard):
        future = client.submit(abs, 1, workers=["nobody"])
        async with Worker(scheduler.address, nthreads=1, name="bee") as worker:
            address = worker.address
        assert not heard.warned.is_set()
        assert f"Worker bee ({address}) has left" in heard.lines[-1][1]
        assert future.status == "pending"

    asyncio.run(play(scenario))


def test_the_last_death_while_nothing_waits_is_no_warning():
    async def scenario(scheduler, client, heard):
        worker = await Worker(scheduler.address, nthreads=1)
        assert await client.submit(sum, [1, 2]) == 3
        lose(scheduler)
        await worker.finished()
        assert not heard.warned.is_set()

    asyncio.run(play(scenario))


def test_workers_that_are_restarted_or_retired_are_not_lost_and_their_connections_end():
    async def scenario(scheduler, client, heard):
        async with Worker(scheduler.address, nthreads=1, name="bee") as bee:
            peer = scheduler.peer_of(*scheduler.machine.state.workers.values())
            await client.restart(wait_for_workers=False)
            assert peer.connection.closed
            await bee.finished()
        async with Worker(scheduler.address, nthreads=1, name="ant") as ant:
            peer = scheduler.peer_of(*scheduler.machine.state.workers.values())
            await client.retire_workers("ant")
            assert peer.connection.closed
            await ant.finished()
        said = [line for _, line in heard.lines if line.startswith("Worker ")]
        assert said == [
            f"Worker bee ({bee.address}) has joined",
            f"Worker bee ({bee.address}) is sent away: the cluster is restarted",
            f"Worker ant ({ant.address}) has joined",
            f"Worker ant ({ant.address}) is sent away: it was retired",
        ]

    asyncio.run(play(scenario))
