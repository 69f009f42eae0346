"""Workers by the thousand: each is a connection that registers and says that it lives.

All are in this process, and run nothing; the scheduler is another process, at whose processor time
one may look.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final

import msgspec
import psutil

from shoal.comms import Connection, connect
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToWorker
from shoal.protocol.handshake import WORKER, Keyring
from shoal.protocol.messages import AskHearing, RegisterWorker, WorkerHeartbeat, WorkerWelcome

CONNECT_SECONDS_MAX: Final = 60.0
AT_ONCE: Final = 100
"""That are about to connect at one time."""

_decoder: Final = Decoder(SchedulerToWorker)


@dataclass
class Found:
    """What came of it."""

    nregistered: int = 0
    nlost: int = 0
    register_seconds: float = 0.0
    processor_share: float = 0.0
    """Of one processor, by the scheduler, once all were there."""


@dataclass
class Crowd:
    """The workers, on the loop that they are made on."""

    address: str
    keyring: Keyring
    found: Found = field(default_factory=Found)
    _connections: list[Connection] = field(default_factory=list)
    _beats: dict[int, asyncio.TimerHandle] = field(default_factory=dict)
    _heard: dict[int, int] = field(default_factory=dict)
    _is_over: bool = False

    async def come(self, nworkers: int) -> None:
        """All register, some at once."""
        began_at = monotonic()
        numbers = iter(range(nworkers))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._come_one_by_one(numbers))
        self.found.register_seconds = monotonic() - began_at

    async def _come_one_by_one(self, numbers: Any) -> None:
        for number in numbers:
            connection = await connect(
                self.address,
                self.keyring,
                WORKER,
                _decoder,
                timeout_seconds=CONNECT_SECONDS_MAX,
                keep_trying=True,
            )
            self._connections.append(connection)
            welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            connection.start(
                partial(self._hear, number, connection, welcomed), partial(self._ended, number)
            )
            address = f"tcp://10.{number >> 16}.{number >> 8 & 255}.{number & 255}:4000"
            connection.send([RegisterWorker(address, f"w{number}", 1, 0, pid=number + 2)])
            await welcomed

    def _hear(
        self,
        number: int,
        connection: Connection,
        welcomed: asyncio.Future[None],
        messages: Sequence[msgspec.Struct],
        _buffers: Sequence[Any],
    ) -> None:
        for message in messages:
            if isinstance(message, WorkerWelcome) and not welcomed.done():
                self.found.nregistered += 1
                welcomed.set_result(None)
                self._beat(number, connection, message.heartbeat_seconds)
            elif isinstance(message, AskHearing):
                self._heard[number] = message.number

    def _beat(self, number: int, connection: Connection, seconds: float) -> None:
        if self._is_over or connection.closed:
            return
        nbytes, heard = connection.received_nbytes, self._heard.get(number, 0)
        connection.send([WorkerHeartbeat(1, received_bytes=nbytes, heard=heard)])
        loop = asyncio.get_running_loop()
        self._beats[number] = loop.call_later(seconds, self._beat, number, connection, seconds)

    def _ended(self, number: int, _reason: Exception | None) -> None:
        self.found.nlost += not self._is_over

    async def look_at(self, pid: int, seconds: float) -> None:
        """What the scheduler spends on them in so long, as nothing else is done."""
        process = psutil.Process(pid)
        before, began_at = _spent(process), monotonic()
        await asyncio.sleep(seconds)
        self.found.processor_share = (_spent(process) - before) / (monotonic() - began_at)

    async def go(self) -> None:
        """Each says good-bye by closing."""
        self._is_over = True
        for beat in self._beats.values():
            beat.cancel()
        for connection in self._connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in self._connections))


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def crowd(
    address: str, keyring: Keyring, pid: int, nworkers: int, look_seconds: float
) -> Found:
    """So many workers come, stay for so long, and go.  `pid`: of the scheduler."""
    workers = Crowd(address, keyring)
    try:
        await workers.come(nworkers)
        await workers.look_at(pid, look_seconds)
    finally:
        await workers.go()
    return workers.found
