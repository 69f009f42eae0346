"""What stands for a result and is no future: actors, and the futures of calls to them."""

from __future__ import annotations

import sys
from typing import Any

from dask._task_spec import TaskRef


class StandIn(TaskRef):
    """What stands for a result that is elsewhere, and can be an argument of a task."""

    __slots__ = ()

    @property
    def bound_future(self) -> Any:
        """The `Future` that it has already; None if it has none."""
        return None

    def future_for(self, face: Any) -> Any:
        """A `Future` of the result, of the client that its user holds."""
        return self.bound_future


def calls_in(container: Any) -> list[Any]:
    """The futures of calls to actors inside nested builtin containers, each once, in order.

    Cost: nothing in programs without actors.
    """
    actors = sys.modules.get("shoal.client.actors.futures")
    if actors is None:
        return []
    found: dict[Any, None] = {}
    stack = [container]
    while stack:
        part = stack.pop()
        if type(part) is actors.Future:
            continue  # most are
        if isinstance(part, actors.BaseActorFuture):
            found[part] = None
        elif isinstance(part, (list, tuple, set, frozenset)):
            stack.extend(reversed(list(part)))
        elif isinstance(part, dict):
            stack.extend(reversed(list(part.values())))
    return list(found)
