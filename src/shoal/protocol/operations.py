"""What is asked about workers and copies, whoever asks: what arguments mean, what verdicts say.

Clients, and code in the scheduler's process, take the same arguments, have the same defaults, and
raise the same errors.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.errors import (
    NoCopies,
    UnsupportedOption,
    WithoutNanny,
    WorkersNotBack,
    WorkersNotRestarted,
)
from shoal.protocol.membership import Closing

# What becomes of workers that are to be replaced, as the scheduler answers.
OK: Final = "OK"
REMOVED: Final = "removed"
TIMED_OUT: Final = "timed out"
NO_NANNY: Final = "no nanny"

RETIRE_PATIENCE_SECONDS: Final = 30.0
"""Without any progress, until a worker that shall retire is kept."""


def worker_names(workers: Any) -> list[str]:
    """Addresses, names or hosts, from one of them or several.

    Raises:
        TypeError: it is neither a text, a number, nor several of those.
    """
    if workers is None:
        return []
    if isinstance(workers, (str, int, float)):
        return [str(workers)]
    if isinstance(workers, Iterable) and not isinstance(workers, (Mapping, bytes, bytearray)):
        return sorted(str(worker) for worker in workers)
    raise TypeError(
        f"workers= is an address, name or host, or a list of them, not {type(workers).__name__}"
    )


def who_retires(
    workers: Any, names: Any, limits: Mapping[str, Any]
) -> tuple[list[str] | None, Closing | None]:
    """Who shall go: those that are named, or how many of whom.

    Args:
        workers, names: None, or what `worker_names` takes.
        limits: `n`, `target`, `minimum`, `memory_ratio`, `key` and `attribute`, as they are given.

    Raises:
        TypeError: names beside workers, limits beside either, or an unknown one.
        UnsupportedOption: a `key` that can't travel.
    """
    if names is not None and workers is not None:
        raise TypeError("names and workers are mutually exclusive")
    chosen = workers if names is None else names
    if chosen is None:
        return None, _closing(**limits)
    if limits:
        raise TypeError(f"{', '.join(limits)} can't be used together with names or workers")
    return worker_names(chosen), None


def _closing(
    n: int | None = None,
    target: int | None = None,
    minimum: int | None = None,
    memory_ratio: float | None = None,
    key: Any = None,
    attribute: str = "address",
) -> Closing:
    """Which workers may go, as it travels.  `attribute`: not used; answers name addresses."""
    if key not in (None, "host"):
        raise UnsupportedOption(f"key={key!r}", 'Group workers by key="host", or name them.')
    ratio = None if memory_ratio is None else float(memory_ratio)
    return Closing(n, target, minimum, ratio, "host" if key else "")


def retired(verdicts: Mapping[str, str], there: Mapping[str, Any]) -> dict[str, Any]:
    """What those were that have been let go, by address.  `there`: the same of all before that."""
    return {address: there.get(address, {}) for address, why in verdicts.items() if not why}


def addresses_of(workers: Any, there: Mapping[str, Any]) -> dict[Any, str]:
    """Each of `workers`, an address or name or several of them -> its address.

    Raises:
        KeyError: there is no such worker.
    """
    single = isinstance(workers, (str, int, float))
    address_by_name = {str(worker["name"]): address for address, worker in there.items()}
    found: dict[Any, str] = {}
    for worker in [workers] if single else workers:
        address = str(worker) if str(worker) in there else address_by_name.get(str(worker))
        if address is None:
            raise KeyError(worker)
        found[worker] = address
    return found


def require_restarted(
    found: Mapping[Any, str], verdicts: Mapping[str, str], seconds: float, *, raises: bool
) -> dict[Any, str]:
    """What became of each of `found` (as it was asked for -> address).

    Raises:
        WithoutNanny: nothing, as nobody would start one of them again.
        WorkersNotRestarted: one is not back in time, unless not `raises`.
    """
    without = [worker for worker, address in found.items() if verdicts.get(address) == NO_NANNY]
    if without:
        raise WithoutNanny(without)
    outcome = {worker: verdicts.get(address, REMOVED) for worker, address in found.items()}
    late = [worker for worker, verdict in outcome.items() if verdict != OK]
    if late and raises:
        raise WorkersNotRestarted(late, len(outcome), seconds)
    return outcome


def require_back(verdicts: Mapping[str, str], seconds: float) -> None:
    """Raise WorkersNotBack unless for each worker that was restarted there is another."""
    nlate = sum(verdict == TIMED_OUT for verdict in verdicts.values())
    nremoved = sum(verdict == REMOVED for verdict in verdicts.values())
    if nlate or nremoved:
        raise WorkersNotBack(len(verdicts), nlate, nremoved, seconds)


def require_copies(n: int | None, branching_factor: int) -> int:
    """How many copies there shall be, as it travels: 0 for one on each.

    Raises:
        NoCopies, ValueError: one of the two is no number from 1 on.
    """
    if n is not None and (type(n) is not int or n < 1):
        raise NoCopies(n)
    if type(branching_factor) is not int or branching_factor < 1:
        raise ValueError(f"branching_factor is a number from 1 on, not {branching_factor!r}")
    return n or 0
