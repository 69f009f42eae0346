"""What is shown of workers, tasks and schedulers alike, in this process or another.

`views` and `remote` show these by what each can look at; what only one of them shows is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from shoal.comms.addresses import parse_address
from shoal.observe.clock import seconds_ahead
from shoal.observe.facts import shown_host
from shoal.observe.stimuli import stimulus_of
from shoal.protocol.keys import from_canonical
from shoal.protocol.questions import Transition


class ShownWorker(Protocol):
    """A worker."""

    __slots__ = ()

    @property
    def _entity(self) -> Any:
        """What is looked at, with the scheduler's names."""

    @property
    def nprocessing(self) -> int:
        """Tasks that were given to it."""

    @property
    def address(self) -> str:
        """Where it is reached."""
        return str(self._entity.address)

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self._entity.name)

    @property
    def host(self) -> str:
        """The host of its address; the name of its host if that has none."""
        return shown_host(self.address, str(self._entity.host))

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._entity.pid)

    @property
    def nthreads(self) -> int:
        """Its threads for tasks."""
        return int(self._entity.nthreads)

    @property
    def memory_limit(self) -> int:
        """Bytes; 0 if there is none."""
        return int(self._entity.memory_limit)

    @property
    def nbytes(self) -> int:
        """Bytes of the results that it holds."""
        return int(self._entity.nbytes)

    @property
    def resources(self) -> dict[str, float]:
        """Abstract amounts that it offers."""
        return dict(self._entity.resources)


class ShownTask(Protocol):
    """A task."""

    __slots__ = ()

    @property
    def _entity(self) -> Any:
        """What is looked at, with the scheduler's names."""

    @property
    def nbytes(self) -> int:
        """Size of its result in memory; -1 if it is not known."""
        return int(self._entity.nbytes)

    @property
    def type(self) -> str | None:
        """Name of the type of its result, if it is known."""
        return self._entity.kind or None

    @property
    def retries(self) -> int:
        """Runs that may still fail before it does."""
        return int(self._entity.retries)

    @property
    def suspicious(self) -> int:
        """Workers that died as it ran there."""
        return int(self._entity.blame)

    @property
    def run_id(self) -> int:
        """The number of its present run; 0 if it has none."""
        return int(self._entity.run)


W = TypeVar("W", bound=ShownWorker)


class ShownScheduler(Protocol[W]):
    """A scheduler, by its address and its workers."""

    __slots__ = ()

    @property
    def address(self) -> str:
        """Where clients and workers find it; empty before it serves."""

    @property
    def workers(self) -> Mapping[str, W]:
        """Workers by address."""

    @property
    def host(self) -> str:
        """The host of its address; empty if it is reached within this machine only."""
        return parse_address(self.address).host

    @property
    def ip(self) -> str:
        """As `host`."""
        return self.host

    @property
    def port(self) -> int:
        """The port of its address; 0 if it is reached within this machine only."""
        return parse_address(self.address).port

    @property
    def aliases(self) -> dict[str, str]:
        """Addresses by worker's name."""
        return {worker.name: worker.address for worker in self.workers.values()}

    @property
    def idle(self) -> dict[str, W]:
        """Workers that could run more than they were given."""
        return {
            worker.address: worker
            for worker in self.workers.values()
            if worker.nprocessing < worker.nthreads
        }

    @property
    def total_nthreads(self) -> int:
        """Threads of all workers."""
        return sum(worker.nthreads for worker in self.workers.values())

    @property
    def total_memory(self) -> int:
        """Bytes that all workers may use."""
        return sum(worker.memory_limit for worker in self.workers.values())


ShownTransition = tuple[object, str, str, dict[object, str], str, float]
"""Key, state before, state after, nothing, stimulus, when (s since the epoch)."""


def shown_story(records: Iterable[Transition]) -> list[ShownTransition]:
    """Transitions as users know them; of a scheduler on this machine."""
    ahead = seconds_ahead()
    return [
        (
            from_canonical(record.key),
            record.start,
            record.finish,
            {},
            stimulus_of(record.cause, record.step),
            record.at + ahead,
        )
        for record in records
    ]
