"""Keywords of ours that are told apart from those of the function that is submitted.

`submit` and `map` hand on all keywords that they don't know, so one of ours may be meant for the
function: if it takes such a keyword, it gets it.  Of what is written in C, such as `time.sleep`,
that often can't be read: then a class, such as `dict`, gets it, and a function does not.  What is
said by `dask.annotate` is always about tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

HINTS: Final = ("limits", "memory", "timeout")
"""Keywords of ours; each is one of `task_options`."""


def take_hints(function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What `kwargs` says about the task rather than to its function; it is taken out."""
    if not kwargs:
        return {}
    return {
        name: kwargs.pop(name) for name in HINTS if name in kwargs and not _may_take(function, name)
    }


def _may_take(function: Callable[..., Any], name: str) -> bool:
    """Whether a call of `function` with this keyword can go well.

    If nobody can tell: True for a class, as many take any keyword, and False for a function, of
    which hardly one has such a keyword.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        while isinstance(function, partial):
            function = function.func
        return isinstance(function, type) or not callable(function)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return True
    found = parameters.get(name)
    return found is not None and found.kind is not inspect.Parameter.POSITIONAL_ONLY
