"""A worker died: which of its tasks may have been the cause?"""

from shoal.scheduler.model.entities import NO_RUN, Task, Worker


def suspects(worker: Worker) -> list[Task]:
    """Tasks that may have been executing: as many of the oldest runs as there were threads.

    A worker starts its runs in the order in which they were sent, but for those that wait for
    inputs; so what was sent later had not begun, and what is in the backlog was never sent.
    """
    sent = [task for task in worker.processing if task.run != NO_RUN]
    sent.sort(key=lambda task: task.run)
    return sent[: worker.nbegun_max]
