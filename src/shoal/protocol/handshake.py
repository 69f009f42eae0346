"""Who you are comes first: the mutual challenge that precedes every other byte.

Fixed binary, no parser worth attacking, nothing secret on the wire::

    C->S  "SHL1" version role  nonce_c[32]
    S->C  "SHL1" version CHALLENGE  nonce_s[32]  HMAC(k_role, "S" nonce_c nonce_s binding)
    C->S  HMAC(k_role, "C" nonce_s nonce_c binding)
    S->C  "SHL1" version ACCEPTED
    S->C  "SHL1" version REFUSED  length[u16]  text       (in place of either answer)

A fresh nonce from each side makes a recorded answer worthless (replay); the letter and the order
of the nonces make an answer of one side worthless as the other's (reflection); `binding` is the
digest of the server's certificate, so that nobody can sit between the two.
"""

from __future__ import annotations

import abc
import hashlib
import hmac
import struct
from collections.abc import Mapping
from typing import Final

CLIENT: Final = "client"
WORKER: Final = "worker"
HANDSHAKE_BYTES_MAX: Final = 4096
"""The most that either side accepts before it knows its peer."""
NONCE_NBYTES: Final = 32
VERSION: Final = 1
NO_BINDING: Final = bytes(32)

_MAGIC: Final = b"SHL1"
_CODE_BY_ROLE: Final = {CLIENT: 1, WORKER: 2}
_ROLE_BY_CODE: Final = {1: CLIENT, 2: WORKER}
_CHALLENGE: Final = 0
_REFUSED: Final = 1
_ACCEPTED: Final = 2
_HEAD_NBYTES: Final = 6  # magic, version, and one byte that says what follows
_DIGEST_NBYTES: Final = 32
_TEXT_BYTES_MAX: Final = 512

_HOW_TO_GET_THE_TOKEN: Final = (
    "Both sides need the same token: set SHOAL_TOKEN_FILE (or SHOAL_TOKEN) to the one that the "
    "scheduler was started with, copy its ~/.config/shoal/token, or connect with its "
    "scheduler file."
)


class Keyring:
    """The keys that a process holds, one for each role that it may prove or accept.

    Who holds the token can make every key.  Whoever shall be a worker and nothing else is given
    that key alone (`only`); its tasks have no client then.
    """

    __slots__ = ("_key_by_role",)

    def __init__(self, key_by_role: Mapping[str, bytes]) -> None:
        unknown = [role for role in key_by_role if role not in _CODE_BY_ROLE]
        if unknown:
            raise ValueError(f"a role is {CLIENT!r} or {WORKER!r}, not {unknown[0]!r}")
        self._key_by_role = dict(key_by_role)

    @classmethod
    def from_token(cls, token: bytes) -> Keyring:
        """Both keys.  The token itself is not kept."""
        return cls({role: hmac.digest(token, role.encode(), "sha256") for role in _CODE_BY_ROLE})

    def only(self, role: str) -> Keyring:
        """A keyring with nothing but the key of `role`.  Raises KeyError if there is none."""
        return Keyring({role: self._key_by_role[role]})

    def key(self, role: str) -> bytes | None:
        """The key of `role`, if held."""
        return self._key_by_role.get(role)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that this keyring can prove and accept."""
        return tuple(self._key_by_role)

    def __repr__(self) -> str:
        marks = (
            f"{role}:{hashlib.sha256(key).hexdigest()[:4]}"
            for role, key in self._key_by_role.items()
        )
        return f"<Keyring {' '.join(marks)}>"


def _answer(key: bytes, side: bytes, first: bytes, second: bytes, binding: bytes) -> bytes:
    return hmac.digest(key, side + first + second + binding, "sha256")


def _refusal(text: str) -> bytes:
    encoded = text.encode()[:_TEXT_BYTES_MAX]
    head = _MAGIC + bytes((VERSION, _REFUSED))
    return head + struct.pack("<H", len(encoded)) + encoded


def _check_nonce(nonce: bytes, binding: bytes) -> None:
    if len(nonce) != NONCE_NBYTES or len(binding) != _DIGEST_NBYTES:
        raise ValueError(f"a nonce and a binding have {NONCE_NBYTES} bytes each")


class _Handshake(abc.ABC):
    """What both sides share: what came in, what is expected next, how it ended."""

    __slots__ = ("_binding", "_nonce", "_received", "_received_total", "done", "failure", "role")

    def __init__(self, role: str, nonce: bytes, binding: bytes) -> None:
        _check_nonce(nonce, binding)
        self.role = role
        self.done = False
        self.failure: str | None = None
        self._nonce = nonce
        self._binding = binding
        self._received = b""
        self._received_total = 0

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be received, for better or worse."""
        return self.done or self.failure is not None

    @property
    def leftover(self) -> bytes:
        """What came after the handshake; it belongs to the first frame."""
        return self._received if self.done else b""

    def receive(self, received: bytes) -> bytes:
        """Take what the peer sent; returns what to send back: nothing, an answer, a refusal."""
        self._received += received
        self._received_total += len(received)
        answers = b""
        while not self.ended:
            answer = self._advance()
            if answer is None:
                break
            answers += answer
        return answers

    @abc.abstractmethod
    def _advance(self) -> bytes | None:
        """Handle one thing that the peer said; None if it is not all there yet."""

    def _pull(self, nbytes: int) -> bytes | None:
        """The next `nbytes` received, or None while they are not all there."""
        if len(self._received) < nbytes:
            return None
        pulled, self._received = self._received[:nbytes], self._received[nbytes:]
        return pulled

    def _fail(self, text: str) -> bytes:
        self.failure = text
        self._received = b""
        return b""


