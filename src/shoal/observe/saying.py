"""`print` and `warn` for tasks: what they say appears where the task runs, and at the clients."""

from __future__ import annotations

import builtins
import sys
import warnings
from typing import Any, Final

from shoal.observe.inside import current_task, this_process

PRINT: Final = "print"
WARN: Final = "warn"

__all__ = ["print", "warn"]


def print(
    *args: Any,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any = None,
    flush: bool = False,
) -> None:
    """As the builtin, and in a task clients print it as well.

    Args:
        file: None, sys.stdout or sys.stderr: others are not the same everywhere.

    Raises:
        TypeError: another file, or `sep` or `end` is no text.
    """
    streams = {id(None): 0, id(sys.stdout): 1, id(sys.stderr): 2}
    stream = streams.get(id(file))
    if stream is None:
        raise TypeError(
            f"print(file={file!r}) can't be done at the clients as well: use None, sys.stdout or "
            "sys.stderr, or the builtin print"
        )
    builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
    task = current_task.get()
    if task is not None:
        said = {
            "args": tuple(str(arg) for arg in args),
            "sep": sep,
            "end": end,
            "file": stream,
            "flush": flush,
            "home": this_process(),
        }
        task.worker.log_event(PRINT, said)


def warn(
    message: str | Warning,
    category: type[Warning] | None = UserWarning,
    stacklevel: int = 1,
    source: Any = None,
) -> None:
    """As `warnings.warn`, and in a task clients warn as well.

    The filters of each process say what becomes of it there.
    """
    task = current_task.get()
    if task is not None:
        said = {"message": message, "category": category, "home": this_process()}
        task.worker.log_event(WARN, said)
    warnings.warn(message, category, stacklevel=stacklevel + 1, source=source)


def print_again(said: dict[str, Any]) -> None:
    """Print what a task has printed; that of this very process is there already."""
    if said.get("home") != this_process():
        file = sys.stderr if said.get("file") == 2 else sys.stdout
        builtins.print(
            *said["args"], sep=said["sep"], end=said["end"], file=file, flush=said["flush"]
        )


def warn_again(said: dict[str, Any]) -> None:
    """Warn as a task has warned, unless that was in this very process."""
    if said.get("home") != this_process():
        warnings.warn(said["message"], said["category"], stacklevel=1)
