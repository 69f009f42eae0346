"""What a user may be told by a worker: what happened, why, and what to do."""

from __future__ import annotations

from shoal.errors import ShoalError
from shoal.units import format_nbytes


class WorkerRefused(ShoalError, ValueError):
    """The scheduler did not want this worker."""

    def __init__(self, scheduler: str, reason: str) -> None:
        """`reason`: in the scheduler's words."""
        super().__init__(scheduler, reason)
        self.scheduler, self.reason = scheduler, reason

    def __str__(self) -> str:
        return (
            f"The scheduler at {self.scheduler} did not accept this worker: {self.reason} "
            "Correct that, or start it against another scheduler."
        )


class SchedulerSilent(ShoalError, TimeoutError):
    """The scheduler took the connection and then said nothing."""

    def __init__(self, scheduler: str, timeout_seconds: float) -> None:
        super().__init__(scheduler, timeout_seconds)
        self.scheduler, self.timeout_seconds = scheduler, timeout_seconds

    def __str__(self) -> str:
        return (
            f"The scheduler at {self.scheduler} did not answer this worker's registration within "
            f"{self.timeout_seconds:g} s. It may be stopped or overloaded; see its log, or allow "
            "more time (death_timeout)."
        )


class NotUnderstood(ShoalError, ValueError):
    """What the scheduler says, this worker does not know."""

    def __init__(self, scheduler: str, what: str) -> None:
        """`what`: which frame that was, and why, as sentences with what to do."""
        super().__init__(scheduler, what)
        self.scheduler, self.what = scheduler, what

    def __str__(self) -> str:
        return f"This worker does not understand its scheduler at {self.scheduler}. {self.what}"


class NoWorkerHere(ShoalError, ValueError):
    """The worker was asked for where there is none."""

    def __init__(self, nworkers: int) -> None:
        """`nworkers`: how many there are in this process."""
        super().__init__(nworkers)
        self.nworkers = nworkers

    def __str__(self) -> str:
        why = (
            f"{self.nworkers} workers run in this process, and this code is not part of a task"
            if self.nworkers
            else "no worker runs in this process"
        )
        return f"No worker found: {why}. Call get_worker() inside of a task."


class UnknownExecutor(ShoalError, ValueError):
    """A task is to be run by an executor that its worker does not have."""

    def __init__(self, name: str, there: list[str]) -> None:
        """`there`: the names of those that it has."""
        super().__init__(name, there)
        self.name, self.there = name, there

    def __str__(self) -> str:
        return (
            f"Invalid executor {self.name!r}; expected one of: {self.there}. Give workers an "
            f"executor of that name: Worker(..., executor={{{self.name!r}: ...}})."
        )


class NoThreadForActor(ShoalError, RuntimeError):
    """The system gave no thread to call an actor's methods in."""

    def __init__(self, key: str, worker: str, why: str) -> None:
        """`why`: in the system's words."""
        super().__init__(key, worker, why)
        self.key, self.worker, self.why = key, worker, why

    def __str__(self) -> str:
        return (
            f"The actor {self.key!r} on {self.worker} can't be called, as the system gives it no "
            f"thread: {self.why}.\nEach actor has one. Have fewer of them there, or raise the "
            "limit of processes (ulimit -u); coroutine methods need none."
        )


class NoSubstitute(ShoalError, RuntimeError):
    """The system gave no thread to run others in place of a task that waits for them."""

    def __init__(self, nthreads: int, nwaiting: int, why: str) -> None:
        """`nthreads`: that the worker has; `nwaiting`: tasks that wait; `why`: in its words."""
        super().__init__(nthreads, nwaiting, why)
        self.nthreads, self.nwaiting, self.why = nthreads, nwaiting, why

    def __str__(self) -> str:
        return (
            f"{self.nwaiting} tasks of this worker wait for other tasks, and it can't start more "
            f"than its {self.nthreads} threads to run those in their place: {self.why}. If all of "
            "them wait, and other workers have no room either, nothing will go on.\n"
            "Raise the limits on processes and memory (ulimit -u, pids.max), start more workers, "
            "or have fewer tasks wait at once: return futures from them instead of results."
        )


class ThreadLeftBehind(ShoalError, RuntimeError):
    """A run was told to end, and its thread did not come back."""

    def __init__(
        self, key: str, thread: str, seconds: float, where: str, is_overdue: bool, nleft: int
    ) -> None:
        """`where`: the thread is; `is_overdue`: else nobody wanted the run; `nleft`: of all."""
        super().__init__(key, thread, seconds, where, is_overdue, nleft)
        self.key, self.thread, self.seconds, self.where = key, thread, seconds, where
        self.is_overdue, self.nleft = is_overdue, nleft

    def __str__(self) -> str:
        why = "its time was over" if self.is_overdue else "it had been cancelled"
        where = f" It is at {self.where}." if self.where else ""
        return (
            f"Task {self.key!r} was told to end, as {why}, and has not within {self.seconds:g} s: "
            f"its thread {self.thread} is left behind, and another one has its place.{where}\n"
            "Native code can't be interrupted. The thread ends once that returns, or with the "
            f"worker's process, and has the task's inputs until then; {self.nleft} of this worker "
            "are like that."
        )


