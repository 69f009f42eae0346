"""Connections of shoal's own over a third party's comm: frames travel as messages of its.

A message holds all frames that were waiting, each as its body and its buffers; a buffer is marked
as serialised already, so that a comm which keeps such values apart never copies it.  Nothing that
comes is unpickled by the comm: it is the frames' own readers that know what may be in there.
"""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shoal.comms.addresses import Address
from shoal.comms.backends import backend_of
from shoal.comms.ending import DRAINED_NBYTES, Ending
from shoal.comms.errors import AddressError, CommClosedError, ConnectError, ListenError
from shoal.comms.sockets import FLUSH_SECONDS
from shoal.comms.transport import OnClosed, OnConnection, OnMessages
from shoal.compat.comm import handshaking
from shoal.compat.comm.core import Guarded
from shoal.compat.serialising.messages import plain_only
from shoal.compat.serialising.wrappers import Serialized
from shoal.protocol.codec import Decoder, encode
from shoal.protocol.framing import FrameLimits, FrameTooLarge, ProtocolError
from shoal.protocol.handshake import Keyring

if TYPE_CHECKING:
    from typing_extensions import Buffer

_FRAMES: Final = "shoal"


class CarriedConnection(Ending):
    """See `shoal.comms.Connection`.  Two tasks, one for each direction."""

    def __init__(
        self, comm: Any, scheme: str, role: str, decoder: Decoder, limits: FrameLimits | None
    ) -> None:
        """`comm`: its peer has proved `role`; it is ours from now on."""
        super().__init__()
        self.scheme, self.role = scheme, role
        self.peer_address, self.local_address = str(comm.peer_address), str(comm.local_address)
        self._comm = comm
        self._decode = decoder.decode
        self._limits = limits or FrameLimits()
        self._lock = threading.Lock()
        self._unsent: collections.deque[tuple[list[Any], int]] = collections.deque()
        self._news = asyncio.Event()
        self._ours_to_end = False  # `close` or `abort` was called
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._writing = self._loop.create_task(self._write())

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{self.scheme} connection to {self.role} {self.peer_address}, {state}>"

    # ---- sending

    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """See `Connection.send`."""
        body = encode(messages)
        self._limits.check(len(body), 0)
        self._post([body], len(body))

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Buffer]) -> None:
        """See `Connection.send_with_buffers`."""
        body = encode((message,))
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        self._limits.check(len(body), len(views))
        nbytes = sum(map(len, views))
        if nbytes > self._limits.buffer_bytes_max:
            raise FrameTooLarge("bytes of buffers", nbytes, self._limits.buffer_bytes_max)
        self._post([body, *[Serialized({}, [view]) for view in views]], len(body) + nbytes)

    def _post(self, frame: list[Any], nbytes: int) -> None:
        with self._lock:
            if self.closed:
                if self._ours_to_end or self._told:
                    raise CommClosedError.already(self.peer_address)
                return  # the peer was lost, and `on_closed` is about to say so
            self._unsent.append((frame, nbytes))
            self.unsent_nbytes += nbytes
        if threading.get_ident() == self._loop_thread:
            self._news.set()
            return
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            self.closed = True  # the loop has ended, and the connection with it

    async def _write(self) -> None:
        """Send what is waiting, all at once, until the connection is closed and nothing is."""
        try:
            while True:
                with self._lock:
                    waiting = list(self._unsent)
                    self._unsent.clear()
                    self._news.clear()
                if waiting:
                    await self._comm.write({_FRAMES: [frame for frame, _ in waiting]})
                    self._sent(sum([nbytes for _, nbytes in waiting]))
                elif self.closed:
                    break
                else:
                    await self._news.wait()
            await self._comm.close()
            self._end(self._failure)
        except OSError as error:
            self._end(CommClosedError.lost(self.peer_address, str(error)))
        except Exception as error:  # a third party's comm may raise what it likes
            self._end(error)

    def _sent(self, nbytes: int) -> None:
        with self._lock:
            self.unsent_nbytes -= nbytes
        if self.unsent_nbytes <= DRAINED_NBYTES:
            self._wake_drained()

    # ---- receiving

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """See `Connection.start`."""
        self._on_messages, self._on_closed = on_messages, on_closed
        if self._ended:
            self._loop.call_soon(self._tell)
            return
        self._reading = self._loop.create_task(self._read())

    async def _read(self) -> None:
        try:
            with plain_only():
                while not self.closed:
                    self._deliver(await self._comm.read())
        except CommClosedError:
            self._end(None)  # between two messages the peer closed, or died: it looks the same
        except OSError as error:
            self._end(CommClosedError.lost(self.peer_address, str(error)))
        except ProtocolError as error:
            self._turn_away(error)
        except Exception as error:  # of the comm's or the receiver's making
            self._loop.call_exception_handler(
                {"message": f"The receiver of {self!r} raised", "exception": error}
            )
            self._end(error)

    def _deliver(self, said: Any) -> None:
        """Hand over the frames of one message: those without buffers together."""
        batch: list[msgspec.Struct] = []
        for body, *marked in _frames_of(said):
            self._limits.check(len(body), len(marked))
            try:
                messages = self._decode(body)
            except ProtocolError:
                self._hand_over(batch, [])  # what came before it is good
                raise
            if marked:
                self._hand_over(batch, [])
                batch = []
                self._hand_over(messages, [_buffer_of(one) for one in marked])
            else:
                batch += messages
        self._hand_over(batch, [])

    def _hand_over(self, messages: list[msgspec.Struct], buffers: list[Any]) -> None:
        if messages and not self.closed:
            assert self._on_messages is not None
            self._on_messages(messages, buffers)

    # ---- ending

    def close(self) -> None:
        """See `Connection.close`."""
        if self.closed:
            return
        self.closed = self._ours_to_end = True
        self._news.set()
        unsent = CommClosedError.lost(self.peer_address, "it did not take what was queued")
        self._deadline = self._loop.call_later(FLUSH_SECONDS, self._end, unsent)

    def abort(self) -> None:
        """See `Connection.abort`."""
        self._ours_to_end = True
        self._end(None)

    def _end(self, reason: Exception | None) -> None:
        if self._ended:
            return
        self.closed = self._ended = True
        self._reason = reason
        self._finished.set_result(None)
        if self._deadline is not None:
            self._deadline.cancel()
        with self._lock:
            self._unsent.clear()
            self.unsent_nbytes = 0
        self._wake_drained()
        current = asyncio.current_task()
        for task in (self._reading, self._writing):
            if task is not None and task is not current:
                task.cancel()
        self._comm.abort()
        self._loop.call_soon(self._tell)


