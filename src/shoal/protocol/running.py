"""Functions that clients have called beside the tasks, in other processes of the cluster.

Free tags: 133 to 139, and 141 to 149 towards workers.
"""

from shoal.protocol.messages import Failure, Message, Part
from shoal.protocol.subject import Subject


class RunOnScheduler(Message, frozen=True, tag=116):
    """Call a function in the scheduler's process; `dask_scheduler=` is given if it takes it."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    wait: bool = True


class RunOnWorkers(Message, frozen=True, tag=117):
    """Call a function in workers' processes, outside the task system; `workers` None = all."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    workers: list[str] | None = None
    wait: bool = True
    nanny: bool = False  # where their nannies are; those without one are left out


class RunFunction(Message, frozen=True, tag=140):
    """Call a function beside the tasks; `dask_worker=` is given if it takes it."""

    request: int
    payload: bytes  # pickled (function, args, kwargs)
    wait: bool = True


class Outcome(Part, frozen=True):
    """What one worker made of RunFunction: a pickled value, or a failure."""

    value: bytes = b""
    failure: Failure | None = None


SUBJECT = Subject(
    from_client={
        RunOnScheduler: Outcome,
        RunOnWorkers: dict[str, Outcome],
    },
    to_worker={RunFunction: Outcome},
)
