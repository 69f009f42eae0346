"""How this process pickles: plainly, until a program teaches it a way for types of its own.

Nothing is looked up per value before that: to teach is to put another pickler in the place of
pickle's.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

PROTOCOL: Final = 5
MAIN: Final = b"\x8c\x08__main__"
"""How a stream names the module that is another one in every process."""

BETTER_NAMES: Final = frozenset(
    ("MaskedArray", "Parameter", "RecordBatch", "Table", "Tensor", "ndarray")
)
"""Names of types with a better way than plain pickle's; which library's is asked later."""
_BETTER_IN_STREAM: Final = b"torch._utils"
"""What streams name that hold copies of memory which could travel beside them."""


class Pickling:
    """What pickles in this process."""

    __slots__ = ("Pickler", "dumps", "is_taught")

    def __init__(self) -> None:
        self.Pickler: Callable[..., Any] = pickle.Pickler  # of what is small, for `dump_small`
        self.dumps: Callable[..., bytes] = pickle.dumps
        self.is_taught = False

    def teach(self, pickler: Callable[..., Any], dumps: Callable[..., bytes]) -> None:
        """From now on use these, which look for a registered way for every value at any depth."""
        self.Pickler, self.dumps, self.is_taught = pickler, dumps, True


pickling: Final = Pickling()
"""That of this process."""

context: Final[ContextVar[dict[str, Any] | None]] = ContextVar("sender and recipient", default=None)
"""What serializers with a parameter `context` are told, where the connection is known."""


def has_better_way(value: object) -> bool:
    """Whether plain pickle might copy, or send, more memory of `value` than there is to it.

    That is so for numpy's arrays that repeat one part (`da.ones` makes such), for slices of Arrow's
    tables, and for tensors.  Looks at the value itself only.  Cost: 0.1 us.
    """
    name = type(value).__name__
    return 0 in getattr(value, "strides", ()) if name == "ndarray" else name in BETTER_NAMES


def holds_copies(stream: bytes) -> bool:
    """Whether a stream has memory in it that could travel beside it.  Cost: O(bytes)."""
    return _BETTER_IN_STREAM in stream


def needs_value(stream: bytes) -> bool:
    """Whether a stream names what another process can't import, so that it has to go by value."""
    return MAIN in stream or is_by_value()


def is_by_value() -> bool:
    """Whether the user told cloudpickle about modules that workers can't import."""
    module = sys.modules.get("cloudpickle")
    return module is not None and bool(module.list_registry_pickle_by_value())
