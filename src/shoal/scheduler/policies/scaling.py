"""How many workers does the load deserve, and how many of those that are there could go?"""

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from shoal.protocol.membership import Closing
from shoal.protocol.scaling import Deserved
from shoal.scheduler.model.entities import NO_WORKER, PROCESSING, QUEUED, Prefix, Worker
from shoal.scheduler.model.estimates import footprint_bytes
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.retirement import workers_to_close

FULL_RATIO: Final = 0.6
"""Of all workers' memory: with more taken by results, twice the workers are deserved."""

TOLERANCE: Final = 1e-9
"""Parts of workers are added up; ten times a tenth is no more than one."""


class Kind(NamedTuple):
    """What a worker is like, on average."""

    nthreads: float
    memory_bytes: float  # that its runs may take; 0: without a limit


class Load(NamedTuple):
    """What there is to do, counted in workers of one kind."""

    ntasks: int
    work_us: int  # on one thread
    nworkers_used: float  # if all of it ran at once
    workers_us: float  # on one worker with all of its threads, as far as its memory allows


def deserved(
    state: SchedulerState, target_seconds: float, nthreads: int = 0, memory_limit: int = 0
) -> Deserved:
    """So many workers that the work at hand takes `target_seconds`, and their memory is not full.

    Each kind of task takes what such have taken before.  There are never more workers than could
    have something to do; tasks that need much memory run on fewer threads of one.  A worker that is
    paused does nothing, so another takes its part.  What waits for its inputs is no work yet.

    Args:
        nthreads, memory_limit: of a worker that would come, where none is there to say.

    Cost: O(workers x log workers + prefixes).
    """
    there = [worker for worker in state.workers.values() if not worker.is_leaving]
    limits = [worker.memory_limit for worker in there]
    limit_bytes = sum(limits) if all(limits) else 0
    held_bytes = sum(worker.nbytes for worker in there)
    npaused = sum(worker.is_paused for worker in there)
    kind = _kind_of(state, there, nthreads, memory_limit)
    load = _load(state, there, kind)
    for_work = 0
    if load.ntasks:
        needed = load.nworkers_used  # that is all at once
        if target_seconds > 0:
            needed = min(needed, load.workers_us / (target_seconds * 1e6))
        for_work = max(1, ceil(needed - TOLERANCE))
        for_work += min(npaused, for_work)
    for_memory = 0
    if limit_bytes and held_bytes > FULL_RATIO * limit_bytes:
        for_memory = 2 * len(there)
    return Deserved(
        nworkers=max(for_work, for_memory),
        for_work=for_work,
        for_memory=for_memory,
        nthere=len(there),
        nkept=len(there) - len(workers_to_close(there, Closing())),
        ntasks=load.ntasks,
        work_seconds=load.work_us * 1e-6,
        held_bytes=held_bytes,
        limit_bytes=limit_bytes,
        npaused=npaused,
        names=[worker.name for worker in there],
    )


def target_of(found: Deserved, spare: int = 0) -> int:
    """How many workers there shall be: as deserved, and none goes that could not.

    Args:
        spare: workers beyond what the load deserves, for what may come.
    """
    return max(found.nworkers + spare, found.nkept)


def _kind_of(
    state: SchedulerState, there: Sequence[Worker], nthreads: int, memory_limit: int
) -> Kind:
    if there:
        nthreads_each = sum(worker.nthreads for worker in there) / len(there)
        limits = [worker.memory_limit for worker in there]
        memory_limit = sum(limits) // len(limits) if all(limits) else 0
    else:
        nthreads_each = float(nthreads or 1)
    return Kind(nthreads_each, memory_limit * state.settings.memory_pause_ratio)


def _load(state: SchedulerState, there: Sequence[Worker], kind: Kind) -> Load:
    """Tasks that are ready or run; without those that have left their thread to others."""
    seceded: dict[Prefix, int] = {}
    for worker in there:
        for task, is_out in worker.seceded.items():
            if is_out:
                seceded[task.prefix] = seceded.get(task.prefix, 0) + 1
    unknown_us = round(state.settings.unknown_duration_seconds * 1e6)
    ntasks = work_us = 0
    nworkers_used = workers_us = 0.0
    for prefix in state.prefixes.values():
        counts = prefix.ntasks
        n = counts[QUEUED] + counts[NO_WORKER] + counts[PROCESSING] - seceded.get(prefix, 0)
        if n <= 0:
            continue
        us = n * (prefix.duration_us if prefix.duration_us >= 0 else unknown_us)
        nat_once = _nat_once(prefix, kind)
        ntasks += n
        work_us += us
        nworkers_used += n / nat_once
        workers_us += us / nat_once
    nwaiting = sum(worker.nwaiting_heard for worker in there)  # for tasks that are counted as well
    nworkers_used = max(0.0, nworkers_used - nwaiting / kind.nthreads)
    return Load(ntasks, work_us, nworkers_used, workers_us)


def _nat_once(prefix: Prefix, kind: Kind) -> float:
    """How many such tasks a worker runs at once."""
    if not (kind.memory_bytes and prefix.weighs and prefix.ngauged):
        return kind.nthreads
    fitting = kind.memory_bytes // max(1, footprint_bytes(prefix))
    return min(kind.nthreads, max(1.0, fitting))
