"""Which operation answers which call; a new subject is a file with OPERATIONS, and a row here."""

from typing import Final

from shoal.scheduler.shell.host import Operations
from shoal.scheduler.shell.operations import membership, running, transfers

OPERATIONS: Final[Operations] = {
    **membership.OPERATIONS,
    **running.OPERATIONS,
    **transfers.OPERATIONS,
}
