"""How workers, work and amounts are put into the lines of explanations."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from shoal.scheduler.model.entities import Worker
from shoal.scheduler.policies.backlogs import Work
from shoal.units import format_seconds

NAMED_MAX: Final = 4
"""Workers, inputs and holders that are named in a line; of more, how many there are."""


def not_taking(workers: Sequence[Worker]) -> Iterator[str]:
    """Those that are given nothing, and why."""
    paused = [worker for worker in workers if worker.is_paused and not worker.is_leaving]
    if paused:
        why = next((f" ({worker.pause_why})" for worker in paused if worker.pause_why), "")
        yield (
            f"{len(paused)} of {len(workers)} workers are paused and begin nothing: "
            f"{shown(paused)}{why}"
        )
    held = [worker for worker in workers if worker.is_quarantined]
    if held:
        yield (
            f"{len(held)} of {len(workers)} workers are in quarantine, as all fails there that "
            f"succeeds elsewhere: {shown(held)}"
        )
    silent = [worker for worker in workers if worker.silence is not None]
    if silent:
        yield (
            f"{len(silent)} of {len(workers)} workers are suspect, as nothing is heard of them: "
            f"{shown(silent)}"
        )
    leaving = [worker for worker in workers if worker.is_leaving]
    if leaving:
        yield f"{len(leaving)} of {len(workers)} workers are about to leave: {shown(leaving)}"


def work_in_words(work: Work, nthreads: int = 1) -> str:
    """How long tasks take together, as far as that is known."""
    nunknown = work.ntasks - work.nknown
    if not work.nknown:
        return "of kinds of which none has ended yet"
    text = f"{format_seconds(work.known_us * 1e-6 / nthreads)} of work"
    return f"{text} without {nunknown} of kinds of which none has ended yet" if nunknown else text


def amounts(resources: dict[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in resources.items())


def shown(workers: Iterable[Worker]) -> str:
    """What they are called, as far as they are few."""
    named = list(workers)
    text = ", ".join(worker.name for worker in named[:NAMED_MAX])
    more = len(named) - NAMED_MAX
    called = "worker" if len(named) == 1 else "workers"
    return f"{called} {text} and {more} more" if more > 0 else f"{called} {text}"
