"""Ready tasks that are kept here, the most urgent first."""

from collections import deque
from heapq import heappop, heappush, heapreplace
from operator import attrgetter

from shoal.scheduler.model.entities import QUEUED, Task


class TaskQueue:
    """A priority queue that knows that most tasks come in order.

    Tasks that arrive in rising priority share a run (a deque); the runs' heads are in a heap.  So
    a map of 100,000 tasks is one run: O(1) in, O(1) out.  A task that leaves the state `queued`
    stays in place and is skipped when its turn comes.
    """

    __slots__ = ("last", "nentries", "runs", "serial", "tail")

    def __init__(self) -> None:
        self.runs: list[tuple[int, int, deque[Task]]] = []  # heap of (head's priority, serial, run)
        self.serial = 0  # of the newest run: makes the heap's entries distinct
        self.tail: deque[Task] | None = None  # the run that was appended to last
        self.last = 0  # priority of its last task
        self.nentries = 0  # tasks in all runs, those that left the state `queued` included

    def push(self, task: Task) -> None:
        """Add a task whose state is `queued`.  Cost: O(1) in order, else O(log runs)."""
        if self.tail and task.priority >= self.last:
            self.tail.append(task)
        else:
            self.tail = deque((task,))
            self.serial += 1
            heappush(self.runs, (task.priority, self.serial, self.tail))
        self.last = task.priority
        self.nentries += 1

    def absorb(self, other: "TaskQueue") -> None:
        """Take over all that `other` has, which is empty then.  Cost: O(its runs)."""
        for _, _, run in other.runs:
            self.serial += 1
            heappush(self.runs, (run[0].priority, self.serial, run))
        self.nentries += other.nentries
        other.runs.clear()
        other.tail = None
        other.nentries = 0

    def compact(self) -> None:
        """Drop the tasks that are queued no more.  Cost: O(entries x log entries)."""
        tasks = dict.fromkeys(t for _, _, run in self.runs for t in run if t.state == QUEUED)
        self.runs.clear()
        self.tail = None
        self.nentries = 0
        for task in sorted(tasks, key=attrgetter("priority", "id")):
            self.push(task)

    def peek(self) -> Task | None:
        """The most urgent task, which stays; None if there is none."""
        runs = self.runs
        while runs:
            run = runs[0][2]
            task = run[0]
            if task.state == QUEUED:
                return task
            self._drop_head(run)
        return None

    def pop(self) -> Task | None:
        """Take the most urgent task; None if there is none."""
        task = self.peek()
        if task is not None:
            self._drop_head(self.runs[0][2])
        return task

    def _drop_head(self, run: deque[Task]) -> None:
        """Remove the first task of the first run, and put the run where its next belongs."""
        run.popleft()
        self.nentries -= 1
        if not run:
            heappop(self.runs)
            return
        entry = (run[0].priority, self.runs[0][1], run)
        if len(self.runs) == 1:
            self.runs[0] = entry
        else:
            heapreplace(self.runs, entry)
