"""What the client is at this moment, without asking anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from shoal.client import current
from shoal.client.control.questions import Questions
from shoal.client.machine import Record
from shoal.client.showing import as_page, in_a_line
from shoal.comms import Connection
from shoal.comms.addresses import TCP, is_on_this_host, parse_address
from shoal.observe.links import dashboard_link
from shoal.protocol.keys import from_canonical


class Standing(Questions):
    """`scheduler_address`, `futures`, `dashboard_link` and the like."""

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler is; empty before the client was started."""
        return self.session.address

    @property
    def futures(self) -> Mapping[Any, Record]:
        """Key -> what is known of it, of everything that futures of this client hold now."""
        with self.session.lock:
            self.session.take_dropped()
            return {from_canonical(key): r for key, r in self.session.machine.records.items()}

    @property
    def refcount(self) -> Mapping[Any, int]:
        """How many futures there are of each key; 0 of one that is not known.  Cost: O(keys)."""
        return Counter({key: record.nfutures for key, record in self.futures.items()})

    @property
    def dashboard_link(self) -> str:
        """Address of the web page; empty if there is none, or none that this host can see, or it
        isn't known yet."""
        link = getattr(self.cluster, "dashboard_link", None)
        if isinstance(link, str):
            return link
        session = self.session
        return dashboard_link(
            session.address,
            session.machine.services,
            is_beside=session.connection is not None and _stays_on_this_host(session.connection),
        )

    def as_current(self) -> AbstractContextManager[None]:
        """Make this the client that is meant when none is named, in this context."""
        return current.as_current(self.face)

    def __repr__(self) -> str:
        return in_a_line(self.scheduler_address, self.status, self._facts_shown())

    def _repr_html_(self) -> str:
        facts, link = self._facts_shown(), self.dashboard_link
        return as_page(self.id, self.scheduler_address, self.status, facts, link)

    def _facts_shown(self) -> Mapping[str, Any] | None:
        """What is known of the cluster here; None if this client isn't kept told."""
        if self.owner is not None or self._serves_tasks or self.status != "running":
            return None
        facts: Mapping[str, Any] = self.scheduler_info(n_workers=0)
        return facts


def _stays_on_this_host(connection: Connection) -> bool:
    """Whether the other side is on this host, as far as its address and the way to it tell."""
    return connection.scheme != TCP or is_on_this_host(parse_address(connection.peer_address))
