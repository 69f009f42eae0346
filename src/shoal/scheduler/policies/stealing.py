"""Which placed task shall an idle worker take from another?"""

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.policies.placement import EarliestStart

MOVING_MAX = 2.0
"""What moving a task's inputs may take, as a multiple of what running it takes."""


GAIN_RATIO = 0.02
"""What moving may take of what is gained, whatever running it takes."""


class TakeFromBacklog:
    """Take from the most loaded worker's backlog, if the task would then start sooner.

    What is in a backlog was never sent, so taking it costs no message and can't be refused.
    """

    __slots__ = ("placement",)

    def __init__(self, placement: EarliestStart) -> None:
        self.placement = placement

    def gain_us(self, expected_us: int, victim: Worker, thief: Worker, now: float) -> float:
        """How much sooner the last task of `victim` would start on `thief`, but for its inputs.

        What was expected when tasks were placed may be long outdated, so the victim's queue is also
        judged by what is known now: its length, and how long it has said nothing.
        """
        work_us = max(victim.occupancy_us, len(victim.processing) * expected_us)
        silent_us = (now - victim.heard_at) * 1e6
        there = max(work_us / victim.nthreads, silent_us)
        return there - thief.occupancy_us / thief.nthreads

    def is_worth_it(
        self,
        task: Task,
        expected_us: int,
        gain_us: float,
        victim: Worker,
        thief: Worker,
        now: float,
    ) -> bool:
        """Whether `task` starts sooner on `thief`, inputs moved, than where it is.

        And whether moving them takes not much longer than running it, unless there is very much to
        be done: else the ways between workers, and those who send, would be busy with what the
        victim does faster by itself.
        """
        placement = self.placement
        lacks_us = placement.fetch_us(task, victim, now)
        sooner_us = gain_us + lacks_us
        if placement.fetch_us(task, thief, now, sooner_us) >= sooner_us:
            return False
        shares_us = placement.fetch_shares_us(task, thief, now)
        takes_us = float(expected_us)
        if placement.follows_its_like(task, (victim,)):
            takes_us = min(takes_us, (now - victim.heard_at) * 1e6)  # so long it has taken, or more
        moving_max_us = MOVING_MAX * max(takes_us, placement.latency_us)
        if task.prefix.duration_us >= 0:  # else what is gained is a guess
            moving_max_us = max(moving_max_us, gain_us * GAIN_RATIO)
        return shares_us <= lacks_us + moving_max_us
