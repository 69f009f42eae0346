"""What the web needs of the scheduler that it shows."""

from __future__ import annotations

from typing import Protocol

from shoal.scheduler.machine.step import SchedulerMachine


class Shown(Protocol):
    """A scheduler, to be read only."""

    address: str
    machine: SchedulerMachine
