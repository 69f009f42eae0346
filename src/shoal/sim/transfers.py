"""Values on their way between workers, and to and from clients: no machine sees them.

What the shells' transfers do, in virtual time.  A request is answered with what the holder has, or
fails: because nobody is there, because the two can't reach each other, because the holder died
meanwhile, or because nothing came for too long.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from shoal.ids import Key, TaskId
from shoal.sim.specs import Value

if TYPE_CHECKING:
    from shoal.sim.cluster import Cluster

DEADLINE_SECONDS: Final = 1.0
"""Without any progress for this long, a fetch is given up."""

Fetched: TypeAlias = Callable[[dict[TaskId, Value] | None], None]


class _Request:
    """One question to one peer, answered once."""

    __slots__ = ("is_open", "then")

    def __init__(self, then: Callable[..., None]) -> None:
        self.then = then
        self.is_open = True

    def answer(self, *arguments: object) -> None:
        if self.is_open:
            self.is_open = False
            self.then(*arguments)


class Transfers:
    """All transfers of one run."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    def fetch(self, asker: str, address: str, tasks: Sequence[TaskId], then: Fetched) -> None:
        """Ask for values; `then` gets those that the holder has, or None if it can't be asked."""
        request = _Request(then)
        if self._is_out_of_reach(asker, address, request):
            return
        self._cluster.world.at(
            self._cluster.network.arrival(asker, address),
            self._serve,
            request,
            asker,
            address,
            list(tasks),
        )
        self._cluster.world.after(DEADLINE_SECONDS, request.answer, None)

    def put(
        self,
        asker: str,
        address: str,
        task: TaskId,
        key: Key,
        value: Value,
        then: Callable[[bool], None],
    ) -> None:
        """Give a value to a worker; `then` hears whether it took it."""
        request = _Request(then)
        if self._is_out_of_reach(asker, address, request):
            return
        network = self._cluster.network

        def arrived() -> None:
            worker = self._cluster.worker_at(address)
            if worker is None:
                request.answer(False)
            else:
                worker.when_awake(taken)

        def taken() -> None:
            worker = self._cluster.worker_at(address)
            if worker is not None:
                worker.put(task, key, value)
                self._cluster.world.at(network.arrival(address, asker), request.answer, True)

        self._cluster.world.at(network.arrival(asker, address), arrived)

    def _is_out_of_reach(self, asker: str, address: str, request: _Request) -> bool:
        network = self._cluster.network
        if network.is_cut(asker, address) or self._cluster.worker_at(address) is None:
            self._cluster.world.after(network.notice(asker, address), request.answer, None)
            return True
        return False

    def _serve(self, request: _Request, asker: str, address: str, tasks: list[TaskId]) -> None:
        worker = self._cluster.worker_at(address)
        network = self._cluster.network
        if worker is None or network.is_cut(asker, address):
            self._cluster.world.after(network.notice(asker, address), request.answer, None)
            return

        def look() -> None:
            # The process may have died, and another one taken its place, while it was frozen.
            if self._cluster.worker_at(address) is worker:
                served = [(task, worker.serves(task)) for task in tasks]
                found = {task: value for task, value in served if value is not None}
                arrives_at = network.arrival(address, asker)
                self._cluster.world.at(arrives_at, self._arrive, request, asker, address, found)

        worker.when_awake(look)

    def _arrive(
        self, request: _Request, asker: str, address: str, found: dict[TaskId, Value]
    ) -> None:
        """The answer is here; unless the two were cut off from each other on its way."""
        is_cut = self._cluster.network.is_cut(asker, address)
        request.answer(None if is_cut else found)
