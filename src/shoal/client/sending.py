"""What a client says leaves in frames: of many tasks at once in a burst, of one that comes alone.

User threads change the machine under the lock and wake the loop at most once; the loop sends all
that gathered meanwhile in one frame.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

from shoal.client.errors import ClientClosed
from shoal.client.machine import ERROR, Record
from shoal.client.watching import Told, Watching, tell
from shoal.comms import CommClosedError, Connection, PendingCalls
from shoal.ids import Key
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import Message

TIDY_SECONDS: Final = 0.01
"""How long the release of a future may wait for company."""
COLLECT_SECONDS: Final = 0.05
"""How long the release of a future that nothing refers to any more waits for others."""
BURST_SECONDS: Final = 100e-6
"""A message that follows another sooner than this is sent along with more of its kind."""

_logger = logging.getLogger("shoal.client")


class Sending(Watching):
    """The part of a session that speaks."""

    def __init__(self, name: str) -> None:
        """`name`: how the scheduler knows us; unique."""
        super().__init__()
        self.name = name
        self.status = "newly-created"
        self.ending_reason = ""  # as the scheduler told it, or why we do not understand it
        self.connection: Connection | None = None
        self.calls: PendingCalls | None = None
        self.is_away = False  # it has lost its scheduler, and looks for it
        self._thread_id = 0  # of the loop
        self._dropped: deque[Record] = deque()
        self._collected: deque[Record] = deque()
        self._sending = threading.Lock()  # taken before `lock`: frames leave in their order
        self._sent_at = 0.0  # when the latest frame left
        self._awake = False  # a `_pump` is about to come
        self._tidying = False  # a `_tidy` is
        self._collecting = False  # a `_take_collected` is
        self._held_back: dict[object, asyncio.TimerHandle | None] = {}
        """For what the scheduler has to hear before (see `borrowing`): until when, at most."""
        self._due: list[Message] = []  # to be sent before all else, whatever is held back

    @property
    def is_open(self) -> bool:
        """Whether what is said reaches the scheduler: now, or once it has been found again."""
        return self.status == "running" or self.is_away

    def require_running(self) -> None:
        """Raise ClientClosed unless messages can be sent, now or once it is back."""
        if self.status != "running" and not self.is_away:
            raise ClientClosed(self.name, self.status, self.ending_reason)

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller runs on the session's own loop."""
        return threading.get_ident() == self._thread_id

    def wake(self) -> None:
        """Have what is outgoing sent soon: at the end of the tick, or as soon as the loop runs.

        A thread that is alone with its message sends it here and now, since that costs less than
        to wake the loop; in a burst of messages the loop sends many in one frame.
        """
        if self._awake or self.loop is None:
            return
        if threading.get_ident() != self._thread_id and monotonic() - self._sent_at > BURST_SECONDS:
            told = self._flush()
            if told:
                self._on_loop(tell, told)
            return
        self._wake_loop()

    def _wake_loop(self) -> None:
        self._awake = True
        if not self._on_loop(self._pump):
            self._awake = False

    def _on_loop(self, function: Callable[..., object], *args: object) -> bool:
        """Call `function` on the loop soon; False if that is closed, and with it the session."""
        assert self.loop is not None
        try:
            if threading.get_ident() == self._thread_id:
                self.loop.call_soon(function, *args)
            else:
                self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return False
        return True

    def drop(self, record: Record) -> None:
        """One future less.  Takes no lock, so that a garbage collection may call it anywhere.

        While the session is busy, drops wait for the next message or a few milliseconds: a wake-up
        for each would cost as much as its task.
        """
        self._dropped.append(record)
        if not (self._awake or self._tidying or self.loop is None):
            self._wake_loop()

    def collect(self, record: Record) -> None:
        """One future less, to which nothing refers any more.  Takes no lock, as `drop`.

        It is said COLLECT_SECONDS later, with all that follow.  So what is asked right after is
        answered as of before: who looks into workers when a computation is over, as suites of
        libraries do, finds there what it used, whichever of its references went first.
        """
        self._collected.append(record)
        if not (self._collecting or self.loop is None):
            self._collecting = True
            if not self._on_loop(self._collect_later):
                self._collecting = False

    def take_dropped(self) -> None:
        """Tell the machine of dropped and collected futures; to be called under the lock."""
        self._take(self._dropped)
        self._take(self._collected)

    def _take(self, dropped: deque[Record]) -> None:
        if dropped:
            records = []
            try:
                while True:
                    records.append(dropped.popleft())
            except IndexError:
                pass  # all taken
            self.machine.release(records)

    def forget_failed(self, keys: Iterable[Key]) -> None:
        """As `take_dropped` if one of these failed: a failure that nobody holds any more must not
        be the answer to a new call.  Cost: 50 ns per key."""
        if self._dropped or self._collected:
            known = self.machine.records
            for key in keys:
                record = known.get(key)
                if record is not None and record.status == ERROR:
                    self.take_dropped()
                    return

    def want(self, key: Key) -> Record:
        """The record of a key that may be known by name only; it counts one more future."""
        with self.lock:
            self.require_running()  # under the lock, or the end could come in between
            record = self.machine.want(key)
        self.wake()
        return record

    def say(self, message: Message) -> None:
        """Send `message` after all that was said before."""
        self.require_running()
        with self.lock:
            self.machine.say(message)
        self.wake()

    @property
    def is_held_back(self) -> bool:
        """Whether what is said now has to wait; see `hold_back`."""
        return bool(self._held_back)

    def say_past_holds(self, message: Message) -> None:
        """As `say`, of what was meant to be said before those holds began that there are now."""
        self.require_running()
        with self.lock:
            if self._held_back and not self.is_away:
                self._due.append(message)
            else:
                self.machine.say(message)
        self.wake()

    def hold_back(self, seconds_max: float) -> object:
        """Send nothing that is said from now on, until `go_on` is called with what this returns, or
        time is over."""
        mark = object()
        with self.lock:
            if not self._held_back:
                self._due += self.machine.take_outgoing()
            self._held_back[mark] = None
        self._on_loop(self._limit, mark, seconds_max)
        return mark

    def _limit(self, mark: object, seconds_max: float) -> None:
        assert self.loop is not None
        with self.lock:
            if mark in self._held_back:
                self._held_back[mark] = self.loop.call_later(seconds_max, self.go_on, mark)

    def go_on(self, mark: object) -> None:
        """See `hold_back`; from any thread, and nothing happens the second time."""
        with self.lock:
            was_held = mark in self._held_back
            timer = self._held_back.pop(mark, None)
            is_free = was_held and not self._held_back
        if timer is not None:
            self._on_loop(timer.cancel)
        if is_free:
            self._wake_loop()

    def _pump(self) -> None:
        self._awake = False
        before = self._sent_at
        tell(self._flush())
        if self._sent_at != before and not self._tidying:
            self._tidy_later()

    def _flush(self) -> Told:
        """Send what is outgoing, from any thread; whom to tell of what, on the loop."""
        with self._sending:
            with self.lock:
                self._take(self._dropped)
                outgoing, self._due = self._due, []
                if not self._held_back:
                    outgoing += self.machine.take_outgoing()
                told = self._take_told()
            if outgoing and self.connection is not None and not self.connection.closed:
                told += self._send(outgoing)
                self._sent_at = monotonic()
        return told

    def _send(self, messages: list[Message]) -> Told:
        """Send one frame; whom to tell of what could not be sent, so that nobody waits for it."""
        assert self.connection is not None
        try:
            self.connection.send(messages)
        except CommClosedError:
            return []  # `_on_closed` ends everything
        except Exception as error:  # too large for a frame, or not to be encoded
            if len(messages) > 1:
                return [told for message in messages for told in self._send([message])]
            _logger.warning("A message could not be sent: %s", error)
            self._fail_call(messages[0], error)
            with self.lock:
                self.machine.fail_unsent(messages[0], to_failure(error))
                return self._take_told()
        return []

    def _fail_call(self, message: Message, error: Exception) -> None:
        """Whoever waits for the answer to `message`, if it is a call, gets the error instead."""
        request = getattr(message, "request", None)
        if self.calls is not None and request is not None:
            self._on_loop(self.calls.fail, request, error)

    def _tidy_later(self) -> None:
        assert self.loop is not None
        self._tidying = True
        self.loop.call_later(TIDY_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._tidying = False  # before we look, so that no later drop is missed
        if self._dropped:
            self._pump()

    def _collect_later(self) -> None:
        assert self.loop is not None
        self.loop.call_later(COLLECT_SECONDS, self._take_collected)

    def _take_collected(self) -> None:
        self._collecting = False  # before we look, so that no later one is missed
        with self.lock:
            self.take_dropped()
        self._pump()
