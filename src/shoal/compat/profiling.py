"""`distributed.profile`: stacks of frames, counted in a tree."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any, Final

from dask.utils import parse_timedelta

ROOT: Final = "root"
DEPTH_MAX: Final = 250
lock: Final = threading.Lock()
"""Held while a sample is taken: whoever has it sees no thread that samples."""

State = dict[str, Any]


def identifier(frame: FrameType | None) -> str:
    """The function that a frame runs, as a text."""
    if frame is None:
        return "None"
    code = frame.f_code
    return f"{code.co_name};{code.co_filename};{code.co_firstlineno}"


def info_frame(frame: FrameType) -> dict[str, Any]:
    """Where a frame is."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).lstrip()
    return {
        "filename": code.co_filename,
        "name": code.co_name,
        "line_number": frame.f_lineno,
        "line": line,
    }


def repr_frame(frame: FrameType) -> str:
    """Where a frame is, as a traceback says it."""
    where = info_frame(frame)
    return (
        f'  File "{where["filename"]}", line {where["line_number"]}, in {where["name"]}\n'
        f"\t{where['line']}"
    )


def call_stack(frame: FrameType) -> list[str]:
    """A frame and those that called it, as a traceback says them, outermost first."""
    return [repr_frame(each) for each in reversed(_outwards(frame))]


def _outwards(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def create() -> State:
    """A tree without a sample."""
    nowhere = {"filename": "", "name": "", "line_number": 0, "line": ""}
    return {"count": 0, "children": {}, "identifier": ROOT, "description": nowhere}


def process(
    frame: FrameType,
    child: object | None,
    state: State,
    *,
    stop: str | None = None,
    omit: Collection[str] = (),
    depth: int | None = None,
) -> State | None:
    """Count a frame, and those that called it, in a tree.

    Args:
        stop: how the name of a file ends whose callers are not counted any more.
        omit: names of files: a stack that goes through one of them is not counted.
        depth: how many frames of the stack count; None: as many as a tree may be deep.

    Returns:
        The node of the frame; None if it was not counted.
    """
    stack = []
    for each in _outwards(frame):
        if any(name in each.f_code.co_filename for name in omit):
            return None
        stack.append(each)
        if stop is not None and each.f_code.co_filename.endswith(stop):
            stack.pop()
            break
    node = state
    node["count"] += 1
    for each in reversed(stack[: depth or DEPTH_MAX]):
        name = identifier(each)
        made = {"count": 0, "description": info_frame(each), "children": {}, "identifier": name}
        node = node["children"].setdefault(name, made)
        node["count"] += 1
    return node


def merge(*args: State) -> State:
    """One tree of several, with the sums of their counts."""
    if not args:
        return create()
    whole = {**args[0], "count": 0, "children": {}}
    left = [(whole, tree) for tree in args]
    for mine, theirs in left:  # which grows as it is gone through
        mine["count"] += theirs["count"]
        for name, child in theirs["children"].items():
            made = {**child, "count": 0, "children": {}}
            left.append((mine["children"].setdefault(name, made), child))
    return whole


def watch(
    thread_id: int | None = None,
    interval: str = "20ms",
    cycle: str = "2s",
    maxlen: int | None = 1000,
    omit: Collection[str] = (),
    stop: Callable[[], bool] = lambda: False,
) -> deque[tuple[float, State]]:
    """Sample a thread, from another one, until it ends or `stop()` holds.

    Args:
        thread_id: None: the caller's.
        interval: between two samples.
        cycle: how long a tree is added to before the next is begun.
        maxlen: how many trees are kept.

    Returns:
        Pairs of a tree's end and the tree, added to while the thread is sampled.
    """
    log: deque[tuple[float, State]] = deque(maxlen=maxlen)
    watched = threading.get_ident() if thread_id is None else thread_id
    sampling = threading.Thread(
        target=_sample,
        args=(watched, log, parse_timedelta(interval), parse_timedelta(cycle), omit, stop),
        name="shoal-profile",
        daemon=True,
    )
    sampling.start()
    return log


def _sample(
    watched: int,
    log: deque[tuple[float, State]],
    interval_seconds: float,
    cycle_seconds: float,
    omit: Collection[str],
    stop: Callable[[], bool],
) -> None:
    tree, begun_at = create(), time.monotonic()
    pause = threading.Event()
    while not stop():
        with lock:
            frame = sys._current_frames().get(watched)
            if frame is None:
                break  # the thread has ended
            process(frame, None, tree, omit=omit)
            del frame
        if time.monotonic() - begun_at >= cycle_seconds:
            log.append((time.time(), tree))
            tree, begun_at = create(), time.monotonic()
        pause.wait(interval_seconds)
    log.append((time.time(), tree))
