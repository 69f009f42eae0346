"""What is a task worth when several clients submit, and how much weight has each of them?"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from shoal.scheduler.model.entities import Client, Prefix
from shoal.scheduler.model.shares import COST_MAX, STEP, Level

SAMPLE_TASKS = 32
"""Tasks that must have been sent until it is looked at again what a tag is worth."""

DRIFT_MAX = 4.0
"""Such a look changes the worth of a tag by no more than this factor, whatever was seen."""

WEIGHT_MIN = 0.01
WEIGHT_MAX = 100.0


def weight_of(name: str, asked: float, by_pattern: Mapping[str, float]) -> float:
    """The weight of a client called `name`: of the first pattern that it matches, or as `asked`."""
    for pattern, weight in by_pattern.items():
        if fnmatchcase(name, pattern):
            asked = weight
            break
    if not asked > 0:  # as no number is, too
        return WEIGHT_MIN
    return min(max(asked, WEIGHT_MIN), WEIGHT_MAX)


def cost(prefix: Prefix | None, level: Level, weight: float) -> int:
    """By how much a task moves on the tags of its client; one that is not known yet counts as one
    of usual length, so that it takes turns with others."""
    duration_us = -1.0 if prefix is None else prefix.duration_us
    if duration_us < 0:
        duration_us = level.typical_us
    units = duration_us * level.units_per_us / weight
    return 1 if units < 1 else COST_MAX if units > COST_MAX else int(units)


def units_seen(level: Level, weights: Mapping[Client, float]) -> float:
    """How many units of tags is a microsecond worth, now that tasks were seen?

    Tags were given by what was expected then.  A task that comes now shall cost as much as others
    paid: so many tags in all, each by its client's weight, for so much work.
    """
    paid = 0.0
    for client, standing in level.standings.items():
        tags = min(standing.next_tag, level.furthest) - max(standing.began, level.mark)
        paid += max(0, tags) * weights.get(client, 0.0)
    if paid <= 0 or level.served_us <= 0:
        return level.units_per_us
    drift = paid / level.served_us / level.units_per_us
    trust = level.nserved / (level.nserved + SAMPLE_TASKS)  # in what was seen
    drift = min(max(float(drift**trust), 1 / DRIFT_MAX), DRIFT_MAX)
    return min(max(level.units_per_us * drift, 1e-6), float(STEP))
