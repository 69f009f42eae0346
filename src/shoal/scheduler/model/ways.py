"""The ways between workers: how fast results travel, and which large ones are about to."""

from shoal.scheduler.model.entities import Task, Worker

BYTES_WEIGHED = 64_000_000
"""What was measured over so many bytes counts as much as all that was known before."""

SLOWER_WEIGHED = 0.1
"""What was slower may have stood in line at who sent it, and says less of the way itself."""

BYTES_PER_US_MIN = 0.1
BYTES_PER_US_MAX = 100_000.0

LARGE_BYTES = 1_000_000
"""Results from this size on are followed on their way: who sends one can't send others as fast."""


class Ways:
    """Moving averages by what workers tell, and who is about to get what."""

    __slots__ = ("far", "moving", "nbegun", "near", "nworkers")

    def __init__(self, bytes_per_second: float) -> None:
        """`bytes_per_second`: until it is measured."""
        self.near = self.far = bytes_per_second / 1e6  # bytes per microsecond, on one host; else
        self.moving: dict[Task, dict[Worker, tuple[Task, int]]] = {}
        """Large result -> who lacks it, and is to get it -> the task that is placed there for which
        it comes, and how many had begun to move before."""
        self.nworkers = 0  # that there are
        self.nbegun = 0  # how many have ever begun to move

    def learn(self, *, is_near: bool, nbytes: int, seconds: float) -> None:
        """Take in that so many bytes took so long."""
        if nbytes <= 0 or not seconds > 0:
            return
        rate = min(BYTES_PER_US_MAX, max(BYTES_PER_US_MIN, nbytes / (seconds * 1e6)))
        weight = nbytes / (nbytes + BYTES_WEIGHED)
        before = self.near if is_near else self.far
        if rate < before:
            weight *= SLOWER_WEIGHED
        after = before + (rate - before) * weight
        if is_near:
            self.near = after
        else:
            self.far = after

    def bytes_per_second(self) -> float:
        """The slower of the two, as it is shown."""
        return 1e6 * min(self.near, self.far)

    def begin(self, task: Task, worker: Worker) -> None:
        """`task` is placed on `worker`: large inputs that it lacks will come.  Cost: O(inputs)."""
        for dependency in task.dependencies:
            if dependency.nbytes >= LARGE_BYTES and dependency not in worker.has_what:
                takers = self.moving.setdefault(dependency, {})
                if worker not in takers:
                    takers[worker] = task, self.nbegun
                    self.nbegun += 1

    def end(self, task: Task, worker: Worker) -> None:
        """`task` is not placed on `worker` any more: what is not there does not come for it."""
        for dependency in task.dependencies:
            takers = self.moving.get(dependency)
            if takers is not None and worker in takers and takers[worker][0] is task:
                self.arrived(dependency, worker)

    def turn(self, result: Task, worker: Worker) -> int:
        """Which of the holders `worker` shall ask: a number, to be taken modulo how many there are.

        Those who get a large result ask its holders in turns.
        """
        taken = self.moving[result].get(worker) if result in self.moving else None
        return worker.id if taken is None else taken[1]

    def arrived(self, result: Task, worker: Worker) -> bool:
        """`worker` has `result`, or is not to get it any more; whether it was to get it."""
        moving = self.moving.get(result)
        if moving is None or moving.pop(worker, None) is None:
            return False
        if not moving:
            del self.moving[result]
        return True
