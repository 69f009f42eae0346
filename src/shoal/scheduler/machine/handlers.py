"""What one part of the machine takes on: messages, and the coming and going of peers.

Each module of handlers ends with a HANDLERS; `table.py` has the list of all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from shoal.protocol.messages import Message
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.model.state import SchedulerState

Handler = Callable[[Core, Any, Any], None]
"""Core, the worker or client that speaks, and what it says."""

Heard = Mapping[type[Message], Handler]

NOTHING: Final[Heard] = {}


class Handlers(NamedTuple):
    """What one part takes on; what it does not is left out."""

    from_client: Heard = NOTHING
    from_worker: Heard = NOTHING
    worker_joined: Callable[[Core, Worker], None] | None = None
    """A worker was registered, and what it holds is recorded."""
    worker_gone: Callable[[Core, Worker], None] | None = None
    """What it ran and held is settled; it is still registered."""
    client_joined: Callable[[Core, Client], None] | None = None
    """A client was registered."""
    client_gone: Callable[[Core, Client], None] | None = None
    """It is still registered; whatever the part keeps for it must go."""
    woken: Callable[[Core], None] | None = None
    """Time has come to `wake_at`; whoever waits for a later moment asks again, by `wake_by`."""
    invariant: Callable[[SchedulerState], Iterator[str]] | None = None
    """True after every step; a sentence for each breach."""
