"""Workers, links and time, all of them modelled; whoever places the tasks is plugged in.

A worker has threads, which take what is ready; results that it holds; and one way in and one way
out, each of which carries one value at a time at full speed.  Between the two is a buffer, so a
way in that is busy delays nobody but its worker.  A message takes the latency and nothing else.
An input is fetched as soon as the run that needs it has come, from the holder that its order names
first, and held for others; if by then no run wants it, it is dropped, as real workers do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Final, Protocol

from benchmarks.policies.graph import Graph, Shape

FINISHED: Final = "finished"  # (FINISHED, run)
ARRIVED: Final = "arrived"  # (ARRIVED, task, seconds of its transfer, peer)
RETURNED: Final = "returned"  # (RETURNED, run): recalled before it began
REFUSED: Final = "refused"  # (REFUSED, task, run number): recalled too late
UNAVAILABLE: Final = "unavailable"  # (UNAVAILABLE, run, inputs)
BEAT: Final = "beat"  # (BEAT,): a sign of life

Event = tuple[Any, ...]

BUSY_SECONDS: Final = 0.15
"""Until somebody who was told to come back later does."""

CALLS_MAX: Final = 12
"""Of a brain, for each task, until it has lost: a message storm is no schedule."""

_WAITING, _READY, _EXECUTING, _OVER = range(4)
_END, _ARRIVAL, _TIMER, _BEATING, _RETRY = range(5)


class Run:
    """One assignment of a task to a worker."""

    __slots__ = ("task", "number", "rank", "inputs", "nmissing", "state", "seconds")

    def __init__(
        self, task: int, number: int, rank: object, inputs: Sequence[tuple[int, Sequence[int]]]
    ) -> None:
        """`inputs`: those to be fetched, with the workers that hold them, the nearest first."""
        self.task = task
        self.number = number
        self.rank = rank  # smaller is sooner, among those that are ready
        self.inputs = inputs
        self.nmissing = 0
        self.state = _WAITING
        self.seconds = 0.0


class ModelWorker:
    """What a worker has, and what it is at."""

    __slots__ = (
        "index",
        "nfree",
        "ready",
        "runs",
        "held",
        "coming",
        "nout",
        "ordered",
        "out_free_at",
        "in_free_at",
        "held_bytes",
        "peak_bytes",
    )

    def __init__(self, index: int, nthreads: int) -> None:
        self.index = index
        self.nfree = nthreads
        self.ready: list[tuple[object, int, Run]] = []  # heap
        self.runs: dict[tuple[int, int], Run] = {}  # by task and number, until they begin
        self.held: dict[int, None] = {}
        self.coming: dict[int, list[Run]] = {}  # input on its way -> who waits
        self.ordered: dict[int, None] = {}  # copies to be kept, whoever wants them
        self.nout = 0  # values that it is asked for and has not sent
        self.out_free_at = 0.0
        self.in_free_at = 0.0
        self.held_bytes = 0
        self.peak_bytes = 0


class Brain(Protocol):
    """Who decides what runs where."""

    def start(self) -> None:
        """Time is zero, nothing has been said."""
        ...

    def receive(self, worker: int, events: list[Event]) -> None:
        """What a worker says has arrived."""
        ...

    def wake(self) -> None:
        """A time that was asked for has come."""
        ...


class Stuck(Exception):
    """Nothing happens any more, and not all tasks have ended."""

    def __init__(self, graph: str, ndone: int, ntasks: int, now: float) -> None:
        super().__init__(f"{graph}: {ndone} of {ntasks} tasks ended, at {now:.3f} s all is silent")


class Cluster:
    """The world that a brain plays in; `run` is the play."""

    def __init__(
        self,
        graph: Graph,
        shape: Shape,
        *,
        beat_seconds: float = 0.0,
        refuse_beyond: int = 0,
    ) -> None:
        """A cluster at rest.

        Args:
            beat_seconds: between two signs of life of a worker; 0: there are none.
            refuse_beyond: values that a worker sends at once before it tells others to come back
                later; 0: it never does, they wait in line.
        """
        self.graph = graph
        self.shape = shape
        self.now = 0.0
        self.workers = [ModelWorker(index, shape.nthreads) for index in range(shape.nworkers)]
        self.bytes_moved = 0
        self.ntransfers = 0
        self.ndone = 0
        self.done_at = 0.0
        self.was_given_up = False
        self.ncalls = 0
        self._is_done = bytearray(len(graph))
        self._beat_seconds = beat_seconds
        self._refuse_beyond = refuse_beyond
        self.ask_again: Callable[[int], Sequence[int]] | None = None
        """Who holds a task's result, for those who come back; set by a brain that knows."""

        self._to_workers: deque[tuple[float, int, list[Event]]] = deque()
        self._to_brain: deque[tuple[float, int, list[Event]]] = deque()
        self._agenda: list[tuple[float, int, int, Any]] = []  # time, serial, kind, what
        self._serial = 0

    # --- what brains say ---------------------------------------------------------------------

    def tell(self, worker: int, orders: list[Event]) -> None:
        """Say orders to a worker: ("run", Run), ("recall", task, number), ("free", task)."""
        self._to_workers.append((self.now + self.shape.latency_seconds, worker, orders))

    def wake_at(self, at: float) -> None:
        """Call the brain's `wake` then."""
        self._plan(max(at, self.now), _TIMER, None)

    def free_now(self, worker: int, task: int) -> None:
        """Have a worker let go of a result, without a message."""
        self._free(self.workers[worker], task)

    # --- time --------------------------------------------------------------------------------

    def run(self, brain: Brain, until: float = float("inf")) -> None:
        """Play until every task has ended.

        It is given up at `until`, or when the brain has been called `CALLS_MAX` times for each
        task; then it counts as ended at `until`.

        Raises:
            Stuck: nothing is to happen any more.
        """
        agenda, to_workers, to_brain = self._agenda, self._to_workers, self._to_brain
        ntasks = len(self.graph)
        if self._beat_seconds:
            for worker in self.workers:  # spread evenly
                at = self._beat_seconds * (worker.index + 1) / len(self.workers)
                self._plan(at, _BEATING, worker)
        brain.start()
        last_progress_at = 0.0
        ndone_before = 0
        calls_max = CALLS_MAX * ntasks if until < float("inf") else float("inf")
        while self.ndone < ntasks:
            if self.now > until or self.ncalls > calls_max:
                self.done_at, self.was_given_up = until, True
                return
            heard_at = to_brain[0][0] if to_brain else float("inf")
            told_at = to_workers[0][0] if to_workers else float("inf")
            due_at = agenda[0][0] if agenda else float("inf")
            if told_at <= heard_at and told_at <= due_at:
                if told_at == float("inf"):
                    raise Stuck(self.graph.name, self.ndone, ntasks, self.now)
                self.now, worker_index, orders = to_workers.popleft()
                self._obey(self.workers[worker_index], orders)
            elif heard_at <= due_at:
                self.now, worker_index, events = to_brain.popleft()
                self.ncalls += 1
                brain.receive(worker_index, events)
            else:
                self.now, _, kind, what = heappop(agenda)
                if kind == _END:
                    self._end(*what)
                elif kind == _ARRIVAL:
                    self._arrive(*what)
                elif kind == _TIMER:
                    self.ncalls += 1
                    brain.wake()
                elif kind == _RETRY:
                    self._fetch_again(*what)
                else:
                    self._beat(what)
                if self.ndone > ndone_before:
                    ndone_before, last_progress_at = self.ndone, self.now
                elif self.now > last_progress_at + 1000.0:
                    raise Stuck(self.graph.name, self.ndone, ntasks, self.now)

    def _plan(self, at: float, kind: int, what: object) -> None:
        self._serial += 1
        heappush(self._agenda, (at, self._serial, kind, what))

    def _say(self, worker: ModelWorker, event: Event) -> None:
        """Have a worker say something; what it says at one time is one frame."""
        to_brain = self._to_brain
        at = self.now + self.shape.latency_seconds
        if to_brain and to_brain[-1][1] == worker.index and to_brain[-1][0] == at:
            to_brain[-1][2].append(event)
        else:
            to_brain.append((at, worker.index, [event]))

    def _beat(self, worker: ModelWorker) -> None:
        self._say(worker, (BEAT,))
        self._plan(self.now + self._beat_seconds, _BEATING, worker)

    # --- what workers do ---------------------------------------------------------------------

    def _obey(self, worker: ModelWorker, orders: list[Event]) -> None:
        for order in orders:
            what = order[0]
            if what == "run":
                self._enter(worker, order[1])
            elif what == "free":
                self._free(worker, order[1])
            elif what == "fetch":
                worker.ordered[order[1]] = None
                self._fetch(worker, order[1], order[2])
            else:
                self._recall(worker, order[1], order[2])
        self._start(worker)

    def _enter(self, worker: ModelWorker, run: Run) -> None:
        held, coming = worker.held, worker.coming
        lacking = []
        for task, holders in run.inputs:
            if task in held:
                continue
            waiters = coming.get(task)
            if waiters is None:
                if not self._fetch(worker, task, holders):
                    lacking.append(task)
                    continue
                waiters = coming[task]
            waiters.append(run)
            run.nmissing += 1
        if lacking:
            run.state = _OVER
            self._say(worker, (UNAVAILABLE, run, lacking))
            return
        worker.runs[run.task, run.number] = run
        if not run.nmissing:
            self._make_ready(worker, run)

    def _fetch(self, worker: ModelWorker, task: int, holders: Sequence[int]) -> bool:
        """Ask the first holder that still has it; False if none has."""
        if task in worker.held or task in worker.coming:
            return True
        for index in holders:
            peer = self.workers[index]
            if task in peer.held:
                break
        else:
            return False
        worker.coming[task] = []
        self._ask(worker, task, peer)
        return True

    def _ask(self, worker: ModelWorker, task: int, peer: ModelWorker) -> None:
        """Ask `peer`, which has it."""
        if self._refuse_beyond and peer.nout >= self._refuse_beyond:
            self._plan(self.now + BUSY_SECONDS, _RETRY, (worker, task))
            return
        nbytes = self.graph.nbytes[task]
        seconds = nbytes / self.shape.bytes_per_second
        latency = self.shape.latency_seconds
        leaves_at = max(self.now + latency, peer.out_free_at)
        peer.out_free_at = leaves_at + seconds
        peer.nout += 1
        worker.in_free_at = max(leaves_at + latency, worker.in_free_at) + seconds
        self.bytes_moved += nbytes
        self.ntransfers += 1
        took = worker.in_free_at - self.now
        self._plan(worker.in_free_at, _ARRIVAL, (worker, task, peer, took))

    def _fetch_again(self, worker: ModelWorker, task: int) -> None:
        """Ask whoever has it by now."""
        assert self.ask_again is not None
        holders = [index for index in self.ask_again(task) if task in self.workers[index].held]
        waiters = worker.coming[task]
        if not holders or not any(run.state == _WAITING for run in waiters):
            del worker.coming[task]
            return
        self._ask(worker, task, self.workers[holders[0]])

    def _arrive(self, worker: ModelWorker, task: int, peer: ModelWorker, seconds: float) -> None:
        peer.nout -= 1
        waiting = [run for run in worker.coming.pop(task) if run.state == _WAITING]
        if not waiting and task not in worker.ordered:
            return
        worker.ordered.pop(task, None)
        self._hold(worker, task)
        self._say(worker, (ARRIVED, task, seconds, peer.index))
        for run in waiting:
            run.nmissing -= 1
            if not run.nmissing:
                self._make_ready(worker, run)
        self._start(worker)

    def _make_ready(self, worker: ModelWorker, run: Run) -> None:
        run.state = _READY
        self._serial += 1
        heappush(worker.ready, (run.rank, self._serial, run))

    def _start(self, worker: ModelWorker) -> None:
        ready = worker.ready
        while worker.nfree and ready:
            run = heappop(ready)[2]
            if run.state != _READY:
                continue
            run.state = _EXECUTING
            del worker.runs[run.task, run.number]
            worker.nfree -= 1
            run.seconds = self.graph.seconds[run.task]
            self._plan(self.now + run.seconds, _END, (worker, run))

    def _end(self, worker: ModelWorker, run: Run) -> None:
        run.state = _OVER
        worker.nfree += 1
        self._hold(worker, run.task)
        if not self._is_done[run.task]:
            self._is_done[run.task] = 1
            self.ndone += 1
            self.done_at = self.now
        self._say(worker, (FINISHED, run))
        self._start(worker)

    def _recall(self, worker: ModelWorker, task: int, number: int) -> None:
        run = worker.runs.pop((task, number), None)
        if run is None:
            self._say(worker, (REFUSED, task, number))
        else:
            run.state = _OVER
            self._say(worker, (RETURNED, run))

    def _hold(self, worker: ModelWorker, task: int) -> None:
        if task not in worker.held:
            worker.held[task] = None
            worker.held_bytes += self.graph.nbytes[task]
            worker.peak_bytes = max(worker.peak_bytes, worker.held_bytes)

    def _free(self, worker: ModelWorker, task: int) -> None:
        if task in worker.held:
            del worker.held[task]
            worker.held_bytes -= self.graph.nbytes[task]
