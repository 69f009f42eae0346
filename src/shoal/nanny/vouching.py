"""A nanny vouches for a worker that can't say itself that it lives.

A task that never lets go of its interpreter keeps the worker's loop from giving signs of life, and
nothing is wrong.  Whoever sees the process from outside can tell that from one that was stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

import psutil

from shoal.comms import connect
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker
from shoal.protocol.handshake import WORKER, Keyring
from shoal.protocol.messages import VouchForWorker

LATE_RATIO: Final = 1.5
"""Of the time between two signs of life: after that one is late, and the scheduler may wonder."""

REST_SECONDS: Final = 4.0
"""A worker that rests says nothing until it is given something: it is looked at so often,"""
BUSY_RATIO: Final = 0.1
"""and is not at rest if its process used more of a processor than this: an actor's method, a value
that is pickled for a peer or a thread of the user's may keep the interpreter to itself.  At rest it
uses a hundredth; where many compete for the processor, who is busy may have a tenth."""

SAY_SECONDS_MAX: Final = 5.0
"""What it may take to reach the scheduler, which is busy or far away then."""

_STILL: Final = frozenset(
    (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
)
"""States of a process that executes nothing, whatever its tasks are."""

_decoder: Final = Decoder(SchedulerToWorker)
_logger = logging.getLogger("shoal.nanny")


class Process(Protocol):
    """What is looked at."""

    @property
    def address(self) -> str:
        """Of the worker in it."""

    @property
    def pid(self) -> int | None:
        """As the system knows it."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""


class Vouching:
    """Belongs to the loop of a nanny; says nothing as long as signs of life come in time, and of a
    worker that rests as long as its process does."""

    def __init__(
        self,
        find: Callable[[], tuple[str, Keyring | None]],
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        """`find`: where the scheduler is, and what proves a worker to it.

        `rest_seconds`: how long not to look at a worker that rests.
        """
        self._find = find
        self._rest_seconds = rest_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._saying: asyncio.Task[None] | None = None

    def beat(self, process: Process, interval_seconds: float) -> None:
        """The process gave a sign of life; the next one is due in so long; 0: none is, it rests."""
        self.end()
        if not interval_seconds:
            if process.pid is not None:
                self._look_later(process, used_seconds(process.pid))
            return
        loop = asyncio.get_running_loop()
        late_seconds = LATE_RATIO * interval_seconds
        self._timer = loop.call_later(late_seconds, self._vouch, process, late_seconds)

    def end(self) -> None:
        """Nobody need be vouched for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saying is not None:
            self._saying.cancel()
            self._saying = None

    def _vouch(self, process: Process, again_seconds: float) -> None:
        """A sign of life is late: say that the process lives if it does, again and again."""
        self._timer = None
        if not process.is_alive():
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(again_seconds, self._vouch, process, again_seconds)
        if process.pid is not None and not self._is_saying and is_executing(process.pid):
            self._saying = loop.create_task(self._say(process.address, process.pid))

    def _look_later(self, process: Process, used: float) -> None:
        """In a while, see whether a worker that rests has used its processor meanwhile."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._rest_seconds, self._look, process, used)

    def _look(self, process: Process, used_before: float) -> None:
        self._timer = None
        if not process.is_alive() or process.pid is None:
            return
        used = used_seconds(process.pid)
        if used - used_before > BUSY_RATIO * self._rest_seconds and not self._is_saying:
            loop = asyncio.get_running_loop()
            self._saying = loop.create_task(self._say(process.address, process.pid))
        self._look_later(process, used)

    @property
    def _is_saying(self) -> bool:
        """Whether the scheduler is still being told, as it is hard to reach."""
        return self._saying is not None and not self._saying.done()

    async def _say(self, address: str, pid: int) -> None:
        scheduler, keyring = self._find()
        if not scheduler or keyring is None:
            return
        try:
            connection = await connect(
                scheduler, keyring, WORKER, _decoder, timeout_seconds=SAY_SECONDS_MAX
            )
        except OSError as error:
            _logger.info("Nobody could be told that worker %s lives: %s", address, error)
            return
        connection.send([VouchForWorker(address, pid)])
        connection.close()
        await connection.wait_closed()


def used_seconds(pid: int) -> float:
    """Of a processor, by a process in all its life; 0 if it is not there.  Cost: 50 us."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def is_executing(pid: int) -> bool:
    """Whether the process is there, and was not stopped."""
    try:
        return psutil.Process(pid).status() not in _STILL
    except psutil.Error:
        return False
