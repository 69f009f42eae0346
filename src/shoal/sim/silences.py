"""Faults that keep peers from hearing each other, in runs where silence is looked at.

They are drawn by chance of their own, beside all others.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from shoal.sim.faults import OCCASIONS
from shoal.sim.plan import Act, Ambush, Deafen, Fault, Submit

LOOKED_AT: Final = ("suspect_seconds", "worker_ttl_seconds")
"""Settings that make silence matter."""

DEAF_SECONDS: Final = (0.2, 0.8, 0.8, 1.3, 2.5)
"""Of these some are too short for anybody to notice, and one is too long for a time to live."""


def deafness(
    dice: Random,
    nworkers: int,
    acts: Sequence[Act],
    busy_seconds: float,
    settings: tuple[tuple[str, float], ...],
) -> list[Fault]:
    """Workers hear nothing for a while, in some seeds: at a time, or as something happens."""
    if not any(name in LOOKED_AT for name, _ in settings) or dice.random() < 0.5:
        return []
    starts = [act.at for act in acts if isinstance(act, Submit)] or [0.0]
    faults: list[Fault] = []
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.choice(starts) + dice.random() ** 2 * 2.0 * busy_seconds
        fault = Deafen(
            at, dice.randrange(nworkers), dice.choice(DEAF_SECONDS), breaks=dice.random() < 0.3
        )
        occasion = dice.choice(tuple(OCCASIONS))
        nth = int(dice.expovariate(1.0) * OCCASIONS[occasion])
        waits, befalls_other = dice.random() < 0.5, dice.random() < 0.5
        faults.append(Ambush(0.0, occasion, nth, fault, befalls_other) if waits else fault)
    return faults


def lasting_seconds(faults: Sequence[Fault]) -> float:
    """How long the longest of these lasts."""
    parts = [fault.fault if isinstance(fault, Ambush) else fault for fault in faults]
    return max([part.seconds for part in parts if isinstance(part, Deafen)], default=0.0)
