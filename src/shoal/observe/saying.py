"""`print` and `warn` for tasks: what they say appears where the task runs, and at the clients."""

from __future__ import annotations

import builtins
import pickle
import sys
import warnings
from typing import Any, Final

from shoal.observe.inside import current_task, this_process

PRINT: Final = "print"
WARN: Final = "warn"

_FILES: Final = (0, 1, 2, None)
"""What stands for a file: stdout, if it is not the 2 of stderr."""

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


def print_again(said: Any) -> None:
    """Print what a task has printed; that of this very process is there already.

    Args:
        said: as `print` tells it, of which `args` is enough; anything but a dict is printed itself.

    Raises:
        TypeError: `args` is missing or no tuple, or the file is none of 0, 1 (stdout), 2 (stderr).
    """
    if not isinstance(said, dict):
        builtins.print(said)
        return
    args, file = said.get("args"), said.get("file", 0)
    if not isinstance(args, tuple | list):
        raise TypeError(f"what is to be printed needs a tuple as args, not {args!r}")
    if file not in _FILES:
        raise TypeError(f"file is one of {', '.join(map(repr, _FILES))}, not {file!r}")
    if said.get("home") != this_process():
        builtins.print(
            *args,
            sep=said.get("sep", " "),
            end=said.get("end", "\n"),
            file=sys.stderr if file == 2 else sys.stdout,
            flush=said.get("flush", False),
        )


def warn_again(said: Any) -> None:
    """Warn as a task has warned, unless that was in this very process.

    Args:
        said: as `warn` tells it, of which `message` is enough, and parts may be pickled; anything
            but a dict is the message itself.

    Raises:
        TypeError: there is no message.
    """
    if not isinstance(said, dict):
        warnings.warn(str(said), stacklevel=1)
        return
    if "message" not in said:
        raise TypeError(f"what is to be warned of needs a message, which {said!r} lacks")
    if said.get("home") != this_process():
        warnings.warn(
            _unpickled(said["message"]),
            _unpickled(said.get("category", UserWarning)),
            stacklevel=1,
        )


def _unpickled(part: Any) -> Any:
    return pickle.loads(part) if isinstance(part, bytes) else part
