"""The base classes of plugins, which this version does not call: making one is refused."""

from __future__ import annotations

from typing import Any

from shoal.compat.homes import RUN
from shoal.errors import UnsupportedOption


class _Plugin:
    """Can be derived from, so that modules which define plugins can be imported."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedOption(f"The plugin {cls.__name__}", RUN)


class SchedulerPlugin(_Plugin):
    """Would be told what the scheduler does."""


class WorkerPlugin(_Plugin):
    """Would be told what a worker does."""


class NannyPlugin(_Plugin):
    """Would be told what a nanny does."""
