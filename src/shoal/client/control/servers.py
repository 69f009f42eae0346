"""Services by the names of their operations: the scheduler's, and whatever listens somewhere."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.client.session import Session


class Pool:
    """The connections of one client to services by name, made when it first asks for them."""

    def __init__(self) -> None:
        self._pool: Any = None

    def of(self, session: Session) -> Any:
        """The pool; it ends with the session.  Raises ClientClosed: that has ended."""
        session.require_running()
        if self._pool is None:
            servers = import_module("shoal.compat.servers.pool")  # old names stand on us
            self._pool = servers.pool_with(session.keyring)
            session.closers.append(self._pool.close)
        return self._pool


class Servers(ClientBase):
    """`scheduler` and `rpc`."""

    @property
    def scheduler(self) -> Any:
        """The scheduler's operations by name: `client.scheduler.identity()`."""
        from shoal.client.named import NamedCalls

        return NamedCalls(self.face)

    @property
    def rpc(self) -> Any:
        """Operations of other services by name: `client.rpc(worker_address).identity()`."""
        pool = self.session.state_of(Pool).of(self.session)
        face = self.face
        if face.is_blocking:
            from shoal.client.named import WaitingPool

            return WaitingPool(face, pool)
        return pool
