"""`distributed.comm.core`: what a comm, a connector and a listener are; `connect` and `listen`."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pickle
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, ClassVar, Final

import dask.config
from dask.utils import parse_timedelta

from shoal.comms.backends import backend_of
from shoal.comms.errors import AuthenticationError, CommClosedError, ConnectError
from shoal.compat.addresses import get_address_host, parse_address
from shoal.compat.comm import handshaking
from shoal.compat.comm.errors import FatalCommClosedError, NothingInCommon
from shoal.compat.serialising.compressing import get_compression_settings
from shoal.protocol.handshake import Keyring

logger = logging.getLogger("shoal.comms")

PAUSE_SECONDS_MIN: Final = 0.01
PAUSE_SECONDS_MAX: Final = 1.0


class Comm(ABC):
    """A way to one peer, message by message: one at a time is written, and one is read."""

    _instances: ClassVar[weakref.WeakSet[Comm]] = weakref.WeakSet()

    name: str | None
    local_info: dict[str, Any]
    """What we told the peer when we met, and our address."""
    remote_info: dict[str, Any]
    """What it told us, and its address."""
    handshake_options: dict[str, Any]
    """What both can do."""
    deserialize: bool
    """Whether values that were marked to be serialised are read."""
    allow_offload: bool
    """Whether large messages may be written and read in a thread."""

    def __init__(self, deserialize: bool = True) -> None:
        self._instances.add(self)
        self.allow_offload = True
        self.name = None
        self.local_info = {}
        self.remote_info = {}
        self.handshake_options = {}
        self.deserialize = deserialize

    @abstractmethod
    async def read(self, deserializers: Any = None) -> Any:
        """The next message; raises CommClosedError if there is none.

        `deserializers`: families of serialisation that may be used; None: all.
        """

    @abstractmethod
    async def write(self, msg: Any, serializers: Any = None, on_error: str | None = None) -> Any:
        """Send a message; how many bytes that was, or 1 where none are counted.

        Args:
            serializers: families for values that are marked, in order.
            on_error: "message": what can't be serialised arrives as an error; "raise": is one here.

        Raises:
            CommClosedError: the peer, or this end, has gone.
        """

    @abstractmethod
    async def close(self) -> None:
        """Send what is under way, and end."""

    @abstractmethod
    def abort(self) -> None:
        """End at once."""

    @abstractmethod
    def closed(self) -> bool:
        """Whether it has ended."""

    @property
    @abstractmethod
    def local_address(self) -> str:
        """Our own end."""

    @property
    @abstractmethod
    def peer_address(self) -> str:
        """The other."""

    @property
    def same_host(self) -> bool:
        """Whether both ends are on one host, as far as their addresses tell."""
        return get_address_host(self.local_address) == get_address_host(self.peer_address)

    @property
    def extra_info(self) -> dict[str, Any]:
        """What only this kind of comm knows."""
        return {}

    def handshake_info(self) -> dict[str, Any]:
        """What we tell the peer when we meet."""
        setting = (
            None if self.same_host else get_compression_settings("distributed.comm.compression")
        )
        return {
            "compression": setting,
            "python": tuple(sys.version_info)[:3],
            "pickle-protocol": pickle.HIGHEST_PROTOCOL,
        }

    @staticmethod
    def handshake_configuration(local: dict[str, Any], remote: dict[str, Any]) -> dict[str, Any]:
        """What both can do, of what each has told.

        Raises:
            NothingInCommon: one of them did not say (a ValueError).
        """
        try:
            protocol = min(local["pickle-protocol"], remote["pickle-protocol"])
        except KeyError as missing:
            raise NothingInCommon(str(missing.args[0])) from missing
        ours, theirs = local.get("compression"), remote.get("compression")
        return {"pickle-protocol": protocol, "compression": ours if ours == theirs else None}

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        state = " (closed)" if self.closed() else ""
        ends = f"local={self.local_address} remote={self.peer_address}"
        return f"<{type(self).__name__}{state}{name} {ends}>"


class Listener(ABC):
    """Accepts peers at an address, once started."""

    @abstractmethod
    async def start(self) -> None:
        """Begin to accept."""

    @abstractmethod
    def stop(self) -> None:
        """Accept nobody any more; who is there already stays."""

    @property
    @abstractmethod
    def listen_address(self) -> str:
        """What it is bound to."""

    @property
    @abstractmethod
    def contact_address(self) -> str:
        """Where others reach it."""

    async def __aenter__(self) -> Listener:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *args: object) -> None:
        """Stop."""
        self.stop()

    def __await__(self) -> Generator[Any, None, Listener]:
        """Start."""
        yield from self.start().__await__()
        return self

    async def on_connection(
        self, comm: Comm, handshake_overrides: dict[str, Any] | None = None
    ) -> None:
        """Have a peer that was accepted prove who it is, and get to know it.

        Raises:
            ProtocolError: it could not.
            OSError: it went, or said nothing in time.
        """
        await handshaking.let_in(self, comm, handshake_overrides)


class BaseListener(Listener):
    """Knows who is just getting acquainted, and drops them as it stops."""

    def __init__(self) -> None:
        self._handshaking: dict[Comm, None] = {}

    async def on_connection(
        self, comm: Comm, handshake_overrides: dict[str, Any] | None = None
    ) -> None:
        """See `Listener.on_connection`; the comm is aborted if that fails."""
        self._handshaking[comm] = None
        try:
            await super().on_connection(comm, handshake_overrides)
        except Exception as error:  # who knows what a stranger sends
            comm.abort()
            raise CommClosedError(f"Comm {comm!r} closed: {error}") from error
        except BaseException:
            comm.abort()
            raise
        finally:
            self._handshaking.pop(comm, None)

    def abort_handshaking_comms(self) -> None:
        """Drop those who have not been let in yet."""
        waiting, self._handshaking = self._handshaking, {}
        for comm in waiting:
            comm.abort()


class Connector(ABC):
    """Makes comms to addresses of one scheme."""

    @abstractmethod
    async def connect(self, address: str, deserialize: bool = True) -> Comm:
        """A comm to `address`, which has no scheme.  Raises OSError."""


async def connect(
    addr: str,
    timeout: float | str | None = None,
    deserialize: bool = True,
    handshake_overrides: dict[str, Any] | None = None,
    **connection_args: Any,
) -> Comm:
    """A comm to whoever listens at `addr`; while nobody does, it is tried again.

    Args:
        timeout: for all attempts together; None: the setting `distributed.comm.timeouts.connect`.
            Once somebody answers, the two have 30 s to get acquainted.
        deserialize: False leaves values that were marked to be serialised as they are.
        handshake_overrides: what to tell the peer instead of, or beside, what we can.
        connection_args: for the scheme's connector.

    Raises:
        UnknownScheme: nobody carries the scheme (a ValueError).
        ConnectError: nobody answers in time (an OSError).
        AuthenticationError: the two don't hold the same token (an OSError).
    """
    if timeout is None:
        timeout = dask.config.get("distributed.comm.timeouts.connect", "30s")
    seconds = float(parse_timedelta(timeout, default="seconds"))
    scheme, location = parse_address(addr)
    backend = backend_of(scheme)
    connector = backend.get_connector()
    give_up_at = monotonic() + seconds
    pause_seconds, last = PAUSE_SECONDS_MIN, ""
    while True:
        left = give_up_at - monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)) as deadline:
                comm: Comm = await connector.connect(
                    location, deserialize=deserialize, **connection_args
                )
            break
        except (AuthenticationError, FatalCommClosedError):
            raise
        except OSError as error:
            if deadline.expired():
                raise ConnectError.slow(addr, seconds, last) from None
            last = str(error)
        left = give_up_at - monotonic()
        if left <= 0:
            raise ConnectError.slow(addr, seconds, last)
        await asyncio.sleep(min(left, pause_seconds))
        pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
    await _greet(comm, addr, handshake_overrides)
    return comm


async def _greet(comm: Comm, addr: str, overrides: dict[str, Any] | None) -> None:
    """Get acquainted, or abort."""
    try:
        await handshaking.greet(comm, addr, overrides)
    except TimeoutError:
        comm.abort()
        raise ConnectError.slow(addr, handshaking.HANDSHAKE_SECONDS, "it did not answer") from None
    except BaseException:
        comm.abort()
        raise


def listen(
    addr: str, handle_comm: Callable[[Comm], Any], deserialize: bool = True, **kwargs: Any
) -> Listener:
    """A listener at `addr`; await it, or enter it, for it to start.

    Whoever connects must hold the token that the listener asks for: that of the environment or of
    the user, else one that it makes, which processes of this user on this host find by themselves.

    Args:
        handle_comm: called with each comm, in a task of its own if it is a coroutine function.
        deserialize: as for `connect`.
        kwargs: for the scheme's listener.

    Raises:
        UnknownScheme: nobody carries the scheme (a ValueError).
    """
    scheme, location = parse_address(addr)
    backend = backend_of(scheme)
    if getattr(backend, "stands_on", ""):
        return backend.get_listener(location, handle_comm, deserialize, **kwargs)  # type: ignore[no-any-return]
    return Guarded(backend, location, handle_comm, deserialize, kwargs)


async def handled(listener: Listener, handle_comm: Callable[[Comm], Any], comm: Comm) -> None:
    """Let a program have a comm; its errors are logged, and end the comm."""
    try:
        result = handle_comm(comm)
        if inspect.isawaitable(result):
            await result
    except CommClosedError:
        return  # the peer went, which is its right
    except Exception:
        logger.exception("The handler of %r failed on %r", listener, comm)
        comm.abort()


class Guarded(Listener):
    """A third party's listener: nobody reaches the handler who has not proved to hold the token."""

    def __init__(
        self,
        backend: Any,
        location: str,
        handle_comm: Callable[[Comm], Any],
        deserialize: bool,
        kwargs: dict[str, Any],
        *,
        keyring: Keyring | None = None,
    ) -> None:
        """`keyring`: what it asks for, and has been published; None: this user's token."""
        self._handle_comm = handle_comm
        self._access = handshaking.Access() if keyring is None else None
        self._strangers: dict[Comm, None] = {}  # that the third party's listener let pass
        self._stopped = False
        self._inner = backend.get_listener(location, self._handle, deserialize, **kwargs)
        asked = keyring if self._access is None else self._access.keyring
        assert asked is not None
        handshaking.asks_for(self._inner, asked)

    def __repr__(self) -> str:
        return repr(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def _handle(self, comm: Comm) -> None:
        """A comm that the third party's listener accepted, and perhaps had prove itself."""
        if not handshaking.proved_role(comm):
            self._strangers[comm] = None
            try:
                await handshaking.let_in(self._inner, comm)
            except Exception:  # the log has it
                comm.abort()
                return
            except BaseException:
                comm.abort()
                raise
            finally:
                self._strangers.pop(comm, None)
        if self._stopped:
            comm.abort()
            return
        await handled(self, self._handle_comm, comm)

    async def start(self) -> None:
        """Begin to accept, and let this user's other processes know the token."""
        await self._inner.start()
        if self._access is not None:
            self._access.publish(self._inner.contact_address)

    def stop(self) -> None:
        """Accept nobody any more; who has not proved himself yet is dropped."""
        self._stopped = True
        self._inner.stop()
        if self._access is not None:
            self._access.withdraw()
        for stranger in list(self._strangers):
            stranger.abort()

    @property
    def listen_address(self) -> str:
        """What it is bound to."""
        return str(self._inner.listen_address)

    @property
    def contact_address(self) -> str:
        """Where others reach it."""
        return str(self._inner.contact_address)
