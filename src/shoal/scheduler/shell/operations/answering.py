"""Answers calls that need more than the machine, each in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from shoal.comms import AuthenticationError, ProtocolError
from shoal.comms.cancellation import is_our_cancellation
from shoal.protocol.answers import Refusal
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import CLIENT
from shoal.protocol.membership import TerminateCluster
from shoal.scheduler.shell.host import Asker, Host, Operation
from shoal.scheduler.shell.operations.table import OPERATIONS

logger = logging.getLogger("shoal.scheduler")

CANCEL_SECONDS: Final = 1.0
"""What calls that are being answered may take to end once they are cancelled."""


class Answering:
    """Answers calls in tasks of their own, so that none holds up the loop or another call."""

    def __init__(self, scheduler: Host) -> None:
        self._scheduler = scheduler
        self._running: set[asyncio.Task[None]] = set()  # only to keep them alive

    def begin(self, peer: Asker, call: Any) -> None:
        """Start to answer `call`, whose answer or refusal goes to `peer`."""
        operation = OPERATIONS.get(type(call))
        if operation is None:
            where, kind = peer.connection.peer_address, type(call).__name__
            raise ProtocolError(f"{where} says {kind} in the midst of a conversation")
        task = asyncio.create_task(self._answer(peer, call, operation), name=type(call).__name__)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def welcome(self, connection: Any) -> None:
        """A program calls operations by name, on a connection of its own."""
        self._scheduler.guests.welcome(connection)

    async def close(self) -> None:
        """Give up what is still being answered; users' code there has a second to end."""
        running = [task for task in self._running if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        if running:
            _, left = await asyncio.wait(running, timeout=CANCEL_SECONDS)
            for task in left:
                logger.warning(
                    "%s is still being answered, though it was cancelled", task.get_name()
                )

    async def _answer(self, peer: Asker, call: Any, operation: Operation) -> None:
        """Every call ends in one answer or refusal, whatever happens."""
        try:
            if peer.connection.role != CLIENT:
                raise AuthenticationError(
                    f"{peer.connection.peer_address} proved itself a worker, and "
                    f"{type(call).__name__} is for clients"
                )
            reply = await operation(self._scheduler, call)
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            reply = Refusal(call.request, to_failure(error))
        try:
            if isinstance(reply, tuple):
                peer.send_with_buffers(*reply)
            else:
                peer.send([reply])
        except Exception as error:  # too large for a frame
            peer.send([Refusal(call.request, to_failure(error))])
        if isinstance(call, TerminateCluster):
            self._scheduler.close_soon("a client asked for it")
