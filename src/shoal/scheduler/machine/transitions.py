"""The transitions of a task's state that exist; any other is a bug, and stops the machine.

A table and nothing else: `Core.move` makes transitions; the manual's diagram is drawn from here.
"""

from typing import Final

from shoal.scheduler.model.entities import (
    ERRED,
    FORGOTTEN,
    MEMORY,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
)

TRANSITIONS: Final[dict[tuple[str, str], str]] = {
    (RELEASED, WAITING): "it is needed",
    (RELEASED, MEMORY): "a replica turned up as it was about to be computed again",
    (RELEASED, ERRED): "something it needs failed, or a scattered value was lost",
    (RELEASED, FORGOTTEN): "nobody wants it and nothing depends on it",
    (WAITING, QUEUED): "it is ready and may run anywhere",
    (WAITING, PROCESSING): "it is ready and was placed",
    (WAITING, NO_WORKER): "it is ready, but no connected worker may run it",
    (WAITING, MEMORY): "a scattered value arrived, a replica turned up, or it is a barrier",
    (WAITING, ERRED): "something it needs failed",
    (WAITING, RELEASED): "it is no longer needed",
    (QUEUED, PROCESSING): "a worker had room",
    (QUEUED, MEMORY): "a replica turned up",
    (QUEUED, WAITING): "it needs resources, and an input or the workers that have them were lost",
    (QUEUED, RELEASED): "it is no longer needed",
    (QUEUED, ERRED): "no worker was there for too long",
    (NO_WORKER, ERRED): "no worker that may run it was there for too long",
    (NO_WORKER, WAITING): "workers changed, or an input was lost",
    (NO_WORKER, MEMORY): "a replica turned up",
    (NO_WORKER, RELEASED): "it is no longer needed",
    (PROCESSING, MEMORY): "it finished, or a replica turned up",
    (PROCESSING, ERRED): "it failed, and no retry is left",
    (
        PROCESSING,
        WAITING,
    ): "its run was returned, lost, sent elsewhere, or failed with retries left",
    (PROCESSING, RELEASED): "it is no longer needed",
    (MEMORY, RELEASED): "it is no longer needed, or its last replica was lost",
    (ERRED, RELEASED): "a client has it tried again, or places the scattered value anew",
    (ERRED, FORGOTTEN): "nobody wants it and nothing depends on it",
}

DECLARED: Final = frozenset(TRANSITIONS)
