"""Seconds and bytes: from what people write to numbers, and back to what people read."""

from datetime import timedelta
from math import isfinite, isnan
from operator import index

from dask.utils import parse_bytes, parse_timedelta

MICROSECOND = 1e-6  # s
MILLISECOND = 1e-3  # s
MINUTE = 60.0  # s
HOUR = 3600.0  # s

KIB = 2**10  # bytes
MIB = 2**20  # bytes
GIB = 2**30  # bytes

_STEPS = ((2**50, "PiB"), (2**40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "kiB"))


def to_seconds(duration: float | str | timedelta) -> float:
    """A duration in seconds, from `2.5`, `"500ms"`, `"5 minutes"`, `"inf"` or a timedelta.

    Raises:
        ValueError: a text that is no number with a unit of time.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if not isinstance(duration, str):
        return float(duration)
    try:
        seconds = float(duration)
    except ValueError:
        return _parsed_seconds(duration)
    if isnan(seconds):
        raise ValueError(f"{duration!r} is no duration, such as 2.5, 500ms or 5 minutes")
    return seconds


def to_nbytes(size: float | str) -> int:
    """A size in bytes, from `1024`, `"50MB"` (powers of ten) or `"64MiB"` (powers of two).

    Raises:
        ValueError: a text that is no number with a unit of size.
    """
    if not isinstance(size, str):
        return int(size)
    try:
        if size.strip():  # dask takes nothing for one byte
            return int(parse_bytes(size))
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{size!r} is no size, such as 1000000, 50MB or 2 GiB")


def to_count(name: str, value: object, least: int = 0) -> int:
    """A count from whatever Python takes for a whole number, numpy's integers included.

    Args:
        name: of the argument, for the error.
        least: the smallest number that makes sense.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than `least`.
    """
    try:
        count = index(value)  # type: ignore[arg-type]  # what it is has to be found out
    except TypeError:
        raise TypeError(f"{name} is a whole number from {least} on, not {value!r}") from None
    if count < least:
        raise ValueError(f"{name} is a whole number from {least} on, not {value!r}")
    return count


def format_nbytes(nbytes: int) -> str:
    """A size for people, in powers of two and to three digits: `"1.46 GiB"`, `"12 B"`."""
    for step, name in _STEPS:
        if abs(nbytes) >= step * 0.9:
            return f"{nbytes / step:.2f} {name}"
    return f"{nbytes} B"


def format_seconds(seconds: float) -> str:
    """A duration for people: `"1.2 us"`, `"350 ms"`, `"12.0 s"`, `"3m 20s"`, `"2h 5m"`."""
    if not isfinite(seconds):
        return f"{seconds} s"
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if round(seconds) >= HOUR:
        hours, minutes = divmod(round(seconds / MINUTE), 60)
        return f"{sign}{hours}h {minutes}m"
    if round(seconds, 1) >= 2 * MINUTE:
        minutes, rest = divmod(round(seconds), 60)
        return f"{sign}{minutes}m {rest}s"
    for unit_seconds, unit in ((MICROSECOND, "us"), (MILLISECOND, "ms")):
        digits = f"{seconds / unit_seconds:.3g}"
        if float(digits) < 1000:  # once it is rounded: 999.9 us are a millisecond
            return f"{sign}{digits} {unit}" if float(digits) >= 0.01 else f"0 {unit}"
    return f"{sign}{seconds:.1f} s"


def _parsed_seconds(text: str) -> float:
    try:
        return float(parse_timedelta(text))
    except KeyError:  # dask's word for an unknown unit
        raise ValueError(f"{text!r} has no unit of time, such as s, ms, minutes or hours") from None
    except (ValueError, IndexError):
        raise ValueError(f"{text!r} is no duration, such as 2.5, 500ms or 5 minutes") from None
