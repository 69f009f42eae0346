"""What a user may be told by this layer: what happened, why, and what to do."""

from __future__ import annotations

from shoal.protocol.framing import FrameTooLarge, ProtocolError

__all__ = [
    "AddressError",
    "AuthenticationError",
    "CallTimeoutError",
    "CommClosedError",
    "ConnectError",
    "FrameTooLarge",
    "ListenError",
    "OutcomeUnknown",
    "ProtocolError",
    "TokenFileError",
    "UnknownScheme",
]


class CommClosedError(OSError):
    """A connection ended while something was still to be said on it, or answered."""

    @classmethod
    def lost(cls, peer_address: str, why: str) -> CommClosedError:
        """The peer vanished, or the network did."""
        return cls(
            f"The connection to {peer_address} was lost: {why}. Its process may have died or been "
            "stopped, or the network is down; see the log of that process."
        )

    @classmethod
    def already(cls, peer_address: str) -> CommClosedError:
        """Something was to be sent on a connection that has ended."""
        return cls(
            f"The connection to {peer_address} is closed, so nothing can be sent on it any more. "
            "Make a new one."
        )

    @classmethod
    def not_found_again(cls, address: str, seconds: float, why: str) -> CommClosedError:
        """A scheduler was lost, and looked for in vain."""
        return cls(
            f"The scheduler at {address} was lost, and none has let this client in again within "
            f"{seconds:g} s (the setting client.reconnect-seconds). The last that was heard: {why}"
        )


class OutcomeUnknown(CommClosedError):
    """A connection ended while an answer was awaited; another one is being looked for."""

    @classmethod
    def of_call(cls, peer_address: str, why: str) -> OutcomeUnknown:
        """Whoever was asked may have done it, or not."""
        return cls(
            f"The connection to {peer_address} was lost before it had answered: {why}. So it is "
            "not known whether it has done what it was asked to. Another connection is looked "
            "for: look what became of it, and ask again if need be."
        )


class ConnectError(OSError):
    """No connection could be made to an address."""

    @classmethod
    def refused(cls, address: str, why: str) -> ConnectError:
        """Nobody answers there."""
        return cls(
            f"Cannot connect to {address}: {why}. Check that the process is running, that the "
            "address is the one it printed, and that no firewall is in between."
        )

    @classmethod
    def slow(cls, address: str, timeout_seconds: float, why: str = "") -> ConnectError:
        """Somebody may be there, but the deadline passed first."""
        last = f" (last attempt: {why})" if why else ""
        return cls(
            f"Timed out trying to connect to {address} after {timeout_seconds:g} s{last}. It "
            "covers name lookup, connection and handshake; if the other side is only slow, "
            "raise the timeout."
        )


class ListenError(OSError):
    """An address can't be listened on."""

    @classmethod
    def failed(cls, address: str, why: str) -> ListenError:
        """The system refused."""
        return cls(
            f"Cannot listen on {address}: {why}. Choose another port, or port 0 to take any free "
            "one, and a host or interface that this machine has."
        )


class CallTimeoutError(TimeoutError):
    """A reply did not come before its deadline."""

    def __init__(self, what: str, peer_address: str, timeout_seconds: float) -> None:
        super().__init__()  # an OSError would take two arguments for errno and strerror
        self.what, self.peer_address = what, peer_address
        self.timeout_seconds = timeout_seconds

    def __reduce__(self) -> tuple[type[CallTimeoutError], tuple[str, str, float]]:
        return type(self), (self.what, self.peer_address, self.timeout_seconds)

    def __str__(self) -> str:
        return (
            f"{self.peer_address} did not answer {self.what} within {self.timeout_seconds:g} s. "
            "It may be stopped, overloaded, or holding its interpreter in a long call; see its "
            "log, or allow more time."
        )


class AuthenticationError(PermissionError):
    """The two sides could not prove to each other that they hold the same token."""

    @classmethod
    def refused(cls, address: str, why: str) -> AuthenticationError:
        """`why` is the peer's or our own sentence, remedy included."""
        return cls(f"Not let in at {address}: {why}")

    @classmethod
    def missing_key(cls, address: str, role: str) -> AuthenticationError:
        """We hold no key for the role that we should prove."""
        return cls(
            f"Cannot connect to {address} as {role}: this process holds no key for that role. "
            "Give it the token: set SHOAL_TOKEN_FILE, or start it with the scheduler file."
        )


class TokenFileError(PermissionError):
    """A file that holds a token is not safe to use."""

    @classmethod
    def unsafe(cls, path: str, why: str) -> TokenFileError:
        """Others could have read or written it."""
        return cls(
            f"The token in {path} is not used: {why}. Make it yours alone (chmod 600, and 700 for "
            "its directory) if you trust what is in it; otherwise delete it."
        )


class AddressError(ValueError):
    """A text is not an address that this layer can listen on or connect to."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address, self.why = address, why

    def __str__(self) -> str:
        return (
            f"{self.address!r} is not a usable address: {self.why}. Write tcp://host:port, "
            "unix:///path, unix://@name or inproc://name."
        )


class UnknownScheme(ValueError):
    """An address begins with a scheme that nobody carries here."""

    def __init__(self, scheme: str, known: list[str]) -> None:
        super().__init__(scheme, known)
        self.scheme, self.known = scheme, known

    def __str__(self) -> str:
        return (
            f"unknown address scheme {self.scheme!r} (known schemes: {self.known}). Install the "
            "package that carries it, which says so by an entry point of the group "
            "`distributed.comm.backends`, or put its backend into distributed.comm.backends."
        )
