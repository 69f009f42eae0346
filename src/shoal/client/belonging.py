"""How a client goes on belonging to its cluster: signs of life, and the way back to its scheduler.

When the connection ends though nobody meant it to, a client with a window looks for the scheduler
for so long.  Meanwhile nothing of it ends but the calls that wait for an answer; see `returning` of
the machine for what is said to the scheduler that is found.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import msgspec

from shoal import config
from shoal.client.members import Members
from shoal.client.sending import Sending
from shoal.comms import (
    CallTimeoutError,
    CommClosedError,
    Connection,
    OutcomeUnknown,
    PendingCalls,
    ProtocolError,
)
from shoal.comms.resuming import DialledStream, connect_resuming
from shoal.comms.streams import tell_of_breaks
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import SchedulerToClient
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import ClientHeartbeat, Message, RegisterClient
from shoal.protocol.streams import STREAM_WORDS

_logger = logging.getLogger("shoal.client")
_decoder: Final = Decoder(SchedulerToClient | STREAM_WORDS)

PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 2.0
AWAY: Final = "away"
"""The mark by which a session that is away holds back what it has to say."""


class Belonging(Sending, ABC):
    """The part of a session that is connected, and stays so."""

    def __init__(self, name: str) -> None:
        """`name`: how the scheduler knows us; unique."""
        super().__init__(name)
        self.address = ""
        self.keyring = Keyring({})
        self.greetings: list[Callable[[], Iterable[Message]]] = []
        """What to say to a scheduler that came back, before all else; called under the lock."""
        self._introduction = RegisterClient(name)
        self._reconnect_seconds = 0.0
        self._is_quiet = False
        self._heartbeat_seconds = 5.0
        self._heartbeat: asyncio.TimerHandle | None = None
        self._welcomed: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._back: asyncio.Future[None] | None = None  # done once it is back, or has given up
        self._looking: asyncio.Task[None] | None = None

    def may_return(self, seconds: float, *, is_quiet: bool = False) -> None:
        """Look for a lost scheduler for so long; to be called before the session is opened.

        Args:
            is_quiet: whether somebody else tells the user of such a loss.
        """
        self._reconnect_seconds, self._is_quiet = seconds, is_quiet
        if seconds > 0:
            self.machine.may_return(self._greeting)

    def _greeting(self) -> list[Message]:
        return [message for greet in self.greetings for message in greet()]

    # --- in ----------------------------------------------------------------------------------

    async def _register(self, timeout_seconds: float) -> None:
        """Connect, say who we are, and be let in.

        Raises:
            OSError: nobody answers there, not in time, or it refuses us.
        """
        assert self.loop is not None
        end = self.loop.time() + timeout_seconds
        connection = await connect_resuming(
            self.address,
            self.keyring,
            "client",
            _decoder,
            timeout_seconds=timeout_seconds,
            keep_trying=True,  # scripts start scheduler and client side by side
            window_seconds=config.read(config.Comm).resume_seconds,
        )
        if self.calls is None:
            self.calls = PendingCalls(self.address)
            self._ended = self.loop.create_future()
        with self._sending:  # what is being sent just now is for the one before
            self.connection = connection
        self._welcomed = self.loop.create_future()
        try:
            tell_of_breaks(connection, _logger, "This client's")
            connection.start(self._on_messages, partial(self._on_end_of, connection))
            connection.send([self._introduction])
            async with asyncio.timeout_at(end):
                await self._welcomed
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError):
                why = "it did not welcome us in time"
                raise CommClosedError.lost(self.address, why) from error
            raise
        finally:
            self._welcomed = None

    @abstractmethod
    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        """The scheduler has said something."""

    def _on_end_of(self, connection: Connection, reason: Exception | None) -> None:
        """A connection has ended; of an earlier one nobody wants to know."""
        if connection is not self.connection:
            return
        if self.is_away:  # which has let nobody in
            self._turn_away(reason)
        elif self._may_look(reason):
            self._look_for_it(reason)
        else:
            self._on_closed(reason)

    @abstractmethod
    def _on_closed(self, reason: Exception | None) -> None:
        """The session ends with its connection."""

    def _turn_away(self, reason: Exception | None) -> None:
        """Whoever waits to be let in isn't."""
        if self._welcomed is not None and not self._welcomed.done():
            sent_away = self.ending_reason or "the scheduler sent us away"
            self._welcomed.set_exception(reason or CommClosedError.lost(self.address, sent_away))

    def _beat(self) -> None:
        assert self.loop is not None
        if self.status == "running":
            with self.lock:
                self.machine.say(ClientHeartbeat())
            self._pump()
            if isinstance(self.connection, DialledStream):
                self.connection.keep_alive()
            self._heartbeat = self.loop.call_later(self._heartbeat_seconds, self._beat)

    # --- and in again ------------------------------------------------------------------------

    def _may_look(self, reason: Exception | None) -> bool:
        """Whether the scheduler was lost, and it was neither its wish nor ours."""
        return (
            self._reconnect_seconds > 0
            and self.status == "running"
            and not self.ending_reason
            and not isinstance(reason, ProtocolError)  # another would go the same way
        )

    def _look_for_it(self, reason: Exception | None) -> None:
        """The scheduler is gone: from now on we are away, and look for it."""
        assert self.loop is not None
        assert self.calls is not None
        why = str(reason or "it closed, or its process has ended")
        self._back = self.loop.create_future()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        with self.lock:
            self.is_away, self.status = True, "connecting"
            self._held_back[AWAY] = None
            self._due.clear()
            addresses = [*self.machine.scheduler_lost(), *self.state_of(Members).by_address]
        self._introduction = msgspec.structs.replace(
            self._introduction, returning=True, workers=list(dict.fromkeys(addresses))
        )
        self.calls.fail_all(OutcomeUnknown.of_call(self.address, why))
        self._tell_user(
            "%s has lost its scheduler at %s, and looks for it for %g s: %s",
            self.name,
            self.address,
            self._reconnect_seconds,
            why,
        )
        self._looking = self.loop.create_task(self._look(why))

    async def _look(self, why: str) -> None:
        """Be let in once more, until the time is over."""
        assert self.loop is not None
        lost_at = self.loop.time()
        pause_seconds = PAUSE_SECONDS
        while (left := lost_at + self._reconnect_seconds - self.loop.time()) > 0:
            try:
                await self._register(left)
            except (OSError, ProtocolError, MemoryError) as error:  # all that ends a connection
                why = str(error)
                if self.ending_reason or isinstance(error, ProtocolError):
                    break
                await asyncio.sleep(min(pause_seconds, left))
                pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
            else:
                self._is_back(self.loop.time() - lost_at)
                return
        self._give_up(why)

    def _is_back(self, seconds: float) -> None:
        """All that lives was said to a scheduler that has let us in."""
        with self.lock:
            self.is_away, self.status = False, "running"
        self._stop_looking()
        self.go_on(AWAY)
        self._beat()  # after all that lives was said, which tells that it was all
        told = self.name, self.address, seconds
        self._tell_user("%s has found its scheduler at %s again, after %.1f s", *told)

    def _give_up(self, why: str) -> None:
        """Nobody has let us in for as long as we were to look."""
        seconds = self._reconnect_seconds
        gone = CommClosedError.not_found_again(self.address, seconds, self.ending_reason or why)
        self.ending_reason = str(gone)
        self._tell_user("%s: %s", self.name, gone)
        self.status = "closing"
        self._stop_looking()
        self._on_closed(gone)

    def _tell_user(self, line: str, *about: object) -> None:
        """Log a line, as a warning unless somebody else tells of it."""
        _logger.log(logging.DEBUG if self._is_quiet else logging.WARNING, line, *about)

    def _stop_looking(self) -> None:
        """Whoever waits for the end of it goes on."""
        self.is_away = False
        if self._back is not None and not self._back.done():
            self._back.set_result(None)
        looking, self._looking = self._looking, None
        if looking is not None and looking is not asyncio.current_task():
            looking.cancel()

    async def _until_back(self, timeout_seconds: float | None) -> float | None:
        """Wait until it is back, or has given up; what is left of the time.

        Raises:
            CallTimeoutError: it took longer.
        """
        assert self.loop is not None
        assert self._back is not None
        began_at = self.loop.time()
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(self._back)
        except TimeoutError:
            assert timeout_seconds is not None
            raise CallTimeoutError("a request", self.address, timeout_seconds) from None
        if timeout_seconds is None:
            return None
        return max(0.0, timeout_seconds - (self.loop.time() - began_at))
