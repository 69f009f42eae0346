"""Comms that programs have made to a scheduler or a worker of ours: `rpc(scheduler.address)`.

They come in by the listener of the service, and have proved the key of a client as clients do.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from shoal.comms.errors import ProtocolError
from shoal.comms.transport import Connection
from shoal.compat.comm import handshaking
from shoal.compat.comm.carried import Carried
from shoal.compat.comm.errors import NothingInCommon
from shoal.compat.comm.inproc import InProc
from shoal.compat.comm.tcp import TCP
from shoal.compat.servers.conversing import converse

logger = logging.getLogger("shoal.core")

CANCEL_SECONDS: Final = 1.0
"""What operations of programs may take to end once they are cancelled, as a service closes."""


class Guests:
    """The comms of one service; belongs to its loop."""

    def __init__(self, service: Any, who: str) -> None:
        """`who`: the service, for the texts of errors."""
        self._service, self._who = service, who
        self.comms: dict[Any, str | None] = {}
        """Comm -> the operation that it is busy with, or None."""
        self._conversations: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def welcome(self, connection: Connection) -> None:
        """Somebody has come; `connection` is started here."""
        if self._is_closing:
            connection.abort()
            return
        kind = InProc if connection.scheme == "inproc" else TCP
        comm = kind(connection, connection.local_address, connection.peer_address)
        task = asyncio.get_running_loop().create_task(self._converse(comm))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _converse(self, comm: Carried) -> None:
        try:
            await handshaking.welcome(comm)
            await converse(
                self._service,
                self._who,
                comm,
                self.comms,
                lambda: self._is_closing,
                self._service.counters["op"].add,
            )
        except (OSError, ProtocolError, NothingInCommon) as error:
            logger.info("%s did not get to know %s: %s", self._who, comm.peer_address, error)
        except Exception:
            logger.exception("%s could not answer %s", self._who, comm.peer_address)
        finally:
            comm.abort()  # else it has ended already

    async def close(self) -> None:
        """End all of them, and cancel what is under way for them; it has a second to end."""
        self._is_closing = True
        ending = list(self._conversations)
        for task in ending:
            task.cancel()
        for comm in list(self.comms):
            comm.abort()
        if ending:
            _, left = await asyncio.wait(ending, timeout=CANCEL_SECONDS)
            if left:
                logger.warning("%s closes, and %d operations that programs have called go on, "
                               "though they were cancelled", self._who, len(left))  # fmt: skip
