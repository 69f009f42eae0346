"""By which keys an address is dialled of which nobody has told what it asks for."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, Final

from shoal.comms.authority import (
    environment_token,
    new_token,
    published_token,
    token_of_services_here,
    user_token,
)
from shoal.protocol.handshake import CLIENT, Keyring

keys_of_caller: Final[ContextVar[Keyring | None]] = ContextVar("keys_of_caller", default=None)
"""Those of the service or client whose pool it is that dials; None: it is a program's own."""


def keyring_for(address: str) -> Keyring:
    """The keys to dial `address` with.

    They are, the first that there is: of what it has told this user's processes; of whoever dials;
    of a worker of this process that is there; the environment's; of this process's client, or else
    of its services, as most of what is dialled is of their cluster; the user's.  If there is none,
    most likely nobody listens there yet: keys that open nothing are good enough to find that out,
    and whoever does listen says what it asks for.
    """
    return keyrings_for(address)[0]


def keyrings_for(address: str) -> list[Keyring]:
    """As `keyring_for`, and what is to be tried if the first one is refused.

    What was told of an address may be old: who told it was killed, and whoever listens there now,
    as workers do, tells nothing.
    """
    published = published_token(address)
    unpublished = _without_publication(address)
    if published is None:
        return [unpublished]
    told = Keyring.from_token(published)
    is_same = told.key(CLIENT) == unpublished.key(CLIENT)
    return [told] if is_same else [told, unpublished]


def _without_publication(address: str) -> Keyring:
    given = keys_of_caller.get() or _of_worker_here(address)
    if given is not None:
        return given
    token = environment_token()
    if token is None:
        of_client = _of_default_client()
        if of_client is not None:
            return of_client
        token = token_of_services_here()
    return Keyring.from_token(token or user_token() or new_token())


def _of_worker_here(address: str) -> Keyring | None:
    context: Any = sys.modules.get("shoal.worker.shell.context")  # if there are workers here at all
    for worker in list(context.live_workers) if context is not None else ():
        if worker.address == address:
            return _complete(worker.keyring)
    return None


def _of_default_client() -> Keyring | None:
    current: Any = sys.modules.get("shoal.client.current")
    client = current.newest_default() if current is not None else None
    return None if client is None else _complete(client.session.keyring)


def _complete(keyring: Keyring) -> Keyring | None:
    """A keyring with the key of a client; None if it has none."""
    return keyring if keyring.key(CLIENT) is not None else None
