"""What a scheduler says of itself to those who come."""

from collections.abc import Mapping
from types import MappingProxyType


class About:
    """Filled in by the service that runs the machine, before anybody comes."""

    __slots__ = ("id", "started_at", "versions", "wall_ahead_seconds")

    def __init__(self) -> None:
        self.id = ""
        self.started_at = 0.0  # seconds since the epoch
        self.wall_ahead_seconds = 0.0  # what the machine's time lacks of that; for display only
        self.versions: Mapping[str, str] = MappingProxyType({})  # of Python and packages, by name
