"""Who knows the token of an address, so that nothing needs to be configured on one host.

A token is looked for, in this order, in: services of this process; the file that a service of this
user on this host has left for its port; ``SHOAL_TOKEN_FILE``; ``SHOAL_TOKEN`` (which is removed
from the environment, so that users' code doesn't inherit it); ``~/.config/shoal/token``.  Tokens
never appear in a command line, a log or a ``repr``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from shoal.comms.addresses import INPROC, TCP, Address, is_on_this_host, parse_address
from shoal.comms.errors import AuthenticationError, TokenFileError
from shoal.comms.private import (
    TOKEN_BYTES_MAX,
    make_private_directory,
    read_private,
    write_private,
)


def new_token() -> bytes:
    """256 random bits, as hexadecimal text that fits files and variables."""
    return secrets.token_hex(32).encode()


class Publication:
    """The entry of one service; `withdraw` when it closes."""

    __slots__ = ("_address", "_authority", "_path", "_text")

    def __init__(self, authority: Authority, address: str, path: Path | None, text: bytes) -> None:
        self._authority, self._address, self._path, self._text = authority, address, path, text

    def __repr__(self) -> str:
        return f"<Publication of the token for {self._address}>"

    def withdraw(self) -> None:
        """Forget the token, and remove the file unless a successor has replaced it."""
        self._authority.forget(self._address)
        path, self._path = self._path, None
        if path is not None:
            with contextlib.suppress(OSError, TokenFileError):
                if read_private(path) == self._text:
                    path.unlink()


class Authority:
    """The places where tokens are kept, below one environment."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """`environ`: instead of the process's; tells home and runtime directories, too."""
        self._environ = os.environ if environ is None else environ
        self._lock = threading.Lock()
        self._token_by_address: dict[str, bytes] = {}
        self._token_of_variable: bytes | None = None

    def publish(self, address: str, token: bytes, *, file: bool = True) -> Publication:
        """Tell this process, and by a 0600 file this user's others, the token of `address`.

        Where no safe directory can be had, there is only the process; nothing fails.
        """
        canonical = str(parse_address(address))
        with self._lock:
            self._token_by_address[canonical] = token
        path = self._write_for(parse_address(address), token) if file else None
        return Publication(self, canonical, path, token)

    def of_services_here(self) -> bytes | None:
        """The token of all services of this process; None if they have several, or are none."""
        with self._lock:
            tokens = dict.fromkeys(self._token_by_address.values())
        return next(iter(tokens)) if len(tokens) == 1 else None

    def forget(self, address: str) -> None:
        """This process no longer knows the token of `address`."""
        with self._lock:
            self._token_by_address.pop(address, None)

    def published(self, address: str) -> bytes | None:
        """What a service has told of `address` itself.  Raises as `find`."""
        parsed = parse_address(address)
        with self._lock:
            token = self._token_by_address.get(str(parsed))
        return token or self._find_file(parsed)

    def find(self, address: str) -> bytes | None:
        """The token for `address`; None if nobody here knows one.

        Raises:
            TokenFileError: a file that would decide is readable by others, or not ours.
        """
        return self.published(address) or self.of_environment() or self.of_user()

    def of_environment(self) -> bytes | None:
        """The token of ``SHOAL_TOKEN_FILE`` or ``SHOAL_TOKEN``.

        The file was named on purpose and is often a mounted secret of another owner, so neither
        owner nor mode are checked.  Raises TokenFileError if it can't be read.
        """
        with self._lock:
            secret = self._environ.pop("SHOAL_TOKEN", None)
            if secret:
                self._token_of_variable = secret.strip().encode()
        path = self._environ.get("SHOAL_TOKEN_FILE")
        if path:
            try:
                with open(path, "rb") as opened:
                    return opened.read(TOKEN_BYTES_MAX).strip()
            except OSError as error:
                raise TokenFileError.unsafe(path, f"it can't be read ({error.strerror})") from error
        return self._token_of_variable

    def of_user(self, *, create: bool = False) -> bytes | None:
        """The token in ``~/.config/shoal/token``, made now if there is none and `create`."""
        config = self._environ.get("XDG_CONFIG_HOME") or str(self._home() / ".config")
        path = Path(config) / "shoal" / "token"
        try:
            return read_private(path)
        except FileNotFoundError:
            if not create:
                return None
        token = new_token()
        make_private_directory(path.parent)
        try:
            write_private(path, token, exclusive=True)
        except FileExistsError:
            return read_private(path)  # another process was faster
        return token

    def _find_file(self, address: Address) -> bytes | None:
        if address.scheme == INPROC or not is_on_this_host(address):
            return None
        for directory in self._directories():
            try:
                return read_private(directory / _file_name(address))
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None

    def _write_for(self, address: Address, token: bytes) -> Path | None:
        if address.scheme == INPROC:
            return None
        for directory in self._directories():
            path = directory / _file_name(address)
            try:
                make_private_directory(directory)
                write_private(path, token)
            except OSError:
                continue
            return path
        return None

    def _directories(self) -> list[Path]:
        """Where files for ports may be, the best first."""
        state = self._environ.get("XDG_STATE_HOME") or str(self._home() / ".local" / "state")
        runtime = self._environ.get("XDG_RUNTIME_DIR")
        directories = [Path(state) / "shoal"]
        if runtime and os.path.isdir(runtime):
            directories.insert(0, Path(runtime) / "shoal")
        return directories

    def _home(self) -> Path:
        return Path(self._environ.get("HOME") or os.path.expanduser("~"))


def _file_name(address: Address) -> str:
    if address.scheme == TCP:
        return str(address.port)
    return "unix-" + hashlib.sha256(address.name.encode()).hexdigest()[:16]


_authority: Final = Authority()


def publish_token(address: str, token: bytes, *, file: bool = True) -> Publication:
    """See `Authority.publish`, of this process."""
    return _authority.publish(address, token, file=file)


def published_token(address: str) -> bytes | None:
    """See `Authority.published`, of this process."""
    return _authority.published(address)


def token_of_services_here() -> bytes | None:
    """See `Authority.of_services_here`, of this process."""
    return _authority.of_services_here()


def find_token(address: str) -> bytes | None:
    """See `Authority.find`, of this process."""
    return _authority.find(address)


def require_token(address: str, role: str) -> bytes:
    """As `find_token`, for one who can't prove to be of `role` without it.

    Raises:
        AuthenticationError: nobody here knows the token.
        TokenFileError: see `Authority.find`.
    """
    token = find_token(address)
    if token is None:
        raise AuthenticationError.missing_key(address, role)
    return token


def user_token(*, create: bool = False) -> bytes | None:
    """See `Authority.of_user`, of this process."""
    return _authority.of_user(create=create)


def environment_token() -> bytes | None:
    """See `Authority.of_environment`, of this process."""
    return _authority.of_environment()
