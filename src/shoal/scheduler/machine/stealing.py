"""What is placed on one worker and not sent goes to another that has room and nothing to do."""

from collections.abc import Iterator
from itertools import islice

from shoal.protocol.messages import FreeReplicas
from shoal.scheduler.machine.admitting import is_kept_from
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.placing import first_of_backlog, update_load
from shoal.scheduler.machine.staying import may_get_inputs
from shoal.scheduler.model.entities import NO_RUN, Task, Worker
from shoal.scheduler.model.shares import SEQUENCE_BITS
from shoal.scheduler.policies.placement import may_run_on

LOOKS_PER_STEP = 16
"""Looks of one step, all thieves together: others come with the next event, or in a moment."""

THIEVES_PER_ARRIVAL = 4
"""Idle workers that look again when a large result has arrived: it has one more source."""

VICTIMS_MAX = 3
"""Workers with the most to do that are asked for one task."""

TASKS_MAX = 3
"""Tasks of one of them that are looked at."""

REPLACED_MAX = 200
"""Tasks of a worker whose guesses are put right: where there are more, some moving pays anyway."""

LOOKS_MAX = 2
"""Doublings of the time after which a worker looks again."""


def steal_for(core: Core, thief: Worker) -> Task | None:
    """Place on `thief` what another has in its backlog; None if nothing is worth it.

    The more urgent goes first; of what is as urgent, that which its worker would come to last: what
    belongs together stays together, and `thief` goes on from the end.  Who has found nothing
    looks again in a while that doubles each time.  Cost: O(1), some 10 us.
    """
    if core.now < thief.looks_at and thief.nsent >= thief.looks_nsent:
        return None
    if core.nlooks_left <= 0:
        return None
    core.nlooks_left -= 1
    expected_us = core.queuing.expected_us
    for victim in list(islice(core.state.backlogged.from_highest(), VICTIMS_MAX)):
        if victim is thief:
            continue
        head = first_of_backlog(victim)
        if head is None:
            continue
        if (
            victim.guessed is not None
            and head.prefix.duration_us >= 0
            and len(victim.processing) <= REPLACED_MAX
        ):
            _replace_guesses(core, victim)
        gain_us = core.stealing.gain_us(expected_us(head), victim, thief, core.now)
        if gain_us <= 0:
            continue
        for task in _within_reach(victim, head):
            if _may_have(core, task, thief) and core.stealing.is_worth_it(
                task, expected_us(task), gain_us, victim, thief, core.now
            ):
                _move(core, task, victim, thief)
                thief.nlooks = 0
                return task
        core.state.backlogged.put_last(victim)  # the next thief had better ask somebody else
    thief.nlooks = min(thief.nlooks + 1, LOOKS_MAX)
    thief.looks_at = core.now + core.settings.recall_after_seconds * 2**thief.nlooks / 2
    thief.looks_nsent = thief.nsent
    return None


def _replace_guesses(core: Core, worker: Worker) -> None:
    """What was placed before any of its kind had ended takes as long as is known by now.

    Half a second is the guess: after milliseconds of work that counts for minutes, and to move
    inputs of gigabytes away from there would seem to be worth it.  Cost: 0.2 us for each.
    """
    worker.guessed = None
    processing = worker.processing
    for task, before_us in processing.items():
        if task.run == NO_RUN:
            if task.prefix.duration_us < 0:
                worker.guessed = task.prefix
            else:
                processing[task] = expected_us = core.queuing.expected_us(task)
                worker.backlog_us += expected_us - before_us
    update_load(core, worker)


def is_better_off(core: Core, task: Task, worker: Worker, idle: Worker) -> bool:
    """Whether a run that has not begun would begin sooner on an idle worker that may have it."""
    if not _may_have(core, task, idle):
        return False
    expected_us = core.queuing.expected_us(task)
    gain_us = core.stealing.gain_us(expected_us, worker, idle, core.now)
    return core.stealing.is_worth_it(task, expected_us, gain_us, worker, idle, core.now)


def look_for_work_now(core: Core, nthieves: int) -> None:
    """Something has changed for the better: so many idle workers look for work in this step."""
    for worker in islice(core.state.open.from_lowest(), nthieves):
        if worker.nsent == 0:
            worker.looks_at = 0.0
            core.refill[worker] = None


def _within_reach(victim: Worker, head: Task) -> Iterator[Task]:
    """Some tasks in the order in which they may be taken; nothing may change meanwhile.

    `head`: the most urgent one.
    """
    backlog = victim.backlog
    while not _is_placed(backlog[-1][2], victim):
        backlog.pop()
    if backlog[-1][0] >> SEQUENCE_BITS == head.priority >> SEQUENCE_BITS:
        entries = sorted(backlog[-TASKS_MAX:], reverse=True)  # mostly the least urgent
    else:
        entries = sorted(backlog[:TASKS_MAX])
    for _, _, task in entries:
        if _is_placed(task, victim):
            yield task


def _is_placed(task: Task, worker: Worker) -> bool:
    """Whether an entry of the worker's backlog still holds."""
    return task.worker is worker and task.run == NO_RUN


def _may_have(core: Core, task: Task, thief: Worker) -> bool:
    return (
        may_run_on(task, thief)
        and not core.queuing.must_wait(task, thief)
        and not (task.prefix.weighs and not _has_memory(core, task, thief))
        and not (task.blame and task in core.state.footprints.overfilled)
        and thief not in core.state.avoided.get(task, ())
        and not (core.state.witnesses and not may_get_inputs(core, task, thief))
    )


def _has_memory(core: Core, task: Task, thief: Worker) -> bool:
    """Whether it has room for what takes much, and that is not kept for something more urgent."""
    is_free = not is_kept_from(core, task, thief)
    return is_free and core.admission.fits(task, thief, core.now)


def _move(core: Core, task: Task, victim: Worker, thief: Worker) -> None:
    """Take `task` out of the victim's backlog, and give it to `thief`, to be sent.

    Its entry in the victim's heap does not hold any more, and is dropped when its turn comes.
    """
    expected_us = victim.processing.pop(task)
    victim.backlog_us -= expected_us
    if victim.backlog and victim.backlog[-1][2] is task:
        victim.backlog.pop()
    if task.id in victim.leftovers:
        del victim.leftovers[task.id]
        core.to_worker(victim, FreeReplicas([task.id]))
    ways = core.state.ways
    if ways.moving:
        ways.end(task, victim)
    task.worker = thief
    ways.begin(task, thief)
    update_load(core, victim)
    core.story.moves.append((core.now, task.key, victim.id, thief.id))
    thief.processing[task] = expected_us
    thief.backlog_us += expected_us
