"""Connections within one process: messages are handed over as they are, buffers by reference.

The two ends may live on two loops in two threads.  Nothing is delivered from inside a `send`;
what one tick sends arrives in one call, in order.
"""

from __future__ import annotations

import asyncio
import collections
import hmac
import itertools
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shoal.comms.addresses import INPROC, Address
from shoal.comms.ending import DRAINED_NBYTES, Ending
from shoal.comms.errors import AuthenticationError, CommClosedError, ConnectError, ListenError
from shoal.comms.transport import OnClosed, OnConnection, OnMessages
from shoal.protocol.handshake import Keyring

if TYPE_CHECKING:
    from typing_extensions import Buffer

MESSAGE_NBYTES: Final = 64
"""What a message counts for in `unsent_nbytes`: it has no size, but a queue of them has."""

_lock: Final = threading.Lock()
_listener_by_name: Final[dict[str, InprocListener]] = {}
_numbers: Final = itertools.count(1)


class InprocConnection(Ending):
    """See `Connection`.  One of a pair; `unsent_nbytes` is what the other end has yet to take."""

    scheme = INPROC

    def __init__(self, role: str, local_address: str, peer_address: str) -> None:
        super().__init__()
        self.role = role
        self.local_address, self.peer_address = local_address, peer_address
        self._peer: InprocConnection | None = None
        # Shared with the peer's thread, under the lock:
        self._lock = threading.Lock()
        self._inbox: collections.deque[tuple[list[msgspec.Struct], list[Any], int]]
        self._inbox = collections.deque()
        self._waking = False
        self._peer_ended = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<inproc connection to {self.role} {self.peer_address}, {state}>"

    def join(self, peer: InprocConnection) -> None:
        """Make the two one pair; to be called on both before either is used."""
        self._peer = peer

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """See `Connection.start`."""
        self._on_messages, self._on_closed = on_messages, on_closed
        if self._ended:
            self._loop.call_soon(self._tell)
            return
        with self._lock:
            wake = not self._waking and bool(self._inbox or self._peer_ended)
            self._waking = self._waking or wake
        if wake:
            self._loop.call_soon(self._take)

    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """See `Connection.send`.  Cost: 0.5 us, and a wake-up for the first of a tick."""
        self._post(list(messages), [], MESSAGE_NBYTES * len(messages))

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Buffer]) -> None:
        """See `Connection.send_with_buffers`."""
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        self._post([message], views, MESSAGE_NBYTES + sum(map(len, views)))

    def _post(self, messages: list[msgspec.Struct], buffers: list[Any], nbytes: int) -> None:
        if self.closed:
            raise CommClosedError.already(self.peer_address)
        peer = self._peer
        if peer is None:  # another thread sends while ours ends
            raise CommClosedError.already(self.peer_address)
        with self._lock:
            self.unsent_nbytes += nbytes
        peer._receive(messages, buffers, nbytes, from_loop=self._loop)

    def _receive(
        self,
        messages: list[msgspec.Struct],
        buffers: list[Any],
        nbytes: int,
        from_loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Called by the peer, perhaps in its own thread."""
        with self._lock:
            self._inbox.append((messages, buffers, nbytes))
            wake = not self._waking
            self._waking = True
        if wake:
            self._wake(from_loop)

    def _wake(self, from_loop: asyncio.AbstractEventLoop) -> None:
        if threading.get_ident() == self._loop_thread:
            self._loop.call_soon(self._take)
            return
        try:
            self._loop.call_soon_threadsafe(self._take)
        except RuntimeError:
            # Our loop was closed without us: to the peer, this end has died.
            peer = self._peer
            if peer is not None:
                lost = CommClosedError.lost(self.local_address, "its event loop was closed")
                from_loop.call_soon_threadsafe(peer._end, lost)

    def _take(self) -> None:
        """Hand over what is in the inbox, then the news of the end, if it came."""
        with self._lock:
            self._waking = False
            if self._ended or (self._on_messages is None and not self.closed):
                return  # `start` will ask again
            posts, self._inbox = self._inbox, collections.deque()
            peer_ended = self._peer_ended
        batch: list[msgspec.Struct] = []
        nbytes_total = 0
        for messages, buffers, nbytes in posts:
            nbytes_total += nbytes
            if buffers:
                self._hand_over(batch, [])
                batch = []
                self._hand_over(messages, buffers)
            else:
                batch += messages
        self._hand_over(batch, [])
        if nbytes_total:
            self._acknowledge(nbytes_total)
        if peer_ended:
            self._end(None)

    def _hand_over(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        if not messages or self.closed:
            return
        assert self._on_messages is not None
        try:
            self._on_messages(messages, buffers)
        except Exception as error:
            self._loop.call_exception_handler(
                {
                    "message": f"The receiver of {self!r} raised; the connection is aborted",
                    "exception": error,
                }
            )
            self._end(error)

    def _acknowledge(self, nbytes: int) -> None:
        peer = self._peer
        if peer is None:
            return
        if peer._loop is self._loop:
            peer._taken(nbytes)
            return
        try:
            peer._loop.call_soon_threadsafe(peer._taken, nbytes)
        except RuntimeError:
            pass  # its loop is closed, so nobody there waits for anything

    def _taken(self, nbytes: int) -> None:
        with self._lock:
            self.unsent_nbytes -= nbytes
        if self.unsent_nbytes <= DRAINED_NBYTES:
            self._wake_drained()

    def close(self) -> None:
        """See `Connection.close`.  What was sent has been handed to the peer's inbox already."""
        self._end(None)

    def abort(self) -> None:
        """See `Connection.abort`."""
        self._end(None)

    def _end(self, reason: Exception | None) -> None:
        if self._ended:
            return
        self.closed = self._ended = True
        self._reason = reason
        self._wake_drained()
        peer = self._peer
        if peer is not None:
            with peer._lock:
                peer._peer_ended = True
                wake = not peer._waking and not peer._ended
                peer._waking = peer._waking or wake
            if wake:
                peer._wake(self._loop)
        with self._lock:
            self._inbox.clear()
        self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        if self._on_closed is not None:
            self._peer = None  # a pair is a reference cycle
        super()._tell()


class InprocListener:
    """See `Listener`.  Known to the whole process by its name."""

    def __init__(self, address: Address, keyring: Keyring, on_connection: OnConnection) -> None:
        """Raises ListenError if the name is taken; an empty one is replaced by a new one."""
        self._name = address.name or f"{os.getpid()}/{next(_numbers)}"
        self.address = str(Address(INPROC, name=self._name))
        self.keyring = keyring
        self._loop = asyncio.get_running_loop()
        self._on_connection = on_connection
        with _lock:
            if self._name in _listener_by_name:
                raise ListenError.failed(self.address, "the name is taken in this process")
            _listener_by_name[self._name] = self

    def __repr__(self) -> str:
        return f"<Listener at {self.address}>"

    def accept(self, dialled: InprocConnection, role: str, connected: asyncio.Future[None]) -> None:
        """Make our end of a pair, from the dialling thread or our own."""

        def make_our_end() -> None:
            ours = InprocConnection(role, self.address, dialled.local_address)
            ours.join(dialled)
            dialled.join(ours)
            try:
                self._on_connection(ours)
            except BaseException:
                ours.abort()
                raise
            finally:
                dialled._loop.call_soon_threadsafe(_resolve, connected)

        self._loop.call_soon_threadsafe(make_our_end)

    def close(self) -> None:
        """See `Listener.close`."""
        with _lock:
            if _listener_by_name.get(self._name) is self:
                del _listener_by_name[self._name]

    async def wait_closed(self) -> None:
        """See `Listener.wait_closed`; there is nothing to wait for."""


def _resolve(connected: asyncio.Future[None]) -> None:
    if not connected.done():
        connected.set_result(None)


async def dial(address: Address, keyring: Keyring, role: str) -> InprocConnection:
    """Our end of a new pair; the deadline is the caller's.

    Raises:
        ConnectError: nobody in this process listens under that name.
        AuthenticationError: the listener holds another key for `role`, or we hold none.
    """
    with _lock:
        listener = _listener_by_name.get(address.name)
    if listener is None:
        raise ConnectError.refused(str(address), "nobody in this process listens there")
    key, expected = keyring.key(role), listener.keyring.key(role)
    if key is None:
        raise AuthenticationError.missing_key(str(address), role)
    if expected is None or not hmac.compare_digest(key, expected):
        raise AuthenticationError.refused(str(address), "it was made with another token.")
    loop = asyncio.get_running_loop()
    ours = InprocConnection("server", f"{address}#{next(_numbers)}", str(address))
    connected: asyncio.Future[None] = loop.create_future()
    try:
        listener.accept(ours, role, connected)
    except RuntimeError as error:
        raise ConnectError.refused(str(address), "its event loop was closed") from error
    await connected
    return ours
