"""Whose connection broke is waited for, unless it is a worker whose process has died."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shoal.ids import Epoch
from shoal.protocol.messages import RegisterClient, RegisterWorker
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.shell.breaks import Breaks
from tests.unit.comms.ends import Note
from tests.unit.comms.lines import Conversation, Owner


class Exchange:
    """Knows whether somebody listens; and tells it when the test has let it look."""

    def __init__(self, *is_refused: bool) -> None:
        """`is_refused`: at each look, the last one also later."""
        self.asked: list[str] = []
        self.may_look = asyncio.Event()
        self.has_looked = asyncio.Event()
        self._answers = list(is_refused)

    async def is_refused(self, address: str, timeout_seconds: float) -> bool:
        self.asked.append(address)
        await self.may_look.wait()
        self.has_looked.set()
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Broken:
    """A worker or client with a stream that is broken, as its `Breaks` hears of it."""

    def __init__(self, *is_refused: bool, is_worker: bool = True) -> None:
        machine = SchedulerMachine(SchedulerSettings(), Epoch(1), {})
        self.talk = Conversation()
        self.exchange = Exchange(*is_refused)
        self.breaks = Breaks({})
        self.breaks.open(cast(Any, self.exchange))
        self.entity: Any
        if is_worker:
            self.entity = machine.worker_joined(RegisterWorker("tcp://w:1", "w", 1, 0), 0.0)
        else:
            self.entity = machine.client_joined(RegisterClient("c"), 0.0)
        self.peer: Any = SimpleNamespace(entity=self.entity)

    @property
    def owner(self) -> Owner:
        return self.talk.accepting

    async def begin(self) -> None:
        """Have it broken, and `Breaks` told."""
        talk = self.talk
        talk.begin()
        assert talk.dialling.stream is not None
        talk.dialling.stream.send([Note(0)])
        await talk.accepting.until(lambda owner: bool(owner.heard))
        stream: Any = talk.accepting.stream
        stream.send([Note(0)])
        await talk.dialling.until(lambda owner: bool(owner.heard))
        stream.on_broken = lambda: self.breaks.broken(self.peer, stream)
        talk.is_reachable = False
        talk.lines[0].cut()
        await talk.dialling.until(lambda owner: owner.nbroken == 1)
        while not stream.is_broken:
            await asyncio.sleep(0)


def test_a_worker_that_refuses_is_lost_at_once_and_for_the_reason_of_the_break() -> None:
    async def main() -> None:
        broken = Broken(True)
        await broken.begin()
        broken.exchange.may_look.set()
        await broken.owner.until(lambda owner: bool(owner.reasons))
        assert broken.exchange.asked == ["tcp://w:1"]
        assert "the line was cut" in str(broken.owner.reasons[0])

    asyncio.run(main())


def test_a_worker_that_lets_us_in_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "shoal.scheduler")

    async def main() -> None:
        broken = Broken(False)
        await broken.begin()
        broken.exchange.may_look.set()
        await broken.exchange.has_looked.wait()
        assert "worker w (tcp://w:1) broke; it has 5 s to come back" in caplog.text
        broken.talk.is_reachable = True
        await broken.owner.until(lambda owner: owner.nresumed == 1)
        assert not broken.owner.reasons
        broken.breaks.resumed(broken.peer)
        assert "worker w (tcp://w:1) is connected again" in caplog.text

    asyncio.run(main())


def test_a_worker_that_dies_later_is_not_waited_for_any_longer() -> None:
    async def main() -> None:
        broken = Broken(False, False, True)
        await broken.begin()
        broken.exchange.may_look.set()
        await broken.owner.until(lambda owner: bool(owner.reasons))
        assert len(broken.exchange.asked) == 3
        assert "did not come back" not in str(broken.owner.reasons[0])

    asyncio.run(main())


def test_what_is_found_out_about_a_break_says_nothing_of_the_time_after_it() -> None:
    """A port that refused a moment ago, by a worker that is back."""

    async def main() -> None:
        broken = Broken(True)
        await broken.begin()
        while not broken.exchange.asked:
            await asyncio.sleep(0)
        broken.talk.is_reachable = True
        await broken.owner.until(lambda owner: owner.nresumed == 1)
        broken.exchange.may_look.set()
        await broken.exchange.has_looked.wait()
        broken.owner.stream.send([Note(7)])  # type: ignore[union-attr]
        await broken.talk.dialling.until(lambda owner: Note(7) in owner.messages)
        assert not broken.owner.reasons

    asyncio.run(main())


def test_nobody_looks_for_a_client() -> None:
    """It listens nowhere."""

    async def main() -> None:
        broken = Broken(True, is_worker=False)
        await broken.begin()
        broken.talk.is_reachable = True
        await broken.owner.until(lambda owner: owner.nresumed == 1)
        assert not broken.exchange.asked

    asyncio.run(main())


def test_a_service_that_closes_looks_for_nobody() -> None:
    async def main() -> None:
        broken = Broken(True)
        await broken.begin()
        while not broken.exchange.asked:
            await asyncio.sleep(0)
        broken.breaks.close()
        assert broken.owner.stream is not None
        broken.owner.stream.close()
        await broken.owner.until(lambda owner: owner.reasons == [None])
        assert not broken.exchange.has_looked.is_set()

    asyncio.run(main())
