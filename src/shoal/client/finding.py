"""The tasks of a graph that are needed: found, converted, fused.  Nothing recurses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from shoal.client.constants import Constants, new_constant, with_reference
from shoal.client.conversion import Node, is_alias_of, to_node
from shoal.client.errors import CyclicGraph, MissingKey
from shoal.client.fusing import find_chains, is_fusible
from shoal.ids import ClientTaskId
from shoal.protocol.messages import TaskOptions

HEAD_TASKS: Final = 256
"""Tasks that leave before the graph was looked at as a whole."""
HEAD_VISITED_MAX: Final = 20_000
"""Tasks looked at for the head's sake."""
CONSTANTS_MIN: Final = 1000
"""Of the constants that tasks share so many may become tasks, and one more for each task."""

_OPEN, _DONE = 1, 2


class Tasks(NamedTuple):
    """A plain graph, and what is known about its tasks beyond what they call."""

    by_key: Mapping[Any, Any]  # user's key -> task, in dask's old or new form
    fusible: Collection[Any] = ()  # keys of tasks that may be made one with their neighbours
    lazy: Collection[Any] = ()  # keys of tasks of bags
    options_by_key: Mapping[Any, TaskOptions] = {}  # where they are not those of the graph


class Finding:
    """The part of a graph that looks for its tasks; a task is known by its place in `_keys`."""

    def __init__(
        self,
        tasks: Tasks,
        wanted: Sequence[Any],
        find_live: Callable[[Any], ClientTaskId | None],
    ) -> None:
        """See `Graph`."""
        self._tasks = tasks
        self._find_live = find_live
        self._keys: list[Any] = list(tasks.by_key)
        self._index_by_key = {key: i for i, key in enumerate(self._keys)}
        n = len(self._keys)
        self._nodes: list[Node | None] = [None] * n
        self._dependencies: list[list[int]] = [[]] * n
        self._live: dict[int, list[tuple[Any, ClientTaskId]]] = {}  # inputs that are not sent
        self._chains: dict[int, list[int]] = {}  # the last one of several tasks made one -> all
        self._numbers: list[int] = [-1] * n
        self._constants = Constants()
        self.live_wanted: dict[Any, ClientTaskId] = {}
        self._roots: list[int] = []
        for key in dict.fromkeys(wanted):
            number = find_live(key)
            if number is not None:
                self.live_wanted[key] = number
            elif key in self._index_by_key:
                self._roots.append(self._index_by_key[key])
            else:
                raise MissingKey(key)
        self._is_wanted = frozenset(self._roots)
        self._nconstants_max = n + CONSTANTS_MIN

    def _head(self) -> list[int]:
        """The first tasks of a plain depth-first order, without looking at all."""
        order: list[int] = []
        marks = bytearray(len(self._keys))
        stack = self._roots[::-1]
        nvisited = 0
        while stack and len(order) < HEAD_TASKS and nvisited < HEAD_VISITED_MAX:
            i = stack.pop()
            if i < 0:
                marks[~i] = _DONE
                order.append(~i)
            elif not marks[i]:
                nvisited += 1
                marks[i] = _OPEN
                stack.append(~i)
                stack.extend(reversed(self._find(i)))
            elif marks[i] == _OPEN:
                raise self._cycle(stack, i)
        # There always is a rest, which lets go of the head; constants are to be shared by all.
        return order if stack and not self._constants else []

    def _find_needed(self) -> tuple[list[int], list[int]]:
        """What is needed and has no number, dependencies first; the longest way down of each."""
        needed: list[int] = []
        heights = [0] * len(self._keys)
        marks = bytearray(len(self._keys))
        dependencies, numbers, nodes = self._dependencies, self._numbers, self._nodes
        stack = self._roots[::-1]
        while stack:
            i = stack.pop()
            if i < 0:
                i = ~i
                marks[i] = _DONE
                heights[i] = 1 + max([heights[j] for j in dependencies[i]])
                needed.append(i)
            elif not marks[i]:
                if numbers[i] >= 0:
                    marks[i] = _DONE
                    continue
                needs = dependencies[i] if nodes[i] is not None else self._find(i)
                if needs:
                    marks[i] = _OPEN
                    stack.append(~i)
                    stack.extend(needs)
                else:
                    marks[i] = _DONE
                    heights[i] = 1
                    needed.append(i)
            elif marks[i] == _OPEN:
                raise self._cycle(stack, i)
        return needed, heights

    def _share_constants(self, heights: list[int]) -> list[int]:
        """Make tasks of large constants that several tasks hold; returns their places."""
        made = []
        for value, holders in self._constants.shared()[: self._nconstants_max]:
            constant = new_constant(value)
            place = len(self._keys)
            made.append(place)
            self._keys.append(constant.key)
            self._nodes.append(constant)
            self._dependencies.append([])
            self._numbers.append(-1)
            heights.append(1)
            for i in holders:
                node = self._nodes[i]
                assert node is not None
                self._nodes[i] = with_reference(node, constant)
                self._dependencies[i] = [*self._dependencies[i], place]
        return made

    def _fuse(self, needed: list[int]) -> list[int]:
        """Make chains of tasks one each; returns those of `needed` that are left."""
        fusible = self._tasks.fusible
        if not fusible:
            return needed
        keys, nodes, live, numbers = self._keys, self._nodes, self._live, self._numbers
        options = self._tasks.options_by_key

        def may_end(j: int) -> bool:
            return numbers[j] < 0 and j not in self._is_wanted and keys[j] in fusible

        def may_fuse(i: int, j: int) -> bool:
            return (
                i not in live
                and keys[i] in fusible
                and (not options or options.get(keys[i]) is options.get(keys[j]))
                and is_fusible(nodes[i])
                and is_fusible(nodes[j])
            )

        self._chains = find_chains(needed, self._dependencies, may_end, may_fuse)
        inner: set[int] = set()
        for last, chain in self._chains.items():
            inner.update(chain[:-1])
            self._dependencies[last] = self._dependencies[chain[0]]
            if chain[0] in live:
                live[last] = live[chain[0]]
        return [i for i in needed if i not in inner]

    def _find(self, i: int) -> list[int]:
        """Convert a task and find its inputs, by their places in the graph."""
        key = self._keys[i]
        index_by_key, find_live = self._index_by_key, self._find_live
        node, needs = to_node(key, self._tasks.by_key[key], index_by_key)
        self._nodes[i] = node
        self._constants.note(i, node)
        if not needs:
            return []
        if is_alias_of(node, key):
            raise MissingKey(key)  # a future of this key, which would have been found alive
        inside: list[int] = []
        for dependency in needs:
            number = find_live(dependency)
            if number is not None:
                self._live.setdefault(i, []).append((dependency, number))
                continue
            j = index_by_key.get(dependency)
            if j is None:
                raise MissingKey(dependency, key)
            inside.append(j)
        if len(inside) > 1:
            inside.sort()  # a graph's own order, where a set's would change from run to run
        self._dependencies[i] = inside
        return inside

    def _cycle(self, stack: list[int], i: int) -> CyclicGraph:
        """Those begun and not ended since `i` are the way from `i` back to itself."""
        begun = [~j for j in stack[stack.index(~i) :] if j < 0]
        return CyclicGraph([self._keys[j] for j in begun])
