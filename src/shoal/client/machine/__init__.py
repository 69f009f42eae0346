"""What a client knows of its tasks, and what it has to say; pure."""

from shoal.client.machine.record import (
    CANCELLED,
    ERROR,
    FINISHED,
    LOST,
    PENDING,
    UNRESOLVED,
    Record,
)
from shoal.client.machine.wants import ClientMachine

__all__ = [
    "CANCELLED",
    "ERROR",
    "FINISHED",
    "LOST",
    "PENDING",
    "UNRESOLVED",
    "ClientMachine",
    "Record",
]
