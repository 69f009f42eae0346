"""What will a task take?  As long, and as much memory, as the latest of its prefix did, about."""

from typing import Final

from shoal.scheduler.model.entities import Prefix

DECAY_SHIFT: Final = 3
"""A high estimate comes down by an eighth of the difference with each run that took less."""


def learn_duration(prefix: Prefix, seconds: float) -> None:
    """Take one finished run into the moving average, which weighs it one half, as users know it."""
    duration_us = max(0, round(seconds * 1e6))
    prefix.nfinished += 1
    if prefix.duration_us < 0:
        prefix.duration_us = duration_us
    else:
        prefix.duration_us = (prefix.duration_us + duration_us) >> 1


def learn_footprint(prefix: Prefix, peak_bytes: int, output_bytes: int) -> None:
    """Take one finished run into the estimates of memory, which go up at once and down slowly.

    Args:
        peak_bytes: by which its worker grew for it; 0: too little to be told.
        output_bytes: of its result, which is part of that.
    """
    prefix.ngauged += 1
    prefix.peak_bytes = high_estimate(prefix.peak_bytes, max(peak_bytes, output_bytes))
    prefix.output_bytes = high_estimate(prefix.output_bytes, output_bytes)


def high_estimate(estimate: int, newest: int) -> int:
    """An estimate that is rarely too low, after the newest was seen."""
    if newest >= estimate:
        return newest
    return estimate - ((estimate - newest) >> DECAY_SHIFT)


def footprint_bytes(prefix: Prefix) -> int:
    """By how much a worker is expected to grow for a run, its result included."""
    return max(prefix.peak_bytes, prefix.output_bytes)
