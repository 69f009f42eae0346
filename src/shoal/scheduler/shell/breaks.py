"""Workers and clients whose connection has broken, and who may come back: see `comms/streams.py`.

The machine knows nothing of it; to it they are connected.  A worker's process is looked for at
once, since one that was killed shall cost no more time than it takes to find that out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from shoal.comms.exchange import ReplicaExchange
from shoal.comms.resumable import AcceptedStream, Streams
from shoal.comms.streams import Carrier
from shoal.protocol.streams import BeginStream, ResumeStream
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.peers import Peer

logger = logging.getLogger("shoal.scheduler")

LOOK_SECONDS: Final = 2.0
"""How long a worker may take to let us in; whether it is dead is not known then."""
PAUSE_SECONDS_MIN: Final = 0.25
PAUSE_SECONDS_MAX: Final = 2.0
"""Between two such looks at a worker that may live, as long as its connection is broken."""


class Breaks:
    """The streams of a service, and what is done when one of them breaks."""

    def __init__(self, window_seconds_by_role: Mapping[str, float]) -> None:
        """How long a break is waited out, by who it is with; 0: not at all."""
        self._streams = Streams(window_seconds_by_role)
        self._exchange: ReplicaExchange | None = None
        self._looking: dict[asyncio.Task[None], None] = {}

    def open(self, exchange: ReplicaExchange) -> None:
        """`exchange`: by which workers are looked for."""
        self._exchange = exchange

    def close(self) -> None:
        """Look for nobody any more."""
        for look in list(self._looking):
            look.cancel()

    def carry(self, peer: Peer, word: BeginStream | ResumeStream) -> bool:
        """The connection of `peer` carries a stream; whether that is somebody else's.

        Raises:
            ProtocolError: there is a stream of this name already.
        """
        carrier = cast(Carrier, peer.connection)  # an inproc one never says so
        if isinstance(word, ResumeStream):
            return self._streams.resume(carrier, word)
        stream = self._streams.begin(carrier, word)
        if stream is not None:
            peer.carried_by(stream)
        return False

    def broken(self, peer: Peer, stream: AcceptedStream) -> None:
        """The connection beneath `stream` is gone; the machine goes on as if it were not."""
        entity = peer.entity
        if entity is None:
            return
        logger.info(
            "The connection to %s broke; it has %g s to come back",
            _shown(entity),
            stream.window_seconds,
        )
        if isinstance(entity, Worker):
            look = asyncio.ensure_future(self._look_for(entity, stream))
            self._looking[look] = None
            look.add_done_callback(self._looking.pop)

    async def _look_for(self, worker: Worker, stream: AcceptedStream) -> None:
        """End `stream` once the process of `worker` is gone, which may be later than the break."""
        assert self._exchange is not None
        nbreaks, pause_seconds = stream.nbreaks, PAUSE_SECONDS_MIN
        while not await self._exchange.is_refused(worker.address, LOOK_SECONDS):
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
            if not stream.is_broken or stream.nbreaks != nbreaks:
                return
        if stream.nbreaks == nbreaks:  # else what was found out is about another break than this
            stream.give_up()

    def resumed(self, peer: Peer) -> None:
        """It has come back, and nothing was lost."""
        if peer.entity is not None:
            logger.info("%s is connected again; nothing was lost", _shown(peer.entity))


def _shown(entity: Any) -> str:
    return f"worker {entity.name} ({entity.address})" if isinstance(entity, Worker) else str(entity)
