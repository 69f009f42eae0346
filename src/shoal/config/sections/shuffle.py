"""Settings of all-to-all exchange."""

from typing import Annotated, ClassVar

from shoal.config.base import Fraction, Positive, Settings
from shoal.units import MIB


class Shuffle(Settings, frozen=True, kw_only=True):
    """All-to-all exchange between workers."""

    path: ClassVar[str] = "shuffle"

    disk: bool = True
    """Keep shards on disk where memory has no room for them, rather than only in memory."""

    memory_ratio: Annotated[float, Fraction] = 0.1
    """Of a worker's memory limit, what shards may take before they go to disk."""

    memory_bytes_min: Annotated[int, Positive] = 100 * MIB
    """Shards may take so much in any case."""

    memory_hard_ratio: Annotated[float, Fraction] = 0.3
    """Of the limit, what shards may take where the disk takes none."""

    serving_bytes_max: Annotated[int, Positive] = 64 * MIB
    """Shards that were read for other workers and are not sent yet, per worker."""
