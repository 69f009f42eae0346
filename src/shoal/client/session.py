"""The client's shell: one connection to the scheduler, one machine, one lock.

User threads change the machine under the lock and wake the loop at most once; the loop sends all
that gathered meanwhile in one frame.  Results come in on the loop.  Whoever waits for a record
registers a watcher, which is called on the loop, outside of the lock.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from time import monotonic
from typing import Any, Final

import msgspec

from shoal.client.errors import ClientClosed
from shoal.client.machine import ERROR, UNRESOLVED, ClientMachine, Record
from shoal.comms import CommClosedError, Connection, PendingCalls, connect, forks
from shoal.ids import Epoch, Key
from shoal.observe.inside import waiting_for_tasks
from shoal.protocol.calls import Answer, Refusal, SchedulerToClient, answered
from shoal.protocol.codec import Decoder
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import ClientHeartbeat, Message, RegisterClient, Replicas, Shutdown

Watcher = Callable[[Record], None]

_logger = logging.getLogger("shoal.client")
_decoder: Final = Decoder(SchedulerToClient)
TIDY_SECONDS: Final = 0.01
"""How long the release of a future may wait for company."""
BURST_SECONDS: Final = 100e-6
"""A message that follows another sooner than this is sent along with more of its kind."""

_REPLIES: Final = frozenset((Answer, Refusal, Replicas))
_NOT_FOR_MACHINE: Final = frozenset((Answer, Refusal, Replicas, Shutdown))


class Delivery:
    """A reply together with the buffers that came with it."""

    __slots__ = ("buffers", "message", "request")

    def __init__(self, message: Any, buffers: list[Any]) -> None:
        self.request: int = message.request
        self.message = message
        self.buffers = buffers


class Session:
    """One client's side of the conversation with its scheduler."""

    def __init__(self, name: str) -> None:
        """`name`: how the scheduler knows us; unique."""
        self.name = name
        self.status = "newly-created"
        self.address = ""
        self.keyring = Keyring({})
        self.machine = ClientMachine()
        self.lock = threading.Lock()
        self.connection: Connection | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.calls: PendingCalls | None = None
        self.closers: list[Callable[[], Coroutine[Any, Any, None]]] = []  # run when it ends
        self._closing: list[asyncio.Future[None]] = []
        self._thread_id = 0  # of the loop
        self._dropped: deque[Record] = deque()
        self._sending = threading.Lock()  # taken before `lock`: frames leave in their order
        self._sent_at = 0.0  # when the latest frame left
        self._awake = False  # a `_pump` is about to come
        self._tidying = False  # a `_tidy` is
        self._heartbeat: asyncio.TimerHandle | None = None
        self._heartbeat_seconds = 5.0
        self._welcomed: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._ending_reason = ""

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
        forks.belongs_to_this_process(self)
        end = self.loop.time() + timeout_seconds
        try:
            self.connection = await connect(
                address,
                keyring,
                "client",
                _decoder,
                timeout_seconds=timeout_seconds,
                keep_trying=True,  # scripts start scheduler and client side by side
            )
            self.calls = PendingCalls(address)
            self._welcomed = self.loop.create_future()
            self._ended = self.loop.create_future()
            self.connection.start(self._on_messages, self._on_closed)
            self.connection.send([RegisterClient(self.name, versions)])
            async with asyncio.timeout_at(end):
                await self._welcomed
        except BaseException as error:
            self.status = "closed"
            if self.connection is not None:
                self.connection.abort()
            if isinstance(error, TimeoutError):
                raise CommClosedError.lost(address, "it did not welcome us in time") from error
            raise
        self.status = "running"
        self._beat()

    async def close(self) -> None:
        """Let go of everything and leave; a second call waits for the first."""
        if self._ended is None:
            self.status = "closed"
            return
        if self.status == "running":
            self.status = "closing"
            self._pump()
            self.end("client-closed")
        await asyncio.shield(self._ended)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def end(self, reason: str) -> None:
        """Leave now: on the loop; what was said is still sent."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._lose(reason, None)
        if self.connection is not None:
            self.connection.close()

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
        self.status, self.loop, self.connection = "closed", None, None
        self.machine.connection_lost("its client belongs to the process that this is a fork of")

    def require_running(self) -> None:
        """Raise ClientClosed unless messages can be sent."""
        if self.status != "running":
            raise ClientClosed(self.name, self.status)

    @property
    def epoch(self) -> Epoch:
        """In which the tasks' numbers mean something; raises ClientClosed if in none."""
        epoch = self.machine.epoch
        if epoch is None:
            raise ClientClosed(self.name, self.status)
        return epoch

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller runs on the session's own loop."""
        return threading.get_ident() == self._thread_id

    # --- out ---------------------------------------------------------------------------------

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

    def take_dropped(self) -> None:
        """Tell the machine of dropped futures; to be called under the lock."""
        dropped = self._dropped
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
        if self._dropped:
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

    async def call(
        self, make: Callable[[int], Message], *, timeout_seconds: float | None = None
    ) -> Any:
        """Ask the scheduler, and return the value of its answer; a Delivery if it is Replicas.

        Args:
            make: the message, given its request number.
            timeout_seconds: None: until it is answered or the connection ends.

        Raises:
            CommClosedError: the connection ended.
            CallTimeoutError: no answer came in time.
            BaseException: what the scheduler refused it with.
        """
        self.require_running()
        assert self.calls is not None
        request, future = self.calls.open("a request", timeout_seconds)
        message = make(request)
        self.say(message)
        try:
            delivery: Delivery = await future
        finally:
            del future  # what it raises holds this frame, which would hold it
        return read_reply(type(message), delivery)

    def _pump(self) -> None:
        self._awake = False
        before = self._sent_at
        tell(self._flush())
        if self._sent_at != before and not self._tidying:
            self._tidy_later()

    def _flush(self) -> list[tuple[Record, list[Watcher]]]:
        """Send what is outgoing, from any thread; whom to tell of what, on the loop."""
        with self._sending:
            with self.lock:
                self.take_dropped()
                outgoing = self.machine.take_outgoing()
                told = self._take_told()
            if outgoing and self.connection is not None and not self.connection.closed:
                told += self._send(outgoing)
                self._sent_at = monotonic()
        return told

    def _send(self, messages: list[Message]) -> list[tuple[Record, list[Watcher]]]:
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
            with self.lock:
                self.machine.fail_unsent(messages[0], to_failure(error))
                return self._take_told()
        return []

    def _tidy_later(self) -> None:
        assert self.loop is not None
        self._tidying = True
        self.loop.call_later(TIDY_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._tidying = False  # before we look, so that no later drop is missed
        if self._dropped:
            self._pump()

    def _beat(self) -> None:
        assert self.loop is not None
        if self.status == "running":
            with self.lock:
                self.machine.say(ClientHeartbeat())
            self._pump()
            self._heartbeat = self.loop.call_later(self._heartbeat_seconds, self._beat)

    # --- in ----------------------------------------------------------------------------------

    def watch(self, record: Record, watcher: Watcher) -> bool:
        """Call `watcher(record)` on the loop once it ends; False: it has ended already."""
        with self.lock:
            if not self.machine.may_end(record):
                return False
            if record.watchers is None:
                record.watchers = [watcher]
            else:
                record.watchers.append(watcher)
            return True

    def watch_all(self, records: Iterable[Record], watcher: Watcher) -> list[Record]:
        """As `watch`, for many at once: those of them that have not ended yet, each once."""
        watched = []
        with self.lock:
            for record in dict.fromkeys(records):
                if self.machine.may_end(record):
                    watched.append(record)
                    if record.watchers is None:
                        record.watchers = [watcher]
                    else:
                        record.watchers.append(watcher)
        return watched

    def unwatch(self, records: Iterable[Record], watcher: Watcher) -> None:
        """Forget `watcher` where it was not called yet."""
        with self.lock:
            for record in records:
                if record.watchers and watcher in record.watchers:
                    record.watchers.remove(watcher)

    async def wait_any(self, records: Sequence[Record]) -> None:
        """Return as soon as one of the records ends, or has ended."""
        await self._wait(records, lambda record: True)

    async def wait_all(self, records: Sequence[Record], *, until_failed: bool = False) -> None:
        """Return when all records have ended; with `until_failed`, or one of them failed."""
        if until_failed:
            await self._wait(records, lambda record: record.status != "finished")
        else:
            await self._wait(records, lambda record: False)

    async def _wait(self, records: Sequence[Record], is_enough: Callable[[Record], bool]) -> None:
        """Wait until all have ended, or one that `is_enough`."""
        assert self.loop is not None
        done: asyncio.Future[None] = self.loop.create_future()
        nleft = 0

        def watcher(record: Record) -> None:
            nonlocal nleft
            nleft -= 1
            if (not nleft or is_enough(record)) and not done.done():
                done.set_result(None)

        watched = self.watch_all(records, watcher)
        nleft = len(watched)  # no watcher is called before we give the loop back
        if not watched or any(is_enough(r) for r in records if r.status not in UNRESOLVED):
            self.unwatch(watched, watcher)
            return
        try:
            with waiting_for_tasks():
                await done
        finally:
            self.unwatch(watched, watcher)

    def on_shutdown(self, message: Shutdown) -> None:
        """The scheduler is about to hang up; remember why, for whoever asks."""
        self._ending_reason = message.reason

    def _on_messages(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        mine: list[Any] = messages
        if any(type(message) in _NOT_FOR_MACHINE for message in messages):
            mine = []
            for message in messages:
                if type(message) in _REPLIES:
                    assert self.calls is not None
                    self.calls.resolve(Delivery(message, buffers))
                elif isinstance(message, Shutdown):
                    self.on_shutdown(message)
                else:
                    mine.append(message)
        if not mine:
            return
        with self.lock:
            self.machine.receive(mine)
            told = self._take_told()
        if self._welcomed is not None and self.machine.epoch is not None:
            if not self._welcomed.done():
                self._welcomed.set_result(None)
            self._welcomed = None
        if not self._tidying:
            self._tidy_later()
        tell(told)

    def _on_closed(self, reason: Exception | None) -> None:
        was_running = self.status == "running"
        self._lose("scheduler-connection-lost", reason)
        if was_running:
            why = self._ending_reason or reason or "the scheduler closed it"
            _logger.info("The connection of %s to %s ended: %s", self.name, self.address, why)
        self.status = "closed"
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _lose(self, why: str, reason: Exception | None) -> None:
        """Everything that still waits ends with one clear error.  A second call finds nothing."""
        if self.status == "running":
            self.status = "closing"
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_exception(
                reason or CommClosedError.lost(self.address, "the scheduler sent us away")
            )
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        with self.lock:
            self.machine.connection_lost(why)
            told = self._take_told()
        if self.calls is not None:
            self.calls.close(reason)
        closers, self.closers = self.closers, []
        self._closing += [asyncio.ensure_future(close()) for close in closers]
        tell(told)

    def _take_told(self) -> list[tuple[Record, list[Watcher]]]:
        """Whom to tell of what has ended; to be called under the lock."""
        told = []
        for record in self.machine.take_resolved():
            if record.watchers:
                told.append((record, record.watchers))
                record.watchers = None
        return told


def tell(told: list[tuple[Record, list[Watcher]]]) -> None:
    """Call watchers, outside of any lock."""
    for record, watchers in told:
        for watcher in watchers:
            watcher(record)


def read_reply(asked: type[Message], delivery: Delivery) -> Any:
    """The value of a reply to a call of type `asked`; raises what it was refused with."""
    message = delivery.message
    if isinstance(message, Refusal):
        raise from_failure(message.failure)
    if isinstance(message, Answer):
        return answered(asked, message)
    return delivery
