"""Who the peer is, and what both can: the first words on a comm, before any message of a program.

A connection of ours has had its peer prove a token before it was a comm.  A third party's comm has
not: there the same proof goes to and fro in messages, whose pickles, if they had any, are not read.
Then each tells the other its versions.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from typing import Any, Final

from shoal import config
from shoal.comms.admission import Admission, AdmissionLimits, RateLimitedLog
from shoal.comms.authority import (
    Publication,
    environment_token,
    new_token,
    publish_token,
    user_token,
)
from shoal.comms.errors import AuthenticationError, ProtocolError
from shoal.compat.addresses import get_address_host
from shoal.compat.comm.keys import keyring_for
from shoal.compat.serialising.messages import plain_only
from shoal.protocol.handshake import (
    CLIENT,
    NONCE_NBYTES,
    ClientHandshake,
    Keyring,
    ServerHandshake,
)

HANDSHAKE_SECONDS: Final = 30.0
"""For proof and introductions together; the time for a connection itself is a setting."""
STRANGERS: Final = AdmissionLimits()
"""How many at once may not have proved themselves yet, at one listener and of one host."""
_PROOF: Final = "shoal-proof"

_role_by_comm: Final[weakref.WeakKeyDictionary[Any, str]] = weakref.WeakKeyDictionary()
_keyring_by_listener: Final[weakref.WeakKeyDictionary[Any, Keyring]] = weakref.WeakKeyDictionary()

_door_by_listener: Final[weakref.WeakKeyDictionary[Any, _Door]] = weakref.WeakKeyDictionary()
_end_by_listener: Final[weakref.WeakKeyDictionary[Any, weakref.finalize[..., Any]]] = (
    weakref.WeakKeyDictionary()
)


class Access:
    """The token that a listener asks for, and that this user's other processes find."""

    def __init__(self) -> None:
        """The token of the environment or the user; a new one if there is none."""
        self.token = environment_token() or user_token() or new_token()
        self.keyring = Keyring.from_token(self.token)
        self._publication: Publication | None = None

    def publish(self, address: str) -> None:
        """Tell those who may know it that `address` asks for this token."""
        if self._publication is None:
            self._publication = publish_token(address, self.token)

    def withdraw(self) -> None:
        """Nobody listens there any more."""
        if self._publication is not None:
            self._publication.withdraw()
            self._publication = None


class _Door:
    """Those who stand at one listener and have not proved who they are."""

    def __init__(self) -> None:
        self._admission = Admission(STRANGERS)
        self._log = RateLimitedLog()

    async def let_in(self, comm: Any, host: str, keyring: Keyring) -> None:
        """Have one prove who it is; raises ProtocolError or OSError."""
        if not self._admission.enter(host):
            raise ProtocolError("too many others have not proved who they are either")
        try:
            async with asyncio.timeout(config.read(config.Comm).handshake_seconds):
                await have_proved(comm, keyring)
        except TimeoutError as error:
            raise ProtocolError("its handshake took too long") from error
        finally:
            self._admission.leave(host)

    def say_no(self, comm: Any, host: str, why: str) -> None:
        """Tell the log, but not again and again."""
        now = asyncio.get_running_loop().time()
        told = comm.local_address, comm.peer_address, why
        self._log.warning(now, host, "Not let in at %s: %s, because %s", *told)


def asks_for(listener: Any, keyring: Keyring) -> None:
    """From now on a third party's `listener` lets in those who hold one of these keys."""
    _keyring_by_listener[listener] = keyring


def keyring_of(listener: Any) -> Keyring:
    """What a listener asks for; one that nobody gave a keyring asks for this user's token."""
    keyring = _keyring_by_listener.get(listener)
    if keyring is None:
        access = Access()
        access.publish(listener.contact_address)
        keyring = _keyring_by_listener[listener] = access.keyring
        _end_by_listener[listener] = weakref.finalize(listener, access.withdraw)
    return keyring


def forget(listener: Any) -> None:
    """It has stopped: what `keyring_of` told this user's processes of it is no longer so."""
    end = _end_by_listener.pop(listener, None)
    if end is not None:
        end()


def has_proved(comm: Any, role: str) -> None:
    """The peer of `comm` holds the key of `role`."""
    _role_by_comm[comm] = role


def proved_role(comm: Any) -> str:
    """What the peer has proved; empty: nothing yet."""
    return _role_by_comm.get(comm, "")


