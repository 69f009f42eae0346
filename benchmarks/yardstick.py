"""How fast Python is at work of a scheduler's kind, here and where limits in microseconds are from.

The same program takes twice as long on one machine as on another of the same description, and as
an hour before: memory is shared with strangers.  So such a limit names what this piece of work took
when it was set, and is compared with what was measured in the same minutes, times the ratio.
"""

from statistics import median
from time import process_time_ns

REFERENCE_US = 0.59
"""What `measure_us` gave where the scheduler's limits were set; decision 38 has the sums."""

NOBJECTS = 20_000


class _Record:
    """An object like a task: some places, one of them a set."""

    __slots__ = ("name", "others", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.others: set[int] = set()
        self.state = 0


def measure_us() -> float:
    """Microseconds of processor time to make, name, link, change and drop an object."""
    before = process_time_ns()
    by_name: dict[str, _Record] = {}
    for index in range(NOBJECTS):
        record = _Record(f"record-{index}")
        by_name[record.name] = record
        record.others.add(index)
    for record in by_name.values():
        record.state += 1
        record.others.clear()
    for name in list(by_name):
        del by_name[name]
    return (process_time_ns() - before) / 1000 / NOBJECTS


def slowness(readings: list[float]) -> float:
    """How many times longer the same work takes here than where the limits are from."""
    return median(readings) / REFERENCE_US
