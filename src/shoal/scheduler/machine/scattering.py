"""Scattered values: who is about to bring each, and what if it will never come."""

from shoal.errors import DataLost
from shoal.protocol.exceptions import to_failure
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import Client, Task, Worker


def lose_scattered(core: Core, worker: Worker) -> None:
    """Values that only `worker` was to be given will not arrive.  Cost: O(awaited values)."""
    for task, brought in list(core.state.scattering.items()):
        for client, takers in list(brought.items()):
            if worker in takers:
                del takers[worker]
                if not takers:
                    del brought[client]
        if not brought:
            _bring_no_more(core, task, worker)


def stop_bringing(core: Core, task: Task, client: Client) -> None:
    """`client` no longer wants a value that it may have been about to scatter."""
    brought = core.state.scattering.get(task)
    if brought is None or client not in brought or any(c is client for c, _ in task.wants):
        return
    del brought[client]
    if not brought and task.is_needed:
        _bring_no_more(core, task, None)


def _bring_no_more(core: Core, task: Task, worker: Worker | None) -> None:
    """Nobody is about to bring it; it is lost, unless a silent worker has it, which is awaited."""
    if task in core.state.withheld:
        del core.state.scattering[task]
    else:
        fail_lost(core, task, worker)


def fail_lost(core: Core, task: Task, worker: Worker | None) -> None:
    """A scattered value went with `worker`, or with its client; it can't be computed again."""
    core.state.scattering.pop(task, None)
    address = "" if worker is None else worker.address
    fail(core, task, to_failure(DataLost(task.key, address), task.key, address))
