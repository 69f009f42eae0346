"""What code is doing at this moment, as text."""

from __future__ import annotations

import linecache
from types import CodeType, FrameType
from typing import Final

_OWN: Final = "shoal."
_DASKS: Final = "dask._task_spec"


def frames_of(frame: FrameType | None) -> list[str]:
    """The frames that led to `frame`, outermost first, as a traceback has them.

    What runs the code, threads and ours, is left out.
    """
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    found.reverse()
    return [text_of_frame(each) for each in found[_nrunning(found) :]]


def frames_of_coroutine(coroutine: object) -> list[str]:
    """As `frames_of`, of a coroutine that waits: what it awaits, and what that awaits."""
    found: list[FrameType] = []
    while True:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            return [text_of_frame(each) for each in found[_nrunning(found) :]]
        found.append(frame)
        coroutine = getattr(coroutine, "cr_await", None)


def text_of_frame(frame: FrameType) -> str:
    """One frame: where it is, and the line that it is at."""
    return _text(frame.f_code, frame.f_lineno)


def _nrunning(frames: list[FrameType]) -> int:
    """How many of the outermost frames only run what follows; 0 if nothing does."""
    last = 0
    for index, frame in enumerate(frames):
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(_OWN) or name == _DASKS:
            last = index + 1
        elif last:
            break
    return 0 if last == len(frames) else last


def _text(code: CodeType, line: int | None) -> str:
    source = linecache.getline(code.co_filename, line or 0).strip()
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n\t{source}\n'
