"""`distributed.sizeof`: the size of a value whatever its own code says."""

from __future__ import annotations

import logging
from typing import Any, Final

from dask.sizeof import sizeof
from dask.utils import format_bytes, typename

logger: Final = logging.getLogger("shoal.sizeof")


def safe_sizeof(obj: Any, default_size: float = 1e6) -> int:
    """Bytes of `obj` in memory; `default_size`, with a line in the log, if it can't be measured."""
    try:
        return int(sizeof(obj))
    except Exception:
        logger.warning(
            "Sizeof calculation for object of type '%s' failed. Defaulting to %s",
            typename(obj),
            format_bytes(int(default_size)),
            exc_info=True,
        )
        return int(default_size)
