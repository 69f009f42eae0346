"""Plain graphs made ready for sending: converted, culled, fused, ordered, pickled slice by slice.

Of a large graph the first tasks leave before the rest was even looked at: finding and ordering
100,000 tasks takes long enough for workers to finish many.  Nothing recurses.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from dask.utils import key_split

from shoal.client.bundles import BundleWriter
from shoal.client.constants import Constants, new_constant, with_reference
from shoal.client.conversion import Node, is_alias_of_itself, to_node
from shoal.client.errors import CyclicGraph, MissingKey
from shoal.client.fusing import find_chains, is_fusible, joined
from shoal.client.ordering import order_tasks
from shoal.ids import ClientTaskId, CodeId
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import SubmitTasks, TaskOptions

BUNDLE_TASKS_MAX: Final = 64
"""Tasks pickled together; measured: 64 takes a quarter of the time of one by one, 256 is slower."""
BUNDLE_BYTES_MAX: Final = 64 * 1024
"""A bundle beyond this is cut: a worker reads all of it to run one of its tasks."""
SLICE_TASKS_MAX: Final = 1000
"""Tasks of one message."""
HEAD_TASKS: Final = 256
"""Tasks that leave before the graph was looked at as a whole."""
HEAD_GRAPH_TASKS_MIN: Final = 2000
"""A smaller graph is ordered within milliseconds, so it gets no head."""
HEAD_VISITED_MAX: Final = 20_000
"""Tasks looked at for the head's sake."""
CONSTANTS_MIN: Final = 1000
"""Of the constants that tasks share so many may become tasks, and one more for each task."""

_OPEN, _DONE = 1, 2


class Slice(NamedTuple):
    """What leaves at once."""

    bundles: list[tuple[CodeId, bytes]]
    message: SubmitTasks
    wanted_keys: list[Any]  # in the user's form, of the message's `wanted`
    nbytes: int  # of all bundles


class Tasks(NamedTuple):
    """A plain graph, and what is known about its tasks beyond what they call."""

    by_key: Mapping[Any, Any]  # user's key -> task, in dask's old or new form
    fusible: Collection[Any] = ()  # keys of tasks that may be made one with their neighbours
    lazy: Collection[Any] = ()  # keys of tasks of bags
    options_by_key: Mapping[Any, TaskOptions] = {}  # where they are not those of the graph


