"""`distributed.core`: errors as messages and back, and addresses written in other ways."""

from __future__ import annotations

import traceback as tracebacks
from types import TracebackType
from typing import Any, Final

from shoal.compat import addresses, pickling
from shoal.compat.texts import truncate_exception

_CHARACTERS_MAX: Final = 10_000


def error_message(e: BaseException, status: str = "error") -> dict[str, Any]:
    """An error as a message: itself and its traceback as text, and pickled if it can be."""
    short = truncate_exception(e, _CHARACTERS_MAX)
    return {
        "status": status,
        "exception": _pickled(short),
        "traceback": None,
        "exception_text": repr(short),
        "traceback_text": "".join(tracebacks.format_tb(e.__traceback__)),
    }


def _pickled(error: BaseException) -> Any:
    try:
        return pickling.dumps(error)
    except Exception:  # it may hold what no other process can have
        return str(error)


def clean_exception(
    exception: BaseException | bytes | bytearray | str | None,
    traceback: TracebackType | bytes | str | None = None,
    **kwargs: Any,
) -> tuple[type[BaseException | None], BaseException | None, TracebackType | None]:
    """Type, error and traceback of what a message has, whatever form it has there.

    A text becomes a plain `Exception`; a traceback that is none any more becomes None.
    """
    error: Any = exception
    if isinstance(error, bytes | bytearray):
        try:
            error = pickling.loads(bytes(error))
        except Exception as unreadable:  # of a package, say, that is missing here
            error = Exception(f"it can't be read here: {unreadable}")
    if isinstance(error, str):
        error = Exception(error)
    trace = traceback if isinstance(traceback, TracebackType) else None
    return type(error), error, trace


def coerce_to_address(o: Any) -> str:
    """`("host", 1)` or `"host:1"` → `"tcp://host:1"`."""
    if isinstance(o, list | tuple):
        o = addresses.unparse_host_port(*o)
    return addresses.normalize_address(o)
