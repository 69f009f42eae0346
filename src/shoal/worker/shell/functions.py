"""Users' code: functions and bundles of graph tasks, each loaded once, and how to call them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from shoal.ids import CodeId
from shoal.protocol.messages import DefineCode
from shoal.protocol.payload import load, load_call
from shoal.worker.shell.evaluation import evaluate_item

_loading: Final = threading.RLock()
"""One for all codes: loading is rare, and may import modules, which has a lock of its own."""

_NOT_LOADED: Final = object()

RELOADED_BYTES_MAX: Final = 512
"""A code of so many bytes names a function of a module, which may be imported anew."""


class Code:
    """A function or a bundle.  It is loaded in the thread that first needs it, and kept."""

    __slots__ = ("_loaded", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._loaded: Any = _NOT_LOADED

    def load(self) -> Any:
        """The function, or the list of (task or chain of tasks, keys of its dependencies).

        Raises:
            BaseException: whatever the user's code raises as it is loaded; the next call tries
                again, since a missing module may have been installed meanwhile.
        """
        loaded = self._loaded
        if loaded is _NOT_LOADED:
            with _loading:
                if self._loaded is _NOT_LOADED:
                    self._loaded = load(self.payload)
                    if len(self.payload) > RELOADED_BYTES_MAX:
                        self.payload = b""
                loaded = self._loaded
        return loaded

    def reload(self) -> None:
        """Load it anew at its next use, if it is short; what has begun goes on with the old one."""
        with _loading:
            if self.payload:
                self._loaded = _NOT_LOADED


class CodeTable:
    """The codes that runs may call, by their number."""

    __slots__ = ("_code_by_id",)

    def __init__(self) -> None:
        self._code_by_id: dict[CodeId, Code] = {}

    def __len__(self) -> int:
        return len(self._code_by_id)

    def define(self, message: DefineCode) -> None:
        """Remember a code, in place of an older one of that number."""
        self._code_by_id[message.code] = Code(message.payload)

    def get(self, code: CodeId) -> Code | None:
        """The code of that number, if it was defined and not forgotten."""
        return self._code_by_id.get(code)

    def reload(self) -> None:
        """Modules were imported anew: look up again what is named by them."""
        for code in self._code_by_id.values():
            code.reload()

    def forget(self, codes: Iterable[CodeId]) -> None:
        """Runs that were handed over already keep theirs."""
        for code in codes:
            self._code_by_id.pop(code, None)


def call(
    code: Code, argument: bytes | int, inputs: Sequence[object]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """What a run calls: (function, args, kwargs).  Raises whatever users' code raises.

    An `argument` of int is the place in a bundle, whose node is called with the values of its
    dependencies by their keys.
    """
    loaded = code.load()
    if isinstance(argument, int):
        node, keys = loaded[argument]
        return evaluate_item, (node, dict(zip(keys, inputs, strict=True))), {}
    args, kwargs = load_call(argument, inputs)
    return loaded, args, kwargs
