"""What must leave a worker before it may go, where to, and which workers may go at all?"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Final

from shoal.protocol.membership import Closing
from shoal.scheduler.model.entities import MEMORY, Task, Worker
from shoal.scheduler.policies.replicas import MEMORY_ASSUMED, fullness

CRAMPED_LOOKED_AT: Final = 8
"""Workers without room for a result that are passed over, the emptiest of them first."""


def is_only_with(task: Task, leaving: Mapping[Worker, object]) -> bool:
    """Whether the result would be lost with the workers that are `leaving`."""
    if task.state != MEMORY or (task.value is not None and not task.options.actor):
        return False
    return all(holder in leaving or holder.is_leaving for holder in task.who_has or ())


def who_stays(going: Sequence[Worker], others: Iterable[Worker]) -> Worker | None:
    """If nobody stays who could take what they hold: the one that keeps its own and takes theirs.

    The one with the most that only they have; None if others can take it, or there is nothing.
    """
    if any(worker.takes_work for worker in others):
        return None
    leaving = dict.fromkeys(going)
    held = [
        (sum(task.nbytes for task in worker.has_what if is_only_with(task, leaving)), worker)
        for worker in going
    ]
    nbytes, fullest = max(held, key=lambda pair: pair[0], default=(0, None))
    return fullest if nbytes > 0 else None


class Takers:
    """Who takes the results of workers that go: the emptiest that stays, one result after another.

    Cost: O(workers) for the first result, O(log workers) for each other one.
    """

    __slots__ = ("_coming", "_heap", "_newest", "_workers")

    def __init__(self, workers: Iterable[Worker], coming_nbytes: Mapping[Worker, int]) -> None:
        """Both are read at the first choice: mostly there is none to be made."""
        self._workers = workers
        self._newest = coming_nbytes
        self._coming: dict[Worker, int] = {}
        self._heap: list[tuple[float, int, Worker]] | None = None

    def _first_heap(self) -> list[tuple[float, int, Worker]]:
        """All that stay; from now on we count ourselves what is on its way."""
        coming = self._coming = dict(self._newest)
        heap: list[tuple[float, int, Worker]] = [
            (fullness(worker, coming.get(worker, 0)), worker.id, worker)
            for worker in self._workers
            if worker.takes_work
        ]
        heapify(heap)
        return heap

    def choose(self, task: Task, refused: Mapping[Worker, object]) -> Worker | None:
        """Who takes `task`; None if nobody can.

        The emptiest whose memory limit it leaves room for; if none of a few does, the emptiest,
        which has a disk.
        """
        heap = self._heap
        if heap is None:
            heap = self._heap = self._first_heap()
        passed: list[tuple[float, int, Worker]] = []
        cramped: list[tuple[float, int, Worker]] = []
        chosen: tuple[float, int, Worker] | None = None
        while heap and chosen is None and len(cramped) < CRAMPED_LOOKED_AT:
            entry = heappop(heap)
            worker = entry[2]
            if worker in refused or task in worker.has_what:
                passed.append(entry)
            elif worker.memory_limit and self._with(task, worker) > 1:
                cramped.append(entry)
            else:
                chosen = entry
        if chosen is None and cramped:
            chosen = cramped.pop(0)
        for entry in (*passed, *cramped):
            heappush(heap, entry)
        if chosen is None:
            return None
        worker = chosen[2]
        heappush(heap, (self._with(task, worker), worker.id, worker))
        self._coming[worker] = self._coming.get(worker, 0) + task.nbytes
        return worker

    def _with(self, task: Task, worker: Worker) -> float:
        """How full the worker is with that result as well."""
        return fullness(worker, self._coming.get(worker, 0) + task.nbytes)


def workers_to_close(
    workers: Iterable[Worker],
    closing: Closing,
    group_of: Callable[[Worker], object] | None = None,
) -> list[Worker]:
    """Which workers may go, the emptiest first; those that have something to do stay.

    They are told apart by groups, which go or stay as a whole: those with one that is kept stay,
    and so do those where a task has seceded, or an actor lives, since what these have done would be
    lost; and those with a suspect, of which nobody knows what it has.
    Unless it is said how many, workers go as long as those that are left have `memory_ratio` (2)
    times the memory that results take.

    Args:
        group_of: which group each is of, instead of what `closing` says.
    """
    there = [worker for worker in workers if not worker.is_leaving]
    groups: dict[object, list[Worker]] = {}
    for worker in there:
        name: object = worker.host if closing.group == "host" else worker.address
        if group_of is not None:
            name = group_of(worker)
        groups.setdefault(name, []).append(worker)
    kept = dict.fromkeys(closing.kept)
    free = [
        group
        for group in groups.values()
        if not any(
            w.address in kept or w.has_long_running or w.actors or w.silence is not None
            for w in group
        )
    ]
    idle = [group for group in free if not any(w.processing for w in group)]
    busy = [group for group in free if any(w.processing for w in group)]
    order = sorted(idle, key=_nbytes)
    nmax = _nmax(there, closing)
    ratio = closing.memory_ratio
    if nmax is None and ratio is None:
        ratio = 2.0
    elif nmax is not None:
        order += sorted(busy, key=_nbytes)  # so many are to go, and those are the last
    limit = _memory(there)
    held = sum(worker.nbytes for worker in there)
    chosen: list[Worker] = []
    for group in order:
        if closing.minimum is not None and len(there) - len(chosen) - len(group) < closing.minimum:
            break
        if nmax is not None and len(chosen) + len(group) > nmax:
            continue  # a smaller group may still do
        limit -= _memory(group)
        if ratio is not None and limit < ratio * held:
            break
        chosen += group
    return chosen


def _nmax(there: Sequence[Worker], closing: Closing) -> int | None:
    if closing.n is not None:
        return closing.n
    return None if closing.target is None else max(0, len(there) - ceil(closing.target))


def _memory(workers: Iterable[Worker]) -> float:
    """Bytes that these have in all."""
    return sum(worker.memory_limit or MEMORY_ASSUMED for worker in workers)


def _nbytes(group: Sequence[Worker]) -> int:
    return sum(worker.nbytes for worker in group)
