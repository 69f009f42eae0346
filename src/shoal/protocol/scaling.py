"""What a cluster that adapts asks of its scheduler, and tells it; and who has it do so.

Free tags: 412 to 419.
"""

from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import Subject


class WorkersDeserved(Message, frozen=True, tag=410):
    """How many workers does the load deserve?  Answered with Deserved."""

    request: int
    target_seconds: float = 5.0  # that the work at hand may take
    nthreads: int = 0  # of a worker that would come; 0: as of those that are there
    memory_limit: int = 0  # of such a worker, in bytes; 0: as of those that are there
    said: str = ""  # what the cluster does just now, for people who ask what tasks wait for


class Deserved(Part, frozen=True):
    """How many workers the load deserves, and what that comes from."""

    nworkers: int = 0  # the larger of the next two
    for_work: int = 0
    for_memory: int = 0
    nthere: int = 0  # that are there and not about to go
    nkept: int = 0  # of them, those that could not go now: busy, or full
    ntasks: int = 0  # that are ready, or run
    work_seconds: float = 0.0  # of all those, on one thread
    held_bytes: int = 0  # of results
    limit_bytes: int = 0  # of all workers' memory; 0: one has no limit
    npaused: int = 0  # workers that begin nothing, as their memory is short
    names: list[str] = []  # of those that are there


class AdaptCluster(Message, frozen=True, tag=411):
    """Have whatever has started this scheduler let the number of workers follow the load.

    Answered with a line for people; refused if nothing has started it that can scale.
    """

    request: int
    options: dict[str, int | float | str | None]  # of `Cluster.adapt`, by name


SUBJECT = Subject(from_client={WorkersDeserved: Deserved, AdaptCluster: str})