class Graph:
    """One graph on its way out; `slices` may be gone through once.

    Args:
        tasks: what to send; what none of the wanted keys needs is left out.
        wanted: user's keys.
        find_live: number of a key that the client wants already, which is then neither sent nor
            looked into; None if it does not.

    Cost: 8 to 12 us per task for small ones, in `slices`.
    """

    def __init__(
        self,
        tasks: Tasks,
        wanted: Sequence[Any],
        find_live: Callable[[Any], ClientTaskId | None],
    ) -> None:
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
        self._writer = BundleWriter()
        self._nordered = 0
        self._last_uses: list[int] | None = None  # by number of the last dependent
        self._is_open = False  # whether slices were sent, and the last one was not
        self._held: dict[int, None] = {}  # tasks that slices to come may refer to,
        self._held_until: dict[int, list[int]] = {}  # those of them by number of the last to do so
        self._prefixes: dict[str, str] = {}
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
        self.ntasks_max = n + self._nconstants_max  # numbers are cheap

    def slices(
        self,
        first: ClientTaskId,
        new_code: Callable[[], CodeId],
        options: TaskOptions | None = None,
    ) -> Iterator[Slice]:
        """The graph in messages, dependencies before dependents.

        Args:
            first: number of the first task; `ntasks_max` numbers are ours.

        Raises:
            CyclicGraph, MissingKey, UnpicklableTask: possibly after some slices were yielded.
        """
        wanted = self._is_wanted
        size = BUNDLE_TASKS_MAX
        for order, nahead in self._orders(first):
            for start in range(0, len(order), SLICE_TASKS_MAX):
                part = order[start : start + SLICE_TASKS_MAX]
                bundles, codes, arguments, size = self._bundles(part, new_code, size)
                here = [place for place, i in enumerate(part) if i in wanted]
                held, let_go = self._hold(part)
                message = SubmitTasks(
                    first=ClientTaskId(self._numbers[part[0]]),
                    keys=[to_canonical(self._keys[i]) for i in part],
                    codes=codes,
                    arguments=arguments,
                    dependencies=self._dependency_numbers(part),
                    **self._prefix_columns(part),
                    **self._option_columns(part, options),
                    wanted=here,
                    held=held,
                    let_go=let_go,
                    graph=first,
                    ntasks_ahead=nahead + len(order) - start - len(part),
                )
                nbytes = sum(len(payload) for _, payload in bundles)
                self._is_open = message.ntasks_ahead > 0
                yield Slice(bundles, message, [self._keys[part[place]] for place in here], nbytes)

    def abandon(self, first: ClientTaskId) -> SubmitTasks | None:
        """What ends a graph whose last slice will not come; None if none was sent, or all were."""
        if not self._is_open:
            return None
        self._is_open = False
        numbers = [ClientTaskId(self._numbers[i]) for i in self._held]
        self._held.clear()
        return SubmitTasks(
            first=ClientTaskId(first + self._nordered),
            keys=[],
            codes=[],
            arguments=[],
            dependencies=[],
            prefixes=[""],
            prefix_indices=[],
            wanted=[],
            let_go=numbers,
            graph=first,
        )

    @property
    def ntasks(self) -> int:
        """How many tasks were given numbers so far; final once `slices` is exhausted."""
        return self._nordered

    # --- finding and ordering ----------------------------------------------------------------

    def _orders(self, first: ClientTaskId) -> Iterator[tuple[list[int], int]]:
        """Tasks in the order of their numbers, and how many follow at most."""
        if len(self._keys) >= HEAD_GRAPH_TASKS_MIN:
            head = self._head()
            self._number(head, first)
            if head:
                yield head, len(self._keys) - self._nordered
        needed, heights = self._find_needed()
        if self._constants:
            needed = self._share_constants(heights) + needed
        needed = self._fuse(needed)
        rest = order_tasks(self._dependencies, self._roots, needed, heights)
        self._number(rest, first)
        if rest:
            last_uses = self._last_uses = self._find_last_uses(rest)
            for i in self._held:  # of the head
                self._held_until.setdefault(last_uses[i], []).append(i)
            yield rest, 0

    def _find_last_uses(self, order: list[int]) -> list[int]:
        """Of each task the number of its last dependent; of the order's first, if none is known."""
        numbers = self._numbers
        last_uses = [numbers[order[0]]] * len(self._keys)
        for i in order:
            number = numbers[i]
            for j in self._dependencies[i]:
                last_uses[j] = number  # numbers ascend, so the last one stays
        return last_uses

    def _hold(self, part: list[int]) -> tuple[list[int], list[ClientTaskId]]:
        """Places of tasks that later slices refer to, and held ones that they don't any more.

        A head is sent before anybody knows who refers to it, so all of it is held.
        """
        last, last_uses, numbers = self._numbers[part[-1]], self._last_uses, self._numbers
        let_go = []
        if last_uses is None:
            held = list(range(len(part)))
        else:
            for number in range(numbers[part[0]], last + 1):
                for i in self._held_until.pop(number, ()):
                    del self._held[i]
                    let_go.append(ClientTaskId(numbers[i]))
            held = [place for place, i in enumerate(part) if last_uses[i] > last]
            for i in [part[place] for place in held]:
                self._held_until.setdefault(last_uses[i], []).append(i)
        self._held.update(dict.fromkeys([part[place] for place in held]))
        return held, let_go

    def _number(self, order: list[int], first: ClientTaskId) -> None:
        number = first + self._nordered
        for i in order:
            self._numbers[i] = number
            number += 1
        self._nordered += len(order)

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
        if is_alias_of_itself(node):
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

    # --- columns -----------------------------------------------------------------------------

    def _bundles(
        self, part: list[int], new_code: Callable[[], CodeId], size: int
    ) -> tuple[list[tuple[CodeId, bytes]], list[CodeId], list[bytes | int], int]:
        """Pickle neighbours together: (bundles, code of each task, its place, next size to try)."""
        bundles: list[tuple[CodeId, bytes]] = []
        codes: list[CodeId] = []
        arguments: list[bytes | int] = []
        start = 0
        while start < len(part):
            ntasks = min(size, len(part) - start)
            members = part[start : start + ntasks]
            items = [self._item(i) for i in members]
            payload = self._writer.write(items, [self._keys[i] for i in members])
            if len(payload) > BUNDLE_BYTES_MAX and ntasks > 1:
                size = max(1, min(ntasks // 2, BUNDLE_BYTES_MAX * ntasks // len(payload)))
                continue
            code = new_code()
            bundles.append((code, payload))
            codes += [code] * ntasks
            arguments += range(ntasks)
            start += ntasks
            if len(payload) < BUNDLE_BYTES_MAX // 4:
                size = min(2 * size, BUNDLE_TASKS_MAX)
        return bundles, codes, arguments, size

    def _item(self, i: int) -> tuple[Any, tuple[Any, ...]]:
        keys = self._keys
        names = [keys[j] for j in self._dependencies[i]]
        if i in self._live:
            names += [key for key, _ in self._live[i]]
        chain = self._chains.get(i)
        if chain is None:
            return self._nodes[i], tuple(names)
        nodes = [self._nodes[j] for j in chain]
        return joined(nodes, [keys[j] for j in chain], self._tasks.lazy), tuple(names)  # type: ignore[arg-type]

    def _dependency_numbers(self, part: list[int]) -> list[list[ClientTaskId]]:
        numbers: list[Any] = self._numbers
        columns = [[numbers[j] for j in self._dependencies[i]] for i in part]
        if self._live:
            for column, i in zip(columns, part, strict=True):
                column += [number for _, number in self._live.get(i, ())]
        return columns if any(columns) else []

    def _prefix_columns(self, part: list[int]) -> dict[str, Any]:
        index_by_prefix: dict[str, int] = {}
        indices = []
        for i in part:
            prefix = self._prefix(self._keys[i])
            indices.append(index_by_prefix.setdefault(prefix, len(index_by_prefix)))
        return {
            "prefixes": list(index_by_prefix),
            "prefix_indices": indices if len(index_by_prefix) > 1 else [],
        }

    def _option_columns(self, part: list[int], options: TaskOptions | None) -> dict[str, Any]:
        options_by_key = self._tasks.options_by_key
        if not options_by_key:
            return {"options": options}
        others: list[TaskOptions] = []
        index_by_id: dict[int, int] = {}
        indices = []
        for i in part:
            own = options_by_key.get(self._keys[i])
            if own is None:
                indices.append(0)
                continue
            index = index_by_id.get(id(own))
            if index is None:
                others.append(own)
                index = index_by_id[id(own)] = len(others)
            indices.append(index)
        columns = {"options": options, "other_options": others, "option_indices": indices}
        return columns if others else {"options": options}

    def _prefix(self, key: Any) -> str:
        """`key_split`, remembered for all keys that differ in a numbered end only."""
        name = key[0] if type(key) is tuple and key else key
        if type(name) is not str:
            return str(key_split(name))
        head, dash, tail = name.rpartition("-")
        known = name if not dash or tail.isalpha() else head
        prefix = self._prefixes.get(known)
        if prefix is None:
            prefix = self._prefixes[known] = str(key_split(name))
        return prefix


@contextmanager
def paused_collection() -> Iterator[None]:
    """No garbage collection inside: it would go through every task again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
