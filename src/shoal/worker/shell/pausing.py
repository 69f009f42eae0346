"""The part of a worker that knows at which stage of its life it is, and whether it begins tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shoal import config
from shoal.observe.status import Status

if TYPE_CHECKING:
    from shoal.observe.memory import MemoryView
    from shoal.worker.shell.feed import Feed

BY_HAND: Final = "it was told to"
"""Why a worker pauses or goes on, if its memory is not the reason."""


class Pausing:
    """Status of one worker, and what it may have of memory."""

    memory_limit: int
    _feed: Feed | None = None
    _stage = Status.created
    is_leaving = False  # the scheduler has said that it gives it nothing more

    @property
    def status(self) -> Status:
        """The stage that it is at; a running worker that begins nothing is paused.

        Programs may set it: `paused` lasts until it is set to `running`, whatever memory there is;
        but one whose memory is short begins nothing either way.
        """
        feed = self._feed
        if self._stage is Status.running and self.is_leaving:
            return Status.closing_gracefully
        if self._stage is Status.running and feed is not None and feed.is_paused:
            return Status.paused
        return self._stage

    @status.setter
    def status(self, status: Status | str) -> None:
        status, feed = Status(status), self._feed
        if self._stage is not Status.running or feed is None:
            self._stage = status
        elif status is Status.paused:
            feed.on_pause(BY_HAND, by_hand=True)
        elif status is Status.running:
            feed.on_resume(BY_HAND, by_hand=True)
        else:
            self._stage = status


def _memory_of(worker: Pausing) -> MemoryView:
    """What it does as its memory fills, by upstream's names."""
    from shoal.observe.memory import MemoryView  # only here, as it is rare

    return MemoryView(worker.memory_limit, config.read(config.Memory))


setattr(Pausing, "memory_manager", property(_memory_of))  # noqa: B010 -- known by this name
