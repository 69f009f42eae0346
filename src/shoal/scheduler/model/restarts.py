"""Workers whose processes are being replaced, and who waits for that."""

from typing import NamedTuple

from shoal.scheduler.model.entities import Client, Worker


class Replaced(NamedTuple):
    """A worker that was sent away for another one to come."""

    address: str
    name: str
    host: str
    pid: int
    has_nanny: bool

    def is_back(self, worker: Worker) -> bool:
        """Whether `worker` is the very process that was sent away, which has not heard of that."""
        same = (worker.address, worker.host, worker.pid) == (self.address, self.host, self.pid)
        return same and worker.has_been_here

    def is_followed_by(self, worker: Worker) -> bool:
        """Whether `worker` has taken its place: the same name, or the process says so."""
        is_heir = worker.host == self.host and worker.predecessor == self.pid != 0
        return is_heir or worker.name == self.name


class Restart:
    """One call, and the workers that are still to come."""

    __slots__ = ("awaited", "client", "deadline", "request", "verdicts")

    def __init__(self, client: Client, request: int, deadline: float) -> None:
        self.client = client
        self.request = request
        self.deadline = deadline  # s, monotonic
        self.awaited: list[Replaced] = []
        self.verdicts: dict[str, str] = {}  # by address