def _frames_of(said: Any) -> Sequence[Any]:
    frames = said.get(_FRAMES) if isinstance(said, dict) else None
    if not isinstance(frames, list | tuple):
        raise ProtocolError("it said something that is no frame")
    return frames


def _buffer_of(marked: Any) -> Any:
    """The memory of a buffer, however many pieces the comm made of it."""
    if not isinstance(marked, Serialized):
        raise ProtocolError("one of its buffers is none: let its comms heed `deserialize=False`")
    pieces = [memoryview(piece).cast("B") for piece in marked.frames]
    return pieces[0] if len(pieces) == 1 else memoryview(bytearray(b"".join(pieces)))


def _backend(address: Address) -> Any:
    """Who carries an address's scheme; raises AddressError if that is not for a cluster."""
    backend = backend_of(address.scheme)
    if not getattr(backend, "for_clusters", True):
        raise AddressError(
            str(address), "its scheme is for comms of programs' own; a cluster's come later"
        )
    return backend


async def dial(
    address: Address, keyring: Keyring, role: str, decoder: Decoder, limits: FrameLimits | None
) -> CarriedConnection:
    """One attempt to reach `address` by its scheme's backend; the deadline is the caller's.

    Raises:
        AuthenticationError: the two don't hold the same token.
        ConnectError: who answers there does not make sense.
        OSError: nobody answers there.
    """
    connector = _backend(address).get_connector()
    comm = await connector.connect(address.name, deserialize=False)
    try:
        await handshaking.greet(comm, str(address), keyring=keyring, role=role)
    except OSError:
        comm.abort()
        raise
    except Exception as error:  # who knows what answers there
        comm.abort()
        raise ConnectError.refused(str(address), str(error)) from error
    except BaseException:
        comm.abort()
        raise
    return CarriedConnection(comm, address.scheme, "server", decoder, limits)


class CarriedListening:
    """See `shoal.comms.Listener`."""

    def __init__(self, inner: Guarded) -> None:
        """`inner` has been started."""
        self._inner = inner
        self.address = inner.contact_address

    def close(self) -> None:
        """See `Listener.close`."""
        self._inner.stop()

    async def wait_closed(self) -> None:
        """See `Listener.wait_closed`; the backend's own affairs aren't waited for."""


async def listen(
    address: Address,
    keyring: Keyring,
    decoder_for_role: Callable[[str], Decoder],
    on_connection: OnConnection,
    limits: FrameLimits,
) -> CarriedListening:
    """Accept whoever comes by a third party's scheme and proves a role that `keyring` knows.

    Raises:
        ListenError: the backend can't listen there.
    """
    backend = _backend(address)

    async def hand_on(comm: Any) -> None:
        role = handshaking.proved_role(comm)
        try:
            on_connection(
                CarriedConnection(comm, address.scheme, role, decoder_for_role(role), limits)
            )
        except Exception as error:
            comm.abort()
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{inner!r} could not hand on {comm!r}", "exception": error}
            )

    inner = Guarded(backend, address.name, hand_on, False, {}, keyring=keyring)
    try:
        await inner.start()
    except OSError as error:
        raise ListenError.failed(str(address), str(error)) from error
    return CarriedListening(inner)
