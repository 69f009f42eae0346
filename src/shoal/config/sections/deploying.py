"""Settings of clusters: how many workers they have, and when one is given up."""

from typing import Annotated, ClassVar

from shoal.config.base import AtLeastZero, Positive, Settings


class Deploying(Settings, frozen=True, kw_only=True):
    """Clusters of whatever a spec names."""

    path: ClassVar[str] = "deploy"

    lost_worker_seconds: Annotated[float, Positive] = 15.0
    """How long a worker that its scheduler has lost may take to come back; then it is closed."""


class Adaptive(Settings, frozen=True, kw_only=True):
    """Letting the number of workers follow the load."""

    path: ClassVar[str] = "adaptive"

    interval_seconds: Annotated[float, Positive] = 1.0
    """How often the load is looked at."""

    target_seconds: Annotated[float, Positive] = 5.0
    """How long the work at hand may take; sooner asks for more workers."""

    minimum: Annotated[int, AtLeastZero] = 0
    """Never fewer workers than this."""

    maximum: Annotated[float, AtLeastZero] = float("inf")
    """Never more workers than this."""

    wait_count: Annotated[int, Positive] = 3
    """A worker is closed once this many looks in a row say so."""
