"""How many tasks in a row shall one worker take from the queue?

Tasks that follow each other in the order of a graph mostly feed the same task, or neighbours.
Where each worker takes a row of them instead of every other one, their results meet at home.
"""

from shoal.scheduler.model.entities import Prefix, Task, Worker

ROW_MAX = 32
"""Tasks in a row per thread: longer rows save hardly any more transfers."""

ROW_OF_UNKNOWN_MAX = 8
"""The same while it is not known how long they take."""

ROW_OF_SHARED_MAX = 4
"""Beyond the first, for all threads, while clients take turns: the others' come between them."""

ROW_US = 500_000
"""Expected work in a row per thread: what comes later and is as urgent waits for no more."""


def is_in_row(task: Task) -> bool:
    """Whether it matters which tasks run beside this ready one: others need what it gives.

    What is known to take much memory goes where there is room for it, one by one.
    """
    if task.dependents is None or task.blame:
        return False
    prefix = task.prefix
    return not (prefix.gives_small or (prefix.weighs and prefix.ngauged))


def row_length(task: Task, worker: Worker, nready: int, nthreads: int) -> int:
    """How many of the most urgent of the queue `worker` shall have, `task` among them; at least 1.

    Never more than its share, so that no thread is without while another has a row.

    Args:
        nready: tasks in the queue, and `task`.
        nthreads: of all workers.
    """
    share = nready * worker.nthreads // max(1, nthreads)
    return max(1, min(share, _row_max(task.prefix) * worker.nthreads))


def share_of_early(worker: Worker, nready: int, nthreads: int) -> int:
    """How many tasks in a row a worker gets when all are placed at once; at least 1."""
    return max(1, nready * worker.nthreads // max(1, nthreads))


def _row_max(prefix: Prefix) -> int:
    """For one thread."""
    duration_us = prefix.duration_us
    if duration_us < 0:
        return ROW_OF_UNKNOWN_MAX
    return max(1, min(ROW_MAX, ROW_US // max(1, duration_us)))
