"""Values on their way between workers, and to and from clients: no machine sees them.

What the shells' transfers do, in virtual time.  A request is answered with what the holder has, or
fails: because nobody is there, because the two can't reach each other, because the holder died
meanwhile, or because nothing came for too long.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from shoal.ids import Epoch, Key, TaskId
from shoal.sim.network import Network
from shoal.sim.specs import Value

DEADLINE_SECONDS: Final = 1.0
"""Without any progress for this long, a fetch is given up."""

Fetched: TypeAlias = Callable[[dict[TaskId, Value] | None], None]


class Holder(Protocol):
    """A process that has values, or takes them."""

    def when_awake(self, action: Callable[..., None], *arguments: object) -> None:
        """Do it now, or once the process is no longer frozen; never if it died."""

    def serves(self, task: TaskId, epoch: Epoch) -> Value | None:
        """The value, if others may have it."""

    def sends(self, nbytes: Mapping[TaskId, int], until: float) -> None:
        """Values are on their way from here."""

    def put(self, task: TaskId, key: Key, value: Value, epoch: Epoch) -> bool:
        """Take a value; False if that is refused."""


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

    def __init__(
        self,
        network: Network,
        holder_at: Callable[[str], Holder | None],
        occasion: Callable[[str, str, str], None],
    ) -> None:
        """`holder_at`: who is at an address; `occasion`: hears of what an ambush may wait for."""
        self._network = network
        self._world = network.world
        self._holder_at = holder_at
        self._occasion = occasion

    def fetch(
        self, asker: str, epoch: Epoch, address: str, tasks: Sequence[TaskId], then: Fetched
    ) -> None:
        """Ask for values; `then` gets those that the holder has, or None if it can't be asked.

        `epoch`: in which the asker's numbers are valid; a holder in another one has none of them.
        """
        request = _Request(then)
        if self._is_out_of_reach(asker, address, request):
            return
        self._world.at(
            self._network.arrival(asker, address),
            self._serve,
            request,
            asker,
            epoch,
            address,
            list(tasks),
        )
        self._world.after(DEADLINE_SECONDS, request.answer, None)

    def put(
        self,
        asker: str,
        epoch: Epoch,
        address: str,
        task: TaskId,
        key: Key,
        value: Value,
        then: Callable[[bool | None], None],
    ) -> None:
        """Give a value to a worker; `then` hears True if it took it."""
        request = _Request(then)
        if self._is_out_of_reach(asker, address, request):
            return
        network = self._network
        self._world.after(DEADLINE_SECONDS, request.answer, None)

        def arrived() -> None:
            worker = self._holder_at(address)
            if worker is None:
                request.answer(False)
            else:
                worker.when_awake(taken)

        def taken() -> None:
            worker = self._holder_at(address)
            if worker is not None:
                is_taken = worker.put(task, key, value, epoch)
                self._world.at(network.arrival(address, asker), request.answer, is_taken)

        self._world.at(network.arrival(asker, address), arrived)

    def _is_out_of_reach(self, asker: str, address: str, request: _Request) -> bool:
        network = self._network
        if network.is_cut(asker, address) or self._holder_at(address) is None:
            self._world.after(network.notice(asker, address), request.answer, None)
            return True
        return False

    def _serve(
        self, request: _Request, asker: str, epoch: Epoch, address: str, tasks: list[TaskId]
    ) -> None:
        worker = self._holder_at(address)
        network = self._network
        if worker is None or network.is_cut(asker, address):
            self._world.after(network.notice(asker, address), request.answer, None)
            return

        def look() -> None:
            # The process may have died, and another one taken its place, while it was frozen.
            if self._holder_at(address) is worker:
                self._occasion("serve", address, asker)
                served = [(task, worker.serves(task, epoch)) for task in tasks]
                found = {task: value for task, value in served if value is not None}
                nbytes = sum(value.nbytes for value in found.values())
                arrives_at = network.arrival(address, asker)
                arrives_at += nbytes / network.weather.bytes_per_second
                worker.sends({task: found[task].nbytes for task in found}, arrives_at)
                self._world.at(arrives_at, self._arrive, request, asker, address, found)

        worker.when_awake(look)

    def _arrive(
        self, request: _Request, asker: str, address: str, found: dict[TaskId, Value]
    ) -> None:
        """The answer is here; unless the two were cut off from each other on its way."""
        is_cut = self._network.is_cut(asker, address)
        request.answer(None if is_cut else found)
