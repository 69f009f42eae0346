"""Groups of tasks: those whose keys have a part in common, as one collection's have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dask.utils import key_split

_DONE: Final = ("memory", "erred", "released", "forgotten")
_HASH: Final = re.compile(r"[0-9a-f]{8,}")


@dataclass(slots=True)
class TaskGroup:
    """Tasks whose keys have a part in common, as they were when they were counted."""

    name: str
    prefix: Any
    states: dict[str, int]
    """How many are in each state."""
    types: set[str] = field(default_factory=set)
    """Of their results, as far as they are known."""
    nbytes_total: int = 0
    """Of their results in memory."""
    dependencies: set[str] = field(default_factory=set)
    """Names of the groups that they need, of others."""

    def __len__(self) -> int:
        return sum(self.states.values())

    @property
    def done(self) -> bool:
        """Whether none has anything left to do."""
        return sum(self.states[state] for state in _DONE) == len(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{state}: {n}" for state, n in self.states.items() if n)
        return f"<{self.name}: {shown}>"


def grouped(tasks: Iterable[Any]) -> dict[str, TaskGroup]:
    """Views of tasks, counted by the groups that their keys say."""
    groups: dict[str, TaskGroup] = {}
    for task in tasks:
        name = task.group_key
        group = groups.get(name)
        if group is None:
            group = groups[name] = TaskGroup(
                name, task.prefix, dict.fromkeys(task.prefix.states, 0)
            )
        group.states[task.state] += 1
        group.nbytes_total += max(0, task.nbytes)
        if task.type:
            group.types.add(task.type)
        others = {other.group_key for other in task.dependencies} - {name}
        group.dependencies.update(others)
    return groups


def key_split_group(x: object) -> str:
    """What tasks of one collection have in common: `("x-1", 0)` and `"('x-1', 5)"` give `x-1`.

    A key that is a text alone gives its prefix, and so does what is no key.
    """
    if isinstance(x, bytes):
        x = x.decode()
    if isinstance(x, tuple) and x:
        return str(x[0])
    if not isinstance(x, str):
        return "Other"
    if x.startswith("("):
        return x[1:].partition(",")[0].strip("()\"' ")
    if len(x) == 32 and _HASH.fullmatch(x):
        return "data"
    if x.startswith("<"):
        return x.strip("<>").partition(" ")[0].rpartition(".")[2]
    return str(key_split(x))