class ManyLeftBehind(ShoalError, RuntimeError):
    """More threads of a worker were left behind than it has slots."""

    def __init__(self, worker: str, nleft: int, nthreads: int) -> None:
        """`worker`: its name; `nleft`: how many were; `nthreads`: it may run tasks in."""
        super().__init__(worker, nleft, nthreads)
        self.worker, self.nleft, self.nthreads = worker, nleft, nthreads

    def __str__(self) -> str:
        return (
            f"{self.nleft} threads of worker {self.worker} were left behind in tasks that do not "
            f"end, and it has {self.nthreads} for tasks: they take processors and memory from "
            "those that it runs. If it has a nanny, a new process is to be had with "
            f"client.restart_workers([{self.worker!r}]); what it holds is computed again."
        )


class NoThreads(ShoalError, RuntimeError):
    """The system did not give a worker the threads that it was to have."""

    def __init__(self, nthreads: int, nstarted: int, why: str) -> None:
        """`nthreads`: asked for; `nstarted`: that it gave; `why`: in its words."""
        super().__init__(nthreads, nstarted, why)
        self.nthreads, self.nstarted, self.why = nthreads, nstarted, why

    def __str__(self) -> str:
        return (
            f"A worker was to have nthreads={self.nthreads}, and the system gave it only "
            f"{self.nstarted}: {self.why}. Say fewer, or raise the limits on processes and memory "
            "(ulimit -u, pids.max)."
        )


class UnknownCode(ShoalError, RuntimeError):
    """A run calls a function that this worker was not told, or was told to forget."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return (
            f"The scheduler asked for function {self.code}, which this worker does not have. "
            "This is an error in shoal; please report it with the scheduler's log. "
            "Submitting the task again may help."
        )


class UnpicklableResult(ShoalError, TypeError):
    """A task went well, but its result can't leave the worker."""

    def __init__(self, key: str, kind: str, why: str) -> None:
        """`kind`: type of the result; `why`: in pickle's words."""
        super().__init__(key, kind, why)
        self.key, self.kind, self.why = key, kind, why

    def __str__(self) -> str:
        return (
            f"The result of task {self.key!r}, of type {self.kind}, can't be sent to where it is "
            f"needed, because it can't be pickled: {self.why}.\n"
            "Return plain data from the task: a list instead of a generator, a path instead of an "
            "open file, what is behind a lock or a connection instead of itself. Or use it inside "
            "of the task that makes it."
        )


class MemoryShort(ShoalError, MemoryError):
    """A worker begins nothing, as its process has nearly all the memory that it may have."""

    def __init__(
        self,
        worker: str,
        process_bytes: int,
        limit_bytes: int,
        managed_bytes: int,
        pause_bytes: int,
        *,
        largest: list[str] | None = None,
        disk_trouble: str = "",
    ) -> None:
        """`largest`: results and runs, with their sizes; `disk_trouble`: why nothing is spilled."""
        super().__init__(worker, process_bytes, limit_bytes, managed_bytes, pause_bytes)
        self.worker, self.largest, self.disk_trouble = worker, largest or [], disk_trouble
        self.process_bytes, self.limit_bytes = process_bytes, limit_bytes
        self.managed_bytes, self.pause_bytes = managed_bytes, pause_bytes

    @property
    def why(self) -> str:
        """The numbers, in a line without a subject, capital or full stop."""
        rest = max(0, self.process_bytes - self.managed_bytes)
        return (
            f"its process has {format_nbytes(self.process_bytes)} of its limit of "
            f"{format_nbytes(self.limit_bytes)}: {format_nbytes(self.managed_bytes)} of results, "
            f"{format_nbytes(rest)} of what is no result"
        )

    def __str__(self) -> str:
        held = f" The largest: {'; '.join(self.largest)}." if self.largest else ""
        trouble = f" {self.disk_trouble}" if self.disk_trouble else ""
        return (
            f"The worker at {self.worker} is paused: {self.why}.{held}{trouble}\n"
            f"It begins no task until its process is below {format_nbytes(self.pause_bytes)}, and "
            "frees what it can. If that happens often, give workers more memory or fewer threads, "
            "or make partitions smaller; what is no result belongs to tasks and libraries."
        )


class WrongEpoch(ShoalError, ConnectionError):
    """A worker was given values under the numbers of a scheduler that it does not work for."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return (
            f"The worker at {self.worker} did not keep these values: it works for another "
            "scheduler than the one that sent them there, or has lost its scheduler just now. Try "
            "another worker, or again in a while."
        )
