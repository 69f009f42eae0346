"""Settings of clients."""

from typing import Annotated, Any, ClassVar

from shoal.config.base import AtLeastZero, Positive, Settings


class Client(Settings, frozen=True, kw_only=True):
    """The user's side."""

    path: ClassVar[str] = "client"

    heartbeat_seconds: Annotated[float, Positive] = 5.0
    """How often a client says that it lives."""

    reconnect_seconds: Annotated[float, AtLeastZero] = 60.0
    """How long a client looks for a scheduler that it has lost, before all that it waits for fails.
    0: not at all, as where the scheduler is one of the client's own process."""

    large_graph_bytes: Annotated[int, Positive] = 10_000_000
    """A graph larger than this is worth a warning: its data belong into `scatter` or a file."""

    share: Annotated[float, Positive] = 1.0
    """Its weight beside other clients: one of 2.0 gets twice as much of the workers' time."""

    direct_to_workers: bool | None = None
    """Fetch from workers rather than through the scheduler; None: where it can be reached."""

    preload: list[str] = []
    preload_argv: list[Any] = []
