"""What a person first does: an array three ways, the page, the demo, and the examples."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from tests.programs import ROOT, run_python
from tools.accept.figure import GATES, Figure

RUN_SECONDS_MAX = 300.0
DEMO_SECONDS_MAX = 30.0
SUM = 16_000_000.0

ARRAY = """
import urllib.request

import dask.array as da
from {module} import Client, LocalCluster

x = da.ones((4000, 4000), chunks=(1000, 1000))
print("synchronous", x.sum().compute(scheduler="synchronous"))
print("processes", x.sum().compute(scheduler="processes"))
with LocalCluster(n_workers=2, threads_per_worker=2, processes=True) as cluster:
    with Client(cluster) as client:
        print("cluster", x.sum().compute())
        print("mean", (x + x.T).mean().compute())
        print("link", client.dashboard_link)
        for path in ("/status", "/health"):
            link = client.dashboard_link.replace("/status", path)
            with urllib.request.urlopen(link, timeout=30) as answer:
                print(path, answer.status)
"""


@GATES.register("examples, an array", cheap=True)
def an_array() -> Iterator[Figure]:
    """The sum of ones under Dask's own schedulers and ours, and a mean that moves blocks."""
    for module in ("shoal", "dask.distributed"):
        status, said, errors = _run("-c", ARRAY.format(module=module))
        answers = dict(re.findall(r"^(\S+) (\S+)$", said, re.MULTILINE))
        sums = [answers.get(name, "none") for name in ("synchronous", "processes", "cluster")]
        name = f"{module}: sum of 4,000 x 4,000 ones, synchronous / processes / cluster"
        right = status == 0 and sums == [str(SUM)] * 3
        yield Figure(name, " / ".join(sums), str(SUM), right)
        mean = answers.get("mean", "none")
        yield Figure(f"{module}: (x + x.T).mean()", mean, "2.0", mean == "2.0")
        pages = [answers.get("link", "no link")]
        pages += [f"{path} {answers.get(path, 'none')}" for path in ("/status", "/health")]
        answering = pages[1:] == ["/status 200", "/health 200"]
        yield Figure(f"{module}: dashboard", ", ".join(pages), "200 for both", answering)
        yield _quiet(f"{module}: an array", errors)


@GATES.register("examples, the demo", cheap=True)
def the_demo() -> Iterator[Figure]:
    """All flights, through dataframes on two worker processes, checked against pandas."""
    started_at = monotonic()
    status, said, errors = _run("-m", "shoal", "demo")
    seconds = monotonic() - started_at
    lines = said.splitlines()[-2:]
    good = status == 0 and lines[-1:] == ["pandas alone finds the same"]
    yield Figure("demo", "; ".join(lines), "all flights, as pandas finds them", good)
    yield Figure(
        "demo, from the command to its end",
        f"{seconds:.1f} s",
        f"<= {DEMO_SECONDS_MAX:.0f} s",
        seconds <= DEMO_SECONDS_MAX,
    )
    yield _quiet("demo", errors)


@GATES.register("examples, scripts and notebook")
def the_examples() -> Iterator[Figure]:
    """Each file in `examples/` runs to its end and says nothing on stderr."""
    for script in sorted((ROOT / "examples").glob("*.py")):
        status, said, errors = _run(str(script))
        value = f"exit {status}, {said.count(chr(10))} lines"
        yield Figure(script.name, value, "exit 0", status == 0 and bool(said))
        yield _quiet(script.name, errors)
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        yield from _execute(notebook)


def _execute(notebook: Path) -> Iterator[Figure]:
    """Run each cell of a notebook in a kernel of its own."""
    status, said, errors = _run(str(ROOT / "tools" / "execute_notebook.py"), str(notebook))
    kinds = Counter(output["output_type"] for output in json.loads(said or "[]"))
    value = ", ".join(f"{n} of {kind}" for kind, n in kinds.items()) or "no output"
    passed = status == 0 and set(kinds) == {"execute_result"}
    yield Figure(notebook.name, value, "results, no streams and no error", passed)
    yield _quiet(notebook.name, errors)


def _quiet(what: str, errors: str) -> Figure:
    """Nothing may be on stderr."""
    return Figure(f"{what}: stderr", errors.strip()[-300:] or "empty", "empty", not errors)


def _run(*command: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a Python with warnings as errors, anywhere but here."""
    with tempfile.TemporaryDirectory() as folder:
        done = run_python(*command, cwd=folder, seconds_max=RUN_SECONDS_MAX)
    return done.returncode, done.stdout, done.stderr
