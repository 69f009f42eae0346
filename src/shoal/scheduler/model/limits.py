"""How many tasks of a name may run at once in the whole cluster, how many do, and who waits.

There may be a name for each of thousands of hosts, so that most demands wait for a name of their
own: those are *parked* with it, and looked at when one of its runs has ended.
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from shoal.scheduler.model.demands import STALE_MAX, Demand, DemandKey, Entry
from shoal.scheduler.model.entities import Prefix


class Limits:
    """Counts of runs by the names that their tasks have, and the demands that have nothing else.

    A task that says how many there may be of its name runs while there are fewer; what is set for
    the name holds instead.
    """

    __slots__ = (
        "aside",
        "demands",
        "freed",
        "nruns",
        "nruns_max",
        "open",
        "parked",
        "passed",
        "serial",
    )

    def __init__(self, nruns_max: Mapping[str, int], demands: dict[DemandKey, Demand]) -> None:
        """
        Args:
            nruns_max: what is set, by name.
            demands: all that there are; those that any worker may meet go as they are empty.
        """
        self.demands = demands
        self.nruns_max = dict(nruns_max)
        self.nruns: dict[str, int] = {}  # out, or given up and not ended; none of them is zero
        self.open: dict[Prefix | None, list[Entry]] = {}
        """Heaps of demands that are not known to wait for a name, by the prefix of the most urgent
        task if that takes much memory: such a one may wait, and all of its kind with it."""
        self.parked: dict[str, dict[int, list[Entry]]] = {}  # by name and what is said of it
        self.freed: dict[str, None] = {}  # names of those, of which one more may run perhaps
        self.aside: list[Demand] = []  # that can't be met in this step
        self.passed: dict[Prefix, None] = {}  # whose tasks there is no memory for in this step
        self.serial = 0

    def reached(self, said: Mapping[str, int]) -> str:
        """A name of which no more may run, if tasks say so; "" if one more may run.

        Cost: O(names of the task).
        """
        for name, nruns_said in said.items():
            nruns_max = self.nruns_max.get(name, nruns_said or None)
            if nruns_max is not None and self.nruns.get(name, 0) >= nruns_max:
                return name
        return ""

    def count(self, said: Mapping[str, int]) -> None:
        """One more run has these names."""
        for name in said:
            self.nruns[name] = self.nruns.get(name, 0) + 1

    def discount(self, said: Mapping[str, int]) -> None:
        """A run with these names has ended."""
        for name in said:
            nruns = self.nruns[name] - 1
            if nruns:
                self.nruns[name] = nruns
            else:
                del self.nruns[name]
            self.free(name)

    def free(self, name: str) -> None:
        """One more of a name may run, perhaps."""
        if name in self.parked:
            self.freed[name] = None

    # --- demands that any worker may meet ----------------------------------------------------

    def enter(self, demand: Demand) -> None:
        """Put a demand where its most urgent task belongs, whether it was there or not; one
        without tasks goes."""
        task = demand.queue.peek()
        if task is None:
            demand.entry = None
            if self.demands.get(demand.key) is demand:
                del self.demands[demand.key]
            return
        self.serial += 1
        entry = demand.entry = (task.priority, task.id, self.serial, demand)
        if demand.parked_at is not None:
            name, said = demand.parked_at
            heap = self.parked.setdefault(name, {}).setdefault(said, [])
        else:
            heap = self.open.setdefault(task.prefix if task.prefix.weighs else None, [])
        heappush(heap, entry)
        if len(heap) > 2 * len(self.demands) + STALE_MAX:
            heap[:] = [e for e in heap if e[3].entry is e]
            heapify(heap)

    def first(self) -> Demand | None:
        """The demand with the most urgent task that may run; it stays.

        Cost: O(prefixes that weigh + log demands), and for each that has to wait for a name the
        same, once until a run of that name has ended.
        """
        while True:
            for name in list(self.freed):
                self._unpark_one(name)
            heap = self._most_urgent()
            if heap is None:
                return None
            entry = heap[0]
            demand = entry[3]
            if demand.entry is not entry:
                heappop(heap)
                continue
            task = demand.queue.peek()
            if task is None or task.id != entry[1]:
                heappop(heap)
                self.enter(demand)
            elif (name := self.reached(demand.limits)) != "":
                heappop(heap)
                demand.parked_at = name, demand.limits[name]
                self.enter(demand)
            elif task.prefix.weighs and task.prefix in self.passed:  # it was put there before
                heappop(heap)
                self.enter(demand)
            else:
                return demand

    def _most_urgent(self) -> list[Entry] | None:
        """The heap that has the first of those that are not passed."""
        found: list[Entry] | None = None
        for kind, heap in list(self.open.items()):
            if not heap:
                del self.open[kind]
            elif kind not in self.passed and (found is None or heap[0] < found[0]):
                found = heap
        return found

    def set_aside(self, demand: Demand) -> None:
        """The first one can't be met now: look at others until `take_up`.

        If it takes much memory, at others that don't.
        """
        task = demand.queue.peek()
        if task is not None and task.prefix.weighs and not task.blame:
            self.passed[task.prefix] = None
            return
        demand.entry = None
        self.aside.append(demand)

    def take_up(self) -> None:
        """Look at those again that were set aside."""
        self.passed.clear()
        aside, self.aside = self.aside, []
        for demand in aside:
            self.enter(demand)

    def _unpark_one(self, name: str) -> None:
        """Of each kind that waits for a name and may run now, look at the most urgent one."""
        kinds = self.parked.get(name, {})
        is_any_left = False
        for said, heap in list(kinds.items()):
            while heap and heap[0][3].entry is not heap[0]:
                heappop(heap)
            if not heap:
                del kinds[said]
            elif not self.reached({name: said}):
                demand = heappop(heap)[3]
                demand.parked_at = None
                self.enter(demand)
                is_any_left = True
        if not kinds:
            self.parked.pop(name, None)
        if not is_any_left or not kinds:
            self.freed.pop(name, None)

    def lost(self) -> Iterator[str]:
        """Demands that nobody would look at again; a sentence for each."""
        aside = dict.fromkeys(self.aside)
        for demand in self.demands.values():
            if not demand.is_for_any or demand.queue.peek() is None or demand in aside:
                continue
            heaps = list(self.open.values())
            if demand.parked_at is not None:
                name, said = demand.parked_at
                heaps = [self.parked.get(name, {}).get(said, [])]
                if name not in self.freed and not self.reached({name: said}):
                    yield f"{demand!r} waits for {name!r}, of which one more may run"
            if not any(demand.entry is entry for heap in heaps for entry in heap):
                yield f"{demand!r} waits, and nobody will look at it"
