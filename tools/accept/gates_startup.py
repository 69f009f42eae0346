"""How long a program waits before it can work, and what its idle processes weigh."""

import json
import os
import tempfile
from collections.abc import Iterator
from statistics import median
from typing import Any

from tests.programs import run_python
from tools.accept.figure import GATES, Figure

ROUNDS = 7
RUN_SECONDS_MAX = 120.0
COLD_SECONDS_MAX = 0.6
WARM_SECONDS_MAX = 0.15
IMPORT_SECONDS_MAX = 0.1
WORKER_BYTES_MAX = 60 * 2**20

IMPORTS = """
import json
from time import process_time  # importing waits for nothing, and others may be at work

import dask
began_at = process_time()
import shoal
from shoal import Client, LocalCluster
print(json.dumps({"import": process_time() - began_at}))
"""

CLUSTERS = """
import json
from time import perf_counter

import psutil

from shoal import LocalCluster

def start():
    began_at = perf_counter()
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True)
    return cluster, perf_counter() - began_at

first, cold = start()
resident = [psutil.Process(w.pid).memory_info().rss for w in first.workers.values()]
first.close()
second, warm = start()
second.close()
print(json.dumps({"cold": cold, "warm": warm, "resident": max(resident)}))
"""


@GATES.register("start-up")
def start_up() -> Iterator[Figure]:
    """Fresh interpreters, one after the other; all modules are compiled, as after any first run."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = folder
        programs = (IMPORTS, CLUSTERS)
        for program in programs:
            _run(program, environ)
        rounds = [{**_run(IMPORTS, environ), **_run(CLUSTERS, environ)} for _ in range(ROUNDS)]
    yield _seconds("LocalCluster of two processes, cold", rounds, "cold", COLD_SECONDS_MAX)
    yield _seconds("LocalCluster of two processes, second", rounds, "warm", WARM_SECONDS_MAX)
    yield _seconds("import shoal, over dask, processor time", rounds, "import", IMPORT_SECONDS_MAX)
    nbytes = max(found["resident"] for found in rounds)
    yield Figure(
        "worker process without pandas, resident",
        f"{nbytes / 2**20:.0f} MiB",
        f"<= {WORKER_BYTES_MAX / 2**20:.0f} MiB",
        nbytes <= WORKER_BYTES_MAX,
    )


def _run(program: str, environ: dict[str, str]) -> dict[str, Any]:
    """What the program printed.

    Raises:
        RuntimeError: it failed, or said something on stderr.
    """
    done = run_python("-c", program, environ=environ, seconds_max=RUN_SECONDS_MAX)
    if done.returncode or done.stderr:
        raise RuntimeError(done.stderr or f"exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _seconds(name: str, rounds: list[dict[str, Any]], key: str, seconds_max: float) -> Figure:
    taken = sorted(found[key] for found in rounds)
    middle = median(taken)
    return Figure(
        name,
        f"{1000 * middle:.0f} ms, median of {len(taken)} from {1000 * taken[0]:.0f} to "
        f"{1000 * taken[-1]:.0f}",
        f"<= {1000 * seconds_max:.0f} ms",
        middle <= seconds_max,
    )
