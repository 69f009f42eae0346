"""`distributed.utils.log_errors`: what a block or a function raises, in the log as well."""

from __future__ import annotations

import functools
import logging
import pdb as debugger
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from shoal.compat.functions import iscoroutinefunction

_MODULE = "shoal"


class _LoggingErrors:
    """A context, and a decorator of plain functions and of coroutine functions."""

    def __init__(self, module: str, post_mortem: bool) -> None:
        self._logger = logging.getLogger(module)
        self._post_mortem = post_mortem

    def __enter__(self) -> None:
        """Nothing is logged yet."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Log what was raised, unless it only says that the work is given up."""
        if error is None or not isinstance(error, Exception):
            return
        self._logger.error("%s", error, exc_info=error)
        if self._post_mortem:
            debugger.post_mortem(trace)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function in this context."""
        self._logger = logging.getLogger(func.__module__ or _MODULE)
        if iscoroutinefunction(func):

            @functools.wraps(func)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await func(*args, **kwargs)

            return awaited

        @functools.wraps(func)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return called


def log_errors(
    func: Callable[..., Any] | None = None, /, *, pdb: bool = False, unroll_stack: int = 0
) -> Any:
    """Log what a function or a block raises, and let it go on its way.

    As `@log_errors`, `@log_errors(...)` or `with log_errors(...):`.

    Args:
        pdb: True: look at it in the debugger first.
        unroll_stack: how many callers further up the module is whose logger is used.
    """
    if func is not None:
        return _LoggingErrors(_MODULE, pdb)(func)
    frame = sys._getframe(1 + unroll_stack)
    return _LoggingErrors(str(frame.f_globals.get("__name__", _MODULE)), pdb)
