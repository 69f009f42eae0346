"""Which placed task shall an idle worker take from another?"""

from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.policies.placement import EarliestStart


class TakeFromBacklog:
    """Take from the most loaded worker's backlog, if the task would then start sooner.

    What is in a backlog was never sent, so taking it costs no message and can't be refused.
    """

    __slots__ = ("placement",)

    def __init__(self, placement: EarliestStart) -> None:
        self.placement = placement

    def is_worth_it(
        self, task: Task, expected_us: int, victim: Worker, thief: Worker, now: float
    ) -> bool:
        """Whether `task` starts sooner on `thief`, inputs moved, than where it is.

        What was expected when tasks were placed may be long outdated, so the victim's queue is also
        judged by what is known now: its length, and how long it has said nothing.
        """
        work_us = max(victim.occupancy_us, len(victim.processing) * expected_us)
        silent_us = (now - victim.heard_at) * 1e6
        there = max(work_us / victim.nthreads, silent_us)
        here = thief.occupancy_us / thief.nthreads
        return here + self.placement.fetch_us(task, thief, now) < (
            there + self.placement.fetch_us(task, victim, now)
        )
