"""What services that are called by name have in common: their operations, and the ways to them.

`service.handlers` is a dict, made when somebody first looks at it: what is documented, and what
programs add.  It is reached by messages of the cluster, and by comms that programs have made.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Final

from shoal.observe.handling import NO_REASONS, Caller, Counted, Handler, outcome_of
from shoal.protocol.handshake import Keyring
from shoal.protocol.running import Outcome

logger = logging.getLogger("shoal.core")

CONVERSATION: Final = "It is a step of a conversation that has messages of its own here."
LATER: Final = "This version of shoal does not have it yet."
"""Reasons why an operation of upstream's is refused."""


def stop_periodic(callbacks: Mapping[str, Any], who: str) -> None:
    """Stop what a program has called at intervals; what fails at that keeps no service open.

    Args:
        callbacks: by name; they have `stop`.
        who: the service that closes.
    """
    for name, periodic in callbacks.items():
        try:
            periodic.stop()
        except Exception:
            logger.exception("%s could not stop %r, and closes", who, name)


class CalledByName:
    """The part of a scheduler or a worker that is called by name."""

    by_name: ClassVar[Mapping[str, str]] = {}
    """Operation -> the method that answers to it."""

    reasons: ClassVar[Mapping[str, str]] = NO_REASONS
    """Operations that it has not -> why, or what to do instead."""

    thread_id = 0
    """The thread that its loop runs in, once it was started."""

    @property
    def _service(self) -> Any:
        return self

    @property
    def _called(self) -> str:
        """What it is called in the texts of errors."""
        return f"the service at {self._service.address}"

    @property
    def _proofs(self) -> Keyring:
        """What proves us to other services."""
        proofs: Keyring = self._service.keyring
        return proofs

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """What it answers to by name; programs may add to it."""
        return {name: getattr(self, method) for name, method in self.by_name.items()}

    @cached_property
    def stream_handlers(self) -> dict[str, Handler]:
        """What it does with messages of connections that are streams; programs may add to it."""
        return {}

    @cached_property
    def periodic_callbacks(self) -> dict[str, Any]:
        """What programs have called at intervals, by name; stopped as the service closes."""
        return {}

    @cached_property
    def counters(self) -> dict[str, Counted]:
        """How often each operation was called by its name: `counters["op"]`."""
        return defaultdict(Counted)

    @cached_property
    def rpc(self) -> Any:
        """Connections to other services; `await service.rpc(address).identity()`."""
        servers = import_module("shoal.compat.servers.pool")  # old names stand on us
        return servers.pool_with(self._proofs, self)

    @cached_property
    def guests(self) -> Any:
        """Connections of programs that call operations by name."""
        return import_module("shoal.compat.servers.guests").Guests(self, self._called)

    async def _end_named(self) -> None:
        """End the connections of those who call by name, and our own to others, if there are any.

        An operation that has this service close is answered before it is.
        """
        stop_periodic(self.__dict__.get("periodic_callbacks", {}), self._called)
        if "guests" in self.__dict__:
            await self.guests.close()
        if "rpc" in self.__dict__:
            await self.rpc.close()

    async def answer_by_name(self, name: str, arguments: bytes) -> Outcome:
        """Call what is there under a name; whatever is raised is the outcome."""
        self.counters["op"].add(name)
        caller, blocked = Caller(self._service.address), self._service.blocked_handlers
        who, reasons = self._called, self.reasons
        return await outcome_of(who, self.handlers, name, arguments, caller, blocked, reasons)

    @property
    def listener(self) -> Any:
        """What accepts those who connect; None before it was started."""
        return getattr(self._service, "_listener", None)

    @property
    def listen_address(self) -> str:
        """What it is bound to."""
        return str(self.listener.address)

    def echo(self, data: Any = None) -> Any:
        """What it is given."""
        return data
