"""Constants of `distributed`: versions, the system, loggers."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version
from typing import Final

from shoal.observe.limits import host_memory_bytes, process_memory_bytes

__version__: Final = version("dask").partition("+")[0]
"""That of the dask beside us: programs compare the two, and take it apart into numbers."""
__git_revision__: Final = ""

WINDOWS: Final = sys.platform.startswith("win")
MACOS: Final = sys.platform == "darwin"
LINUX: Final = sys.platform == "linux"

client_logger: Final = logging.getLogger("shoal.client")
nanny_logger: Final = logging.getLogger("shoal.nanny")
scheduler_logger: Final = logging.getLogger("shoal.scheduler")
worker_logger: Final = logging.getLogger("shoal.worker")


def memory_limit() -> int:
    """Memory of this machine or container, in bytes, as far as this process may have it."""
    return min(host_memory_bytes(), process_memory_bytes())


MEMORY_LIMIT: Final = memory_limit()
