"""Entities without a machine, for tests of what looks at them."""

from shoal.ids import CodeId, Key, TaskId, WorkerId
from shoal.scheduler.model.entities import NO_OPTIONS, Code, Prefix, Task, Worker
from shoal.scheduler.model.state import link_dependencies, link_replica


def a_task(name: str = "x", *dependencies: Task, priority: int = 0, duration_us: int = -1) -> Task:
    """A task of a prefix of its own."""
    prefix = Prefix(name)
    prefix.duration_us = duration_us
    code = Code(CodeId(1), b"")
    task = Task(Key(name), TaskId(1), code, b"", prefix, priority, NO_OPTIONS)
    link_dependencies(task, dependencies)
    return task


def a_worker(name: str = "a", nthreads: int = 1, slots_max: int = 2, now: float = 0.0) -> Worker:
    """A worker that has nothing to do."""
    worker = Worker(WorkerId(ord(name[0])), f"tcp://{name}:1", name, nthreads, slots_max, now)
    worker.host = name
    return worker


def a_result(name: str, nbytes: int, *holders: Worker) -> Task:
    """A task whose result these hold."""
    task = a_task(name)
    task.nbytes = nbytes
    for holder in holders:
        link_replica(task, holder)
    return task
