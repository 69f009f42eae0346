"""How long will a task take?  As long as the latest of its prefix did, about."""

from shoal.scheduler.model.entities import Prefix


def learn_duration(prefix: Prefix, seconds: float) -> None:
    """Take one finished run into the moving average, which weighs it one half, as users know it."""
    duration_us = max(0, round(seconds * 1e6))
    prefix.nfinished += 1
    if prefix.duration_us < 0:
        prefix.duration_us = duration_us
    else:
        prefix.duration_us = (prefix.duration_us + duration_us) >> 1
