"""Which operation answers which call; a new subject is a file with OPERATIONS, and a row here."""

from typing import Final

from shoal.scheduler.shell.host import Operations
from shoal.scheduler.shell.operations import logs, looking, membership, plugins, running, transfers

OPERATIONS: Final[Operations] = {
    **logs.OPERATIONS,
    **looking.OPERATIONS,
    **membership.OPERATIONS,
    **plugins.OPERATIONS,
    **running.OPERATIONS,
    **transfers.OPERATIONS,
}
