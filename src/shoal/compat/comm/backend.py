"""What a third party gives so that its scheme is carried."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from shoal.compat.comm.errors import NoPort


class Backend(ABC):
    """What a scheme needs to be carried; locations are addresses without it.

    One that `distributed.comm.backends` has by its scheme, or that an entry point of the group
    `distributed.comm.backends` makes, carries programs' comms and a cluster's own traffic.
    """

    stands_on: str = ""
    """The scheme of shoal's own connections that its comms are made of.  Their peers have proved to
    hold the token before there is a comm; by others it is proved by messages, before anybody else
    has them.  A cluster's traffic goes by that scheme itself."""

    for_clusters: bool = True
    """Whether a scheduler and workers may be told to use it."""

    @abstractmethod
    def get_connector(self) -> Any:
        """A `Connector`."""

    @abstractmethod
    def get_listener(
        self,
        loc: str,
        handle_comm: Callable[[Any], Any],
        deserialize: bool,
        **connection_args: Any,
    ) -> Any:
        """A `Listener` that is not started yet.

        Args:
            loc: where to listen.
            handle_comm: a coroutine function, to be called with each comm.
            deserialize: what the comms are made with.
        """

    @abstractmethod
    def get_address_host(self, loc: str) -> str:
        """The host of a location."""

    @abstractmethod
    def resolve_address(self, loc: str) -> str:
        """A location in its canonical form."""

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        """Host and port of a location.

        Raises:
            NoPort: this scheme has none (a NotImplementedError).
        """
        raise NoPort(loc)

    @abstractmethod
    def get_local_address_for(self, loc: str) -> str:
        """Where to listen, on this host, to be reached from `loc`."""