async def prove(comm: Any, keyring: Keyring, role: str, address: str) -> None:
    """Prove `role` to whoever accepted `comm`, and have it prove that it holds our token.

    Raises:
        AuthenticationError: one refused the other.
        OSError: the connection broke.
    """
    if keyring.key(role) is None:
        raise AuthenticationError.missing_key(address, role)
    handshake = ClientHandshake(keyring, role, secrets.token_bytes(NONCE_NBYTES))
    answer = handshake.start()
    while True:
        if answer:
            await comm.write({_PROOF: answer})
        if handshake.failure is not None:
            raise AuthenticationError.refused(address, handshake.failure)
        if handshake.done:
            has_proved(comm, "server")
            return
        answer = handshake.receive(await _heard(comm))


async def have_proved(comm: Any, keyring: Keyring) -> None:
    """Have the peer of a comm that was accepted prove who it is, and prove ourselves.

    Raises:
        ProtocolError: it could not.
        OSError: the connection broke.
    """
    handshake = ServerHandshake(keyring, secrets.token_bytes(NONCE_NBYTES))
    while not handshake.ended:
        answer = handshake.receive(await _heard(comm))
        if answer:
            await comm.write({_PROOF: answer})
    if handshake.failure is not None:
        raise ProtocolError(f"it was told: {handshake.failure}")
    has_proved(comm, handshake.role)


async def _heard(comm: Any) -> bytes:
    with plain_only():
        said = await comm.read()
    proof = said.get(_PROOF) if isinstance(said, dict) else None
    if not isinstance(proof, bytes | bytearray | memoryview):
        raise ProtocolError("it said something else before it had proved who it is")
    return bytes(proof)


async def introduce(comm: Any, overrides: dict[str, Any] | None, *, dialled: bool) -> None:
    """Tell the peer what we can, and hear what it can; both then do what both can.

    `dialled`: whether we did, and so speak first: when we are done, so is the other side, and its
    listener may stop at once.  What it says is plain: a worker's key is no leave to run code here.

    Raises:
        OSError: the connection broke.
        ProtocolError: it said something else.
        ValueError: the two have nothing in common.
    """
    ours = {**comm.handshake_info(), **(overrides or {})}
    if dialled:
        await comm.write(ours)
    with plain_only():
        theirs = await comm.read()
    if not isinstance(theirs, dict):
        raise ProtocolError("it did not say what it can, which comes first")
    if not dialled:
        await comm.write(ours)
    comm.remote_info = {**theirs, "address": comm.peer_address}
    comm.local_info = {**ours, "address": comm.local_address}
    comm.handshake_options = comm.handshake_configuration(ours, theirs)


async def greet(
    comm: Any,
    address: str,
    overrides: dict[str, Any] | None = None,
    *,
    keyring: Keyring | None = None,
    role: str = CLIENT,
) -> None:
    """The first words of the side that dialled.

    Raises:
        AuthenticationError: see `prove`.
        OSError: the connection broke, or the peer did not answer in time.
        ProtocolError, ValueError: see `introduce`.
    """
    async with asyncio.timeout(HANDSHAKE_SECONDS):
        if not proved_role(comm):
            await prove(comm, keyring or keyring_for(address), role, address)
        await introduce(comm, overrides, dialled=True)


async def welcome(comm: Any, overrides: dict[str, Any] | None = None) -> None:
    """The first words of the side that accepted, once the peer has proved who it is.

    Raises:
        OSError: the connection broke, or the peer said nothing in time.
        ProtocolError, ValueError: see `introduce`.
    """
    assert proved_role(comm)
    async with asyncio.timeout(HANDSHAKE_SECONDS):
        await introduce(comm, overrides, dialled=False)


async def let_in(listener: Any, comm: Any, overrides: dict[str, Any] | None = None) -> None:
    """As `welcome`, for a comm that `listener` has just accepted, with one line in the log if not.

    Strangers have as long, and are as few at once, as at a listener on sockets.

    Raises:
        ProtocolError: the peer could not prove who it is, or there are too many who have not yet.
        OSError: the connection broke, or the peer said nothing in time.
    """
    if proved_role(comm):
        await welcome(comm, overrides)
        return
    door = _door_by_listener.get(listener)
    if door is None:
        door = _door_by_listener[listener] = _Door()
    host = _host_of(comm)
    try:
        await door.let_in(comm, host, keyring_of(listener))
    except Exception as error:  # who knows what a stranger sends
        door.say_no(comm, host, str(error))
        raise
    await welcome(comm, overrides)


def _host_of(comm: Any) -> str:
    """By which a stranger is counted; its whole address where its scheme has no hosts."""
    try:
        return get_address_host(str(comm.peer_address))
    except Exception:  # a third party's address, and perhaps its error
        return str(comm.peer_address)