class ClientHandshake(_Handshake):
    """The side that dials.  Send what `start` and `receive` return, until `done` or `failure`."""

    __slots__ = ("_key", "_proved")

    def __init__(self, keys: Keyring, role: str, nonce: bytes, binding: bytes = NO_BINDING) -> None:
        """Raises KeyError if `keys` can't prove `role`.  `nonce`: 32 bytes never used before."""
        super().__init__(role, nonce, binding)
        key = keys.key(role)
        if key is None:
            raise KeyError(role)
        self._key = key
        self._proved = False

    def start(self) -> bytes:
        """The first bytes to send."""
        return _MAGIC + bytes((VERSION, _CODE_BY_ROLE[self.role])) + self._nonce

    def _advance(self) -> bytes | None:
        kind = self._kind()
        if kind is None:
            return None
        if kind == _REFUSED:
            return self._refused()
        if kind == _CHALLENGE and not self._proved:
            return self._challenged()
        if kind == _ACCEPTED and self._proved:
            self._pull(_HEAD_NBYTES)
            self.done = True
            return b""
        return self._fail("The server's answers are out of order. Update both sides of shoal.")

    def _kind(self) -> int | None:
        """What the next answer is, once its head has arrived and proved to be of our kind."""
        received = self._received
        if not _MAGIC.startswith(received[:4]):
            self._fail(
                "What answered is not a shoal service. Check host and port, and that no "
                "proxy sits in between."
            )
            return None
        if len(received) < _HEAD_NBYTES:
            return None
        version, kind = received[4], received[5]
        if version != VERSION and kind != _REFUSED:
            self._fail(_other_version(of_service=version, of_caller=VERSION))
            return None
        return kind

    def _challenged(self) -> bytes | None:
        challenge = self._pull(_HEAD_NBYTES + NONCE_NBYTES + _DIGEST_NBYTES)
        if challenge is None:
            return None
        nonce, digest = challenge[6:38], challenge[38:]
        expected = _answer(self._key, b"S", self._nonce, nonce, self._binding)
        if not hmac.compare_digest(digest, expected):
            return self._fail(f"The service does not hold our token. {_HOW_TO_GET_THE_TOKEN}")
        self._proved = True
        return _answer(self._key, b"C", nonce, self._nonce, self._binding)

    def _refused(self) -> bytes | None:
        received = self._received
        if len(received) < 8:
            return None
        nbytes = min(int.from_bytes(received[6:8], "little"), _TEXT_BYTES_MAX)
        if len(received) < 8 + nbytes:
            return None
        return self._fail(received[8 : 8 + nbytes].decode(errors="replace"))


class ServerHandshake(_Handshake):
    """The side that listens.  It speaks only when spoken to, and gives the reason of a refusal."""

    __slots__ = ("_expected", "_keys")

    def __init__(self, keys: Keyring, nonce: bytes, binding: bytes = NO_BINDING) -> None:
        """`nonce`: 32 bytes never used before; `role` is what the client has proved, at last."""
        super().__init__("", nonce, binding)
        self._keys = keys
        self._expected: bytes | None = None  # the client's answer, once challenged

    def start(self) -> bytes:
        """Nothing: the client speaks first."""
        return b""

    def _advance(self) -> bytes | None:
        if self._received_total > HANDSHAKE_BYTES_MAX:
            return self._refuse("Too many bytes before the handshake was done.")
        if self._expected is None:
            return self._greeted()
        return self._answered()

    def _greeted(self) -> bytes | None:
        received = self._received
        if not _MAGIC.startswith(received[:4]):
            return self._refuse("This port speaks the protocol of shoal, and nothing else.")
        if len(received) > 4 and received[4] != VERSION:
            return self._refuse(_other_version(of_service=VERSION, of_caller=received[4]))
        hello = self._pull(_HEAD_NBYTES + NONCE_NBYTES)
        if hello is None:
            return None
        role = _ROLE_BY_CODE.get(hello[5], "")
        key = self._keys.key(role)
        if key is None:
            roles = " or ".join(self._keys.roles)
            return self._refuse(f"This service accepts only the role {roles}. Connect as that.")
        nonce = hello[6:]
        self.role = role
        self._expected = _answer(key, b"C", self._nonce, nonce, self._binding)
        digest = _answer(key, b"S", nonce, self._nonce, self._binding)
        return _MAGIC + bytes((VERSION, _CHALLENGE)) + self._nonce + digest

    def _answered(self) -> bytes | None:
        proof = self._pull(_DIGEST_NBYTES)
        if proof is None:
            return None
        assert self._expected is not None
        if not hmac.compare_digest(proof, self._expected):
            return self._refuse(f"Your proof of the token is wrong. {_HOW_TO_GET_THE_TOKEN}")
        self.done = True
        return _MAGIC + bytes((VERSION, _ACCEPTED))

    def _refuse(self, text: str) -> bytes:
        self.role = ""
        self._fail(text)
        return _refusal(text)


def _other_version(*, of_service: int, of_caller: int) -> str:
    """The same sentence on either side, since a refusal is read on the other."""
    return (
        f"The two sides speak different versions of the protocol: the service {of_service}, "
        f"whoever connects to it {of_caller}. Install the same version of shoal on both."
    )
