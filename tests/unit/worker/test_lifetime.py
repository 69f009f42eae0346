"""A worker whose time is over says so, and waits as long as it takes to be relieved."""

import asyncio
from typing import Any

from shoal.observe.reasons import LIFETIME
from shoal.protocol.membership import TimeIsOver
from shoal.storage.results import Results
from shoal.worker.shell.lifetime import PATIENCE_SECONDS, Lifetime, patience_with


class Link:
    """Where the worker says something."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.has_said = asyncio.Event()

    def send(self, messages: list[Any]) -> None:
        self.said += messages
        self.has_said.set()


def test_it_says_so_once_its_time_is_over_and_again_on_each_new_connection() -> None:
    async def main() -> None:
        link, reasons = Link(), list[str]()
        life = Lifetime(0.01, link, Results(), reasons.append)  # type: ignore[arg-type]
        life.tell()
        assert link.said == []
        await asyncio.wait_for(link.has_said.wait(), 10)
        life.tell()
        assert link.said == [TimeIsOver(LIFETIME, PATIENCE_SECONDS)] * 2
        life.stop()
        assert reasons == []

    asyncio.run(main())


def test_who_has_much_to_hand_over_waits_longer_than_the_scheduler_does() -> None:
    """A hundred gigabytes take a quarter of an hour in a network of 1 Gbit/s."""
    assert PATIENCE_SECONDS < patience_with(0) < 60
    assert patience_with(100_000_000_000) > 15 * 60
