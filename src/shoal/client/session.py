"""One connection to the scheduler: its life, questions and answers, and what comes in.

Results come in on the loop, under one lock with what users' threads do.  How things leave is in
`sending`, how one waits for them in `watching`, what happens when the scheduler is lost in
`belonging`, and who hears what is no result in `incoming`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from shoal.client.belonging import Belonging
from shoal.client.errors import ClientClosed
from shoal.client.families import Families
from shoal.client.incoming import INCOMING, Delivery
from shoal.client.machine.wants import CONNECTION_LOST
from shoal.client.watching import tell
from shoal.comms import CommClosedError, ProtocolError, forks
from shoal.ids import Epoch
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import Message, RegisterClient

_logger = logging.getLogger("shoal.client")

_sessions: Final[weakref.WeakValueDictionary[str, Session]] = weakref.WeakValueDictionary()


def sessions_of_process() -> list[Session]:
    """All that were opened in this process and that somebody refers to, closed ones as well."""
    return [session for ref in _sessions.valuerefs() if (session := ref()) is not None]


class Session(Belonging):
    """One client's side of the conversation with its scheduler."""

    def __init__(self, name: str) -> None:
        """`name`: how the scheduler knows us; unique."""
        super().__init__(name)
        self.closers: list[Callable[[], Coroutine[Any, Any, None]]] = []  # run when it ends
        self.families = Families()
        self._closing: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Session {self.name} {self.status} at {self.address or 'no address'}>"

    # --- beginning and end -------------------------------------------------------------------

    async def open(
        self,
        address: str,
        keyring: Keyring,
        *,
        timeout_seconds: float,
        heartbeat_seconds: float,
        versions: dict[str, str],
        watches_members: bool = False,
        share: float = 1.0,
    ) -> None:
        """Connect and register; this loop is the session's from now on.

        Raises:
            OSError: nobody answers, not in time, or it refuses us.
        """
        self.loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self.address, self.keyring = address, keyring
        self.status = "connecting"
        self._heartbeat_seconds = heartbeat_seconds
        self._introduction = RegisterClient(
            self.name,
            versions,
            watches_members,
            share,
            may_return=self._reconnect_seconds > 0,
        )
        forks.belongs_to_this_process(self)
        _sessions[self.name] = self
        try:
            await self._register(timeout_seconds)
        except BaseException:
            self.status = "closed"
            raise
        self.status = "running"
        self._beat()

    async def close(self) -> None:
        """Let go of everything and leave; a second call waits for the first."""
        if self._ended is None:
            self.status = "closed"
            return
        if self.is_open:
            if not self.is_away:
                self.status = "closing"
                self._held_back.clear()
                self._pump()
            self.end("client-closed")
        await asyncio.shield(self._ended)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def end(self, reason: str) -> None:
        """Leave now: on the loop; what was said is still sent."""
        was_away = self._back is not None and not self._back.done()
        self._stop_looking()
        self._lose(reason, None)
        if self.connection is not None:
            self.connection.close()
        if was_away:  # there may be no connection whose end is told
            self._on_closed(None)

    def end_from_elsewhere(self, reason: str) -> None:
        """As `end`, from any thread, at any moment; nothing happens if the loop is gone."""
        loop = self.loop
        if loop is not None and self.status not in ("closed", "newly-created"):
            self.status = "closing"
            try:
                loop.call_soon_threadsafe(self.end, reason)
            except RuntimeError:
                self.status = "closed"

    def disown(self) -> None:
        """See `forks.Disowned`: loop and connection are those of the parent."""
        self.lock, self._sending = threading.Lock(), threading.Lock()
        self.status, self.loop, self.connection, self.is_away = "closed", None, None, False
        self.machine.connection_lost("its client belongs to the process that this is a fork of")

    @property
    def epoch(self) -> Epoch:
        """In which the tasks' numbers mean something.

        Raises:
            ClientClosed: in none.
            CommClosedError: in none just now.
        """
        epoch = self.machine.epoch
        if epoch is None:
            if self.is_away:
                raise CommClosedError.lost(self.address, "it is being looked for")
            raise ClientClosed(self.name, self.status, self.ending_reason)
        return epoch

    # --- asking ------------------------------------------------------------------------------

    async def call(
        self,
        make: Callable[[int], Message],
        *,
        timeout_seconds: float | None = None,
        passes_holds: bool = False,
    ) -> Any:
        """Ask the scheduler, and return the value of its answer; a Delivery if it is Replicas.

        Args:
            make: the message, given its request number.
            timeout_seconds: None: until it is answered or the connection ends.
            passes_holds: whether it was meant to be said before what holds us back now.

        Raises:
            CommClosedError: the connection ended.
            CallTimeoutError: no answer came in time.
            BaseException: what the scheduler refused it with.
        """
        if self.is_away:
            timeout_seconds = await self._until_back(timeout_seconds)
        self.require_running()
        assert self.calls is not None
        say = self.say_past_holds if passes_holds else self.say
        message, delivery = await self.calls.ask(make, say, timeout_seconds)
        return read_reply(type(message), delivery)

    # --- in ----------------------------------------------------------------------------------

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        mine: list[Any] = messages
        if any(type(message) in INCOMING for message in messages):
            mine = []
            for message in messages:
                handler = INCOMING.get(type(message))
                if handler is None:
                    mine.append(message)
                else:
                    handler(self, message, buffers)
        if not mine:
            return
        if self.families.read is not None:
            mine = self.families.guard_news(mine)
        with self.lock:
            if self.is_away:  # what nobody holds any more is not said again
                self.take_dropped()
            self.machine.receive(mine)
            told = self._take_told()
        welcomed = self._welcomed
        if welcomed is not None and self.machine.epoch is not None and not welcomed.done():
            welcomed.set_result(None)
        if not self._tidying:
            self._tidy_later()
        tell(told)

    def _on_closed(self, reason: Exception | None) -> None:
        was_running = self.status == "running"
        if isinstance(reason, ProtocolError):
            self.ending_reason = str(reason)
        said = f"\nThe reason is: {self.ending_reason}" if self.ending_reason else ""
        self._lose(f"{CONNECTION_LOST}{said}", reason)
        if was_running:
            why = self.ending_reason or reason or "the scheduler closed it"
            level = logging.DEBUG if reason is None else logging.INFO  # it left in good order
            _logger.log(level, "The connection of %s to %s ended: %s", self.name, self.address, why)
        self.status = "closed"
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _lose(self, why: str, reason: Exception | None) -> None:
        """Everything that still waits ends with one clear error.  A second call finds nothing."""
        if self.status == "running":
            self.status = "closing"
        self._turn_away(reason)
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        with self.lock:
            self.machine.connection_lost(why)
            told = self._take_told()
        if self.calls is not None:
            said = self.ending_reason
            self.calls.close(reason or (CommClosedError.lost(self.address, said) if said else None))
        closers, self.closers = self.closers, []
        self._closing += [asyncio.ensure_future(close()) for close in closers]
        tell(told)


def read_reply(asked: type[Message], delivery: Delivery) -> Any:
    """The value of a reply to a call of type `asked`; raises what it was refused with."""
    message = delivery.message
    if isinstance(message, Refusal):
        raise from_failure(message.failure)
    if isinstance(message, Answer):
        return answered(asked, message)
    return delivery
