"""Why a worker closes, where whoever has started it acts on that: how such a reason begins."""

from typing import Final

SCHEDULER_GONE: Final = "scheduler-gone"
"""Its connection to the scheduler broke."""

TOO_SILENT: Final = "the scheduler did not hear from it"
"""It was held up, perhaps by a task that never lets go of the interpreter."""

TERMINATED: Final = "SIGTERM"
"""Somebody else ended its process, and let it do so in good order."""

LIFETIME: Final = "lifetime"
"""It has lived as long as the setting `worker.lifetime` allows."""

RECYCLED: Final = "recycled"
"""It was paused, and could make no room by itself: another process takes its place."""

RESTARTED: Final = "restarted"
"""A client has asked for another process in its place."""

NOT_UNDERSTOOD: Final = "not understood"
"""It and the scheduler speak different versions of shoal."""

INTERNAL_ERROR: Final = "internal error"
"""A bug: what it knows can't be relied upon any more."""
