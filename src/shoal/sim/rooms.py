"""Workers that count what they let into memory, and tasks that keep them busy with it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from shoal.sim.plan import Act, Submit, WorkerPlan
from shoal.sim.specs import TaskSpec

BOUNDS: Final = (32_000_000, 50_000_000, 70_000_000, 120_000_000)
"""Bytes of a process, of which results and runs take a good part each."""

BOUND_RATIO: Final = 0.75
"""Of a worker's limit, where it has one."""

LARGE_NBYTES: Final = 1025
"""Results of so much, and"""
LARGE_RATIO: Final = 0.3
"""of others so many, are made as large as is drawn from here:"""
SIZES: Final = (1025, 5_000_000, 15_000_000, 15_000_000, 30_000_000)
UNEVEN_SIZES: Final = (1025, 1025, 5_000_000, 15_000_000, 30_000_000)
"""The same where little has to make room for much."""

ROUND_SECONDS_MIN: Final = 0.01
"""Between rounds of the scheduler's."""

WORKS_SECONDS: Final = 30.0
"""A run that takes so long works for longer than a worker waits for what stands still, even once it
has taken its memory."""


def with_room(
    dice: Random, workers: tuple[WorkerPlan, ...], acts: Sequence[Act]
) -> tuple[tuple[WorkerPlan, ...], list[Act]]:
    """Workers have a bound, results are large, and runs take some memory.

    Some runs wait for other tasks, and some work for long.
    """
    bounds = dice.choice((BOUNDS, BOUNDS, (dice.choice(BOUNDS),), (0, *BOUNDS)))
    workers = tuple([_with_bound(worker, dice.choice(bounds)) for worker in workers])
    takes_memory = all(worker.memory_limit == 0 for worker in workers)
    chosen: dict[str, TaskSpec] = {}
    changed: list[Act] = []
    sizes = dice.choice((SIZES, UNEVEN_SIZES))
    waits, works = dice.random() < 0.6, dice.random() < 0.2
    for act in acts:
        if isinstance(act, Submit):
            new = [task for task in act.tasks if task.label not in chosen]
            ratio = dice.choice((0, 0.3, 0.6, 1.2) if waits or works else (0, 0, 0.1, 0.6))
            peak = int(ratio * BOUNDS[1]) if takes_memory else 0
            chosen.update({task.label: _changed(dice, task, peak, sizes) for task in new})
            if waits and new:
                _have_some_wait(dice, new, chosen)
            if works and new:
                works = False
                task = chosen[dice.choice(new).label]
                chosen[task.label] = replace(task, seconds=WORKS_SECONDS)
            act = replace(act, tasks=tuple([chosen[task.label] for task in act.tasks]))  # noqa: PLW2901
        changed.append(act)
    return workers, changed


def with_time(settings: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    """What waits for room may do so for long, in which timers are not to fill all steps."""
    return tuple(
        [
            (name, max(value, ROUND_SECONDS_MIN) if name == "reduction_seconds" else value)
            for name, value in settings
        ]
    )


def _with_bound(worker: WorkerPlan, bound: int) -> WorkerPlan:
    if bound and worker.memory_limit:
        bound = int(BOUND_RATIO * worker.memory_limit)
    return replace(worker, room_bytes=bound)


def _changed(dice: Random, task: TaskSpec, peak_bytes: int, sizes: Sequence[int]) -> TaskSpec:
    is_large = task.nbytes >= LARGE_NBYTES or dice.random() < LARGE_RATIO
    nbytes = dice.choice(sizes) if is_large else task.nbytes
    return replace(task, nbytes=nbytes, peak_bytes=task.peak_bytes or peak_bytes)


def _have_some_wait(dice: Random, tasks: Sequence[TaskSpec], chosen: dict[str, TaskSpec]) -> None:
    """For tasks that don't need them; those that are waited for wait for nobody."""
    for _ in range(dice.choice((1, 2, 4))):
        waiter, other = dice.choice(tasks), dice.choice(tasks)
        needed = _ancestors(other, tasks)
        is_free = waiter.label not in needed and other.label not in _ancestors(waiter, tasks)
        if is_free and not any(chosen[label].awaits for label in needed):
            chosen[waiter.label] = replace(
                chosen[waiter.label], awaits=other.key, says_so=dice.random() < 0.5
            )


def _ancestors(task: TaskSpec, tasks: Sequence[TaskSpec]) -> dict[str, None]:
    """Labels of it and of those that it needs, of these."""
    by_key = {each.key: each for each in tasks}
    found = {task.label: None}
    stack = [task]
    while stack:
        for key in stack.pop().inputs:
            needed = by_key.get(key)
            if needed is not None and needed.label not in found:
                found[needed.label] = None
                stack.append(needed)
    return found
