"""Plain graphs made ready for sending: converted, culled, fused, ordered, pickled slice by slice.

Of a large graph the first tasks leave before the rest was even looked at: finding and ordering
100,000 tasks takes long enough for workers to finish many.  Nothing recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from dask.utils import key_split

from shoal.client.bundles import BundleWriter
from shoal.client.finding import Finding, Tasks
from shoal.client.fusing import joined
from shoal.client.machine.lineage import letting_go
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
HEAD_GRAPH_TASKS_MIN: Final = 2000
"""A smaller graph is ordered within milliseconds, so it gets no head."""


class Slice(NamedTuple):
    """What leaves at once."""

    bundles: list[tuple[CodeId, bytes]]
    message: SubmitTasks
    wanted_keys: list[Any]  # in the user's form, of the message's `wanted`
    nbytes: int  # of all bundles


class Graph(Finding):
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
        super().__init__(tasks, wanted, find_live)
        self._writer = BundleWriter()
        self._nordered = 0
        self._last_uses: list[int] | None = None  # by number of the last dependent
        self._is_open = False  # whether slices were sent, and the last one was not
        self._held: dict[int, None] = {}  # tasks that slices to come may refer to,
        self._held_until: dict[int, list[int]] = {}  # those of them by number of the last to do so
        self._prefixes: dict[str, str] = {}
        self.ntasks_max = len(self._keys) + self._nconstants_max  # numbers are cheap

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
        return letting_go(numbers, ClientTaskId(first + self._nordered), first)

    @property
    def ntasks(self) -> int:
        """How many tasks were given numbers so far; final once `slices` is exhausted."""
        return self._nordered

    # --- order -------------------------------------------------------------------------------

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
