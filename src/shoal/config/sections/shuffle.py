"""Settings of all-to-all exchange."""

from typing import Annotated, ClassVar

from shoal.config.base import Positive, Settings
from shoal.units import GIB, MIB


class Shuffle(Settings, frozen=True, kw_only=True):
    """All-to-all exchange between workers."""

    path: ClassVar[str] = "shuffle"

    send_bytes_max: Annotated[int, Positive] = GIB
    """Shards that wait to be sent, per worker."""

    message_bytes_max: Annotated[int, Positive] = 2 * MIB
    """Shards in one message."""

    senders_max: Annotated[int, Positive] = 10
    """Messages under way at once, per worker."""

    disk_bytes_max: Annotated[int, Positive] = 100 * MIB
    """Shards that wait to be written, per worker."""

    disk: bool = True
    """Keep shards on disk rather than in memory."""
