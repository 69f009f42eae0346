"""Which operation answers which call; a new subject is a file with OPERATIONS, and a row here."""

from typing import Final

from shoal.scheduler.shell.host import Operations
from shoal.scheduler.shell.operations import (
    actors,
    logs,
    looking,
    membership,
    named,
    plugins,
    replicas,
    running,
    scaling,
    transfers,
)

OPERATIONS: Final[Operations] = {
    **actors.OPERATIONS,
    **logs.OPERATIONS,
    **looking.OPERATIONS,
    **membership.OPERATIONS,
    **named.OPERATIONS,
    **plugins.OPERATIONS,
    **replicas.OPERATIONS,
    **running.OPERATIONS,
    **scaling.OPERATIONS,
    **transfers.OPERATIONS,
}
