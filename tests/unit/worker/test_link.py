"""A worker that looks for its scheduler, and what may end its first connections."""

import asyncio
from typing import Any

import pytest

from shoal.comms import Connection
from tests.unit.worker.fake_scheduler import FakeScheduler, worker_of


class Hasty(FakeScheduler):
    """Ends each connection as soon as it is asked something, until it has done so `nends` times."""

    def __init__(self, nends: float) -> None:
        super().__init__()
        self.nends = nends
        self.nended = 0

    def _on_connection(self, connection: Connection) -> None:
        if self.nended >= self.nends:
            super()._on_connection(connection)
            return

        def end(messages: list[Any], buffers: list[Any]) -> None:
            self.nended += 1
            connection.abort()

        connection.start(end, lambda reason: None)


def test_a_worker_that_waits_for_its_scheduler_tries_again_if_it_is_cut_off() -> None:
    async def main() -> None:
        scheduler = await Hasty(2).start("tcp://127.0.0.1:0")
        async with worker_of(scheduler, death_timeout=10):
            assert len(scheduler.registrations) == 1
        assert scheduler.nended == 2
        await scheduler.close()

    asyncio.run(main())


def test_a_worker_waits_no_longer_than_its_deadline_for_one_that_cuts_it_off() -> None:
    async def main() -> None:
        scheduler = await Hasty(float("inf")).start("tcp://127.0.0.1:0")
        with pytest.raises(ConnectionResetError, match="ended the connection before it had answer"):
            await worker_of(scheduler, death_timeout=0.1)
        assert 2 <= scheduler.nended < 10
        await scheduler.close()

    asyncio.run(main())


def test_a_worker_that_does_not_wait_is_told_at_once() -> None:
    async def main() -> None:
        scheduler = await Hasty(float("inf")).start("tcp://127.0.0.1:0")
        with pytest.raises(ConnectionResetError):
            await worker_of(scheduler)
        assert scheduler.nended == 1
        await scheduler.close()

    asyncio.run(main())
