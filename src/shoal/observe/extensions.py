"""What `scheduler.extensions` shows of locks, queues and the like: by upstream's names, to be read.

They are parts of the scheduler's machine and can't be replaced.  What programs keep beside the
scheduler, they put into the same dict under names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.protocol.keys import from_canonical


class _Leases(Mapping[str, list[str]]):
    """Lock or semaphore -> who holds it, each by its client's name; nobody, of one not known."""

    def __init__(self, locks: Mapping[str, Any]) -> None:
        self._locks = locks

    def __getitem__(self, name: str) -> list[str]:
        lock = self._locks.get(name)
        return [] if lock is None else [claim.client.name for claim in lock.held]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._locks))

    def __len__(self) -> int:
        return len(self._locks)


class Semaphores:
    """Locks and semaphores that are held or registered."""

    def __init__(self, state: Any) -> None:
        self._locks: Mapping[str, Any] = state.locks
        self.leases = _Leases(state.locks)

    @property
    def max_leases(self) -> dict[str, int]:
        """How many may hold each at once."""
        return {name: lock.leases_max for name, lock in self._locks.items()}

    def _semaphore_exists(self, name: str) -> bool:
        return name in self._locks


class Events:
    """Events that are set or waited for."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def _events(self) -> dict[str, bool]:
        """Whether each is set."""
        return {name: event.is_set for name, event in self._state.events.items()}

    @property
    def _waiter_count(self) -> dict[str, int]:
        """How many wait for each that is waited for."""
        events = self._state.events.items()
        return {name: len(event.waiting) for name, event in events if event.waiting}


class Queues:
    """Queues that somebody uses."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def queues(self) -> dict[str, int]:
        """How many values are in each."""
        return {name: len(queue.items) for name, queue in self._state.queues.items()}


class Variables:
    """Variables that have a value, or are waited for."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def variables(self) -> list[str]:
        """Their names."""
        return list(self._state.variables)


class Published:
    """Values that are published."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def datasets(self) -> dict[Any, Any]:
        """By name; they are closed to the scheduler."""
        return {from_canonical(name): value for name, value in self._state.datasets.items()}


class Shuffles:
    """Shuffles whose outputs are not all made; upstream's `ShuffleSchedulerPlugin`, to be read."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def active_shuffles(self) -> dict[str, Any]:
        """By id, with all that is known of each."""
        return {id: shuffle for id, shuffle in self._state.shuffles.items() if shuffle.is_active}

    def shuffle_ids(self) -> set[str]:
        """Their ids."""
        return set(self.active_shuffles)

    @property
    def heartbeats(self) -> dict[str, dict[str, Any]]:
        """By id: how far each is, in bytes and partitions, and how even.

        Cost: O(input and output partitions) for each.
        """
        return {id: of_shuffle(shuffle) for id, shuffle in self.active_shuffles.items()}


def of_shuffle(shuffle: Any) -> dict[str, Any]:
    """In plain types; bytes unless it is said."""
    return {
        "kind": shuffle.kind,
        "barrier": shuffle.barrier.state,
        "epoch": shuffle.epoch,
        "epochs": shuffle.nepochs,
        "input_partitions": shuffle.ninputs,
        "input_partitions_made": shuffle.nmade,
        "output_partitions": shuffle.noutputs,
        "outputs_joined": shuffle.njoined,
        "made": shuffle.made_nbytes,
        "on_disk": shuffle.disk_nbytes,
        "joined": shuffle.joined_nbytes,
        "per_second": shuffle.bytes_per_second,
        "skew": shuffle.skew,
    }


def extensions_of(state: Any) -> dict[str, Any]:
    """Those that show something of the state of a scheduler."""
    return {
        "events": Events(state),
        "publish": Published(state),
        "queues": Queues(state),
        "semaphores": Semaphores(state),
        "shuffle": Shuffles(state),
        "variables": Variables(state),
    }
