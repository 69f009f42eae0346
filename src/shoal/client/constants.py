"""Large constants that several tasks of a graph share travel once, as a task of their own.

In a bundle each would be pickled with every few tasks that hold it.  As a task, its value goes to
one worker, and from there to those that need it.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from dask._task_spec import DataNode, Task, TaskRef

from shoal.client.conversion import Node
from shoal.protocol.bundled import Call

LARGE_BYTES_MIN: Final = 64 * 1024
"""A smaller constant takes no more than a bundle may take anyway."""

_NO_CONSTANTS: Final = frozenset(
    (int, float, bool, complex, type(None), slice, type, TaskRef, Call)
)


class Constants:
    """The large constants of a graph, and who holds them."""

    def __init__(self) -> None:
        self._holders: dict[int, tuple[Any, list[int]]] = {}  # by id: the value, places of tasks

    def __len__(self) -> int:
        return len(self._holders)

    def note(self, i: int, node: Node) -> None:
        """Look for large constants among the arguments of the task at place `i`.

        Cost: 0.1 us per argument.
        """
        if not isinstance(node, (Call, Task)):
            return
        for argument in node.args:
            if type(argument) not in _NO_CONSTANTS:
                value = argument.value if type(argument) is DataNode else argument
                if _is_large(value):
                    self._holders.setdefault(id(value), (value, []))[1].append(i)

    def shared(self) -> list[tuple[Any, list[int]]]:
        """Values that more than one task holds, and the places of those, each once."""
        found = [(value, list(dict.fromkeys(places))) for value, places in self._holders.values()]
        return [(value, places) for value, places in found if len(places) > 1]


def new_constant(value: Any) -> DataNode:
    """A task for a constant."""
    return DataNode(f"constant-{uuid4().hex}", value)


def with_reference(node: Node, constant: DataNode) -> Node:
    """The same task with a reference in place of the constant's value."""
    assert isinstance(node, (Call, Task))
    value, reference = constant.value, TaskRef(constant.key)
    arguments = tuple(
        [
            reference
            if argument is value or (type(argument) is DataNode and argument.value is value)
            else argument
            for argument in node.args
        ]
    )
    if isinstance(node, Call):
        return Call(node.func, arguments)
    return Task(node.key, node.func, *arguments, **node.kwargs)


def _is_large(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is bytes or kind is bytearray:
        return len(value) >= LARGE_BYTES_MIN
    if kind in (list, tuple, dict, set):
        return 8 * len(value) >= LARGE_BYTES_MIN
    if isinstance(value, TaskRef):
        return False  # it stands for something; an actor would be asked for what follows
    for name in ("nbytes", "size"):  # of arrays and series; cells of dataframes
        try:
            nbytes = getattr(value, name, None)
        except Exception:
            return False  # somebody's own object, and none of our business
        if type(nbytes) is int:
            return nbytes >= LARGE_BYTES_MIN
    return False
