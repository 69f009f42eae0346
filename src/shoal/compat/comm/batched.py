"""`distributed.batched`: small messages that go together, in the order in which they were given."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final

from dask.utils import parse_timedelta

from shoal.comms.errors import CommClosedError
from shoal.compat.comm.core import Comm

logger: Final = logging.getLogger("shoal.protocol")
_REMEMBERED_MAX: Final = 100


class BatchedSend:
    """Sends what it is given as lists: whatever came while the list before was being sent.

    No timer holds anything back.  What is said alone goes at once, and in a burst a list grows
    while the one before is on its way.
    """

    def __init__(self, interval: float | str, loop: Any = None, serializers: Any = None) -> None:
        """Nothing is sent before `start`.

        Args:
            interval: kept, and not waited for.
            loop: not needed.
            serializers: families for values that are marked, in order.
        """
        self.interval: float = parse_timedelta(interval, default="ms")
        self.loop = loop
        self.serializers = serializers
        self.buffer: list[Any] = []
        """What was not sent yet."""
        self.comm: Comm | None = None
        self.please_stop = False
        self.message_count = self.batch_count = self.byte_count = 0
        self.recent_message_log: deque[str] = deque(maxlen=_REMEMBERED_MAX)
        self._news = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self.closed() else f"{len(self.buffer)} in buffer"
        return f"<BatchedSend: {state}>"

    __str__ = __repr__

    def start(self, comm: Comm) -> None:
        """Send over `comm` from now on, beginning with what is here already."""
        self.comm = comm
        self._sending = asyncio.get_running_loop().create_task(self._send_batches(comm))

    def closed(self) -> bool:
        """Whether nothing is sent any more."""
        return self.please_stop or (self.comm is not None and self.comm.closed())

    def send(self, *msgs: Any) -> None:
        """Send messages soon.

        Raises:
            CommClosedError: nothing is sent any more.
        """
        if self.closed():
            where = self.comm.peer_address if self.comm is not None else "nobody"
            raise CommClosedError.already(where)
        self.message_count += len(msgs)
        self.buffer.extend(msgs)
        self._news.set()

    async def _send_batches(self, comm: Comm) -> None:
        try:
            while True:
                if not self.buffer:
                    if self.please_stop:
                        return
                    self._news.clear()
                    await self._news.wait()
                    continue
                batch, self.buffer = self.buffer, []
                self.batch_count += 1
                self.recent_message_log.append(f"{len(batch)} messages")
                over = self.comm or comm  # another one, if a program has put it there
                self.byte_count += await over.write(
                    batch, serializers=self.serializers, on_error="raise"
                )
        except CommClosedError as error:
            logger.info("Batched comm to %s closed: %s", comm.peer_address, error)
            self.abort()
        except Exception:
            logger.exception("A batch could not be sent to %s", comm.peer_address)
            self.abort()

    async def close(self, timeout: float | str | None = None) -> None:
        """Send what is here, then close the comm.

        Args:
            timeout: after which what is left is given up; None: it is the comm that gives up when
                its peer is gone.
        """
        self.please_stop = True
        self._news.set()
        sending, self._sending = self._sending, None
        if sending is not None:
            seconds = parse_timedelta(timeout, default="seconds")
            await asyncio.wait([sending], timeout=seconds)
            if not sending.done():
                sending.cancel()
        if self.comm is not None:
            await self.comm.close()

    def abort(self) -> None:
        """End at once; what is here is lost."""
        self.please_stop = True
        self.buffer = []
        self._news.set()
        if self.comm is not None and not self.comm.closed():
            self.comm.abort()
