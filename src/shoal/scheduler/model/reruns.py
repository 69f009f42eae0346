"""Why tasks are run again: what became of the run, or of the result, that they had."""

from typing import Final, NamedTuple

LOST: Final = 0  # its result went with the worker that had it
RAISED: Final = 1  # and it has retries left
DIED: Final = 2  # the worker that it was sent to was lost
SILENT: Final = 3  # nothing was heard of that worker


class Rerun(NamedTuple):
    """What happened last; of results that went together there is one, which they share."""

    kind: int
    at: float  # s, monotonic
    worker: str  # its name; "": nobody's
    text: str = ""  # of what was raised, in a line
