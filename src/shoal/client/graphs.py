"""Plain graphs made ready for sending: converted, culled, ordered, and pickled slice by slice.

The order is depth first with the deepest input first, so that a result is used soon after it was
made and few are alive at once.  Nothing recurses, so a chain of 100,000 tasks is no different from
a wide graph.  Of a large graph the first tasks leave before the rest was even looked at: finding
and ordering 100,000 tasks takes long enough for workers to finish many.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from dask._task_spec import GraphNode
from dask.utils import key_split

from shoal.client.bundles import BundleWriter, is_alias_of_itself, to_node
from shoal.client.errors import CyclicGraph, MissingKey
from shoal.ids import ClientTaskId, CodeId
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import SubmitTasks, TaskOptions

BUNDLE_TASKS_MAX: Final = 64
"""Tasks pickled together; measured: 64 takes a quarter of the time of one by one, 256 is slower."""
BUNDLE_BYTES_MAX: Final = 64 * 1024
"""A bundle beyond this is cut: a worker reads all of it to run one of its tasks."""
SLICE_TASKS_MAX: Final = 4000
"""Tasks of one message."""
HEAD_TASKS: Final = 256
"""Tasks that leave before the graph was looked at as a whole."""
HEAD_GRAPH_TASKS_MIN: Final = 2000
"""A smaller graph is ordered within milliseconds, so it gets no head."""
HEAD_VISITED_MAX: Final = 20_000
"""Tasks looked at for the head's sake."""

_OPEN, _DONE = 1, 2


class Slice(NamedTuple):
    """What leaves at once."""

    bundles: list[tuple[CodeId, bytes]]
    message: SubmitTasks
    wanted_keys: list[Any]  # in the user's form, of the message's `wanted`
    nbytes: int  # of all bundles


class Graph:
    """One graph on its way out; `slices` may be gone through once.

    Args:
        tasks: user's key -> task, in dask's old or new form.
        wanted: user's keys; what none of them needs is left out.
        find_live: number of a key that the client wants already, which is then neither sent nor
            looked into; None if it does not.

    Cost: 6 to 10 us per task for small ones, in `slices`.
    """

    def __init__(
        self,
        tasks: Mapping[Any, Any],
        wanted: Sequence[Any],
        find_live: Callable[[Any], ClientTaskId | None],
    ) -> None:
        self._tasks = tasks
        self._find_live = find_live
        self._keys: list[Any] = list(tasks)
        self._index_by_key = {key: i for i, key in enumerate(self._keys)}
        n = len(self._keys)
        self._nodes: list[GraphNode | None] = [None] * n
        self._dependencies: list[list[int]] = [[]] * n
        self._live: dict[int, list[tuple[Any, ClientTaskId]]] = {}  # inputs that are not sent
        self._numbers: list[int] = [-1] * n
        self._writer = BundleWriter()
        self._nordered = 0
        self._last_uses: list[int] | None = None  # by number of the last dependent
        self._is_open = False  # whether slices were sent, and the last one was not
        self._held: dict[int, None] = {}  # tasks that slices to come may refer to
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
        self.ntasks_max = n

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
        wanted = set(self._roots)
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
                    options=options,
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
        rest = self._ordered(self._heights())
        self._number(rest, first)
        self._last_uses = self._find_last_uses(rest)
        if rest:
            yield rest, 0

    def _find_last_uses(self, order: list[int]) -> list[int]:
        """Of each task the number of its last dependent; -1: none, or none known."""
        last_uses = [-1] * len(self._keys)
        numbers = self._numbers
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
            for i in [i for i in self._held if last_uses[i] <= last]:
                del self._held[i]
                let_go.append(ClientTaskId(numbers[i]))
            held = [place for place, i in enumerate(part) if last_uses[i] > last]
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
        return order if stack else []  # so there always is a rest, which lets go of the head

    def _heights(self) -> list[int]:
        """Of each task that is needed and has no number: the longest way down; else 0."""
        heights = [0] * len(self._keys)
        marks = bytearray(len(self._keys))
        dependencies, numbers, nodes = self._dependencies, self._numbers, self._nodes
        stack = self._roots[::-1]
        while stack:
            i = stack.pop()
            if i < 0:
                i = ~i
                marks[i] = _DONE
                needs = dependencies[i]
                heights[i] = 1 + max([heights[j] for j in needs]) if needs else 1
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
            elif marks[i] == _OPEN:
                raise self._cycle(stack, i)
        return heights

    def _ordered(self, heights: list[int]) -> list[int]:
        """All needed tasks without a number, depth first, the deepest input first."""
        order: list[int] = []
        marks = bytearray(len(self._keys))
        dependencies, numbers = self._dependencies, self._numbers
        stack = self._roots[::-1]
        while stack:
            i = stack.pop()
            if i < 0:
                order.append(~i)
            elif not marks[i] and numbers[i] < 0:
                marks[i] = _DONE
                needs = dependencies[i]
                if not needs:
                    order.append(i)
                elif len(needs) == 1:
                    stack += (~i, needs[0])
                else:
                    stack.append(~i)
                    stack += sorted(needs, key=heights.__getitem__, reverse=True)[::-1]
        return order

    def _find(self, i: int) -> list[int]:
        """Convert a task and find its inputs, by their places in the graph."""
        key = self._keys[i]
        node = self._nodes[i] = to_node(key, self._tasks[key], self._index_by_key)
        if is_alias_of_itself(node):
            raise MissingKey(key)  # a future of this key, which would have been found alive
        inside: list[int] = []
        for dependency in node.dependencies:
            number = self._find_live(dependency)
            if number is not None:
                self._live.setdefault(i, []).append((dependency, number))
                continue
            j = self._index_by_key.get(dependency)
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
            items = [self._item(i) for i in part[start : start + ntasks]]
            payload = self._writer.write(items)
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
        return self._nodes[i], tuple(names)

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
