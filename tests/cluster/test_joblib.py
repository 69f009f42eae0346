"""joblib's backend `dask` runs on shoal, through the drop-in that it imports as `distributed`."""

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "drop-in" / "src"
SCRIPT = """
import sys
sys.path.insert(0, {source!r})
import numpy
from joblib import Parallel, delayed, parallel_config
from shoal import Client

def refuse(number):
    raise ValueError(f"no {{number}}")

if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, processes={processes}, dashboard_address=None):
        with parallel_config(backend="dask"):
            print(sum(Parallel()(delayed(pow)(n, 2) for n in range(1000))))
            print(Parallel()(delayed(len)(part) for part in ([0] * 5000, "ab")))
            large = numpy.ones(100_000)  # sent once, through the client on its own loop
            print(int(sum(Parallel()(delayed(numpy.sum)(large) for _ in "four"))))
            try:
                Parallel()(delayed(refuse)(n) for n in range(3))
            except ValueError as error:
                print(error)
"""


@pytest.mark.parametrize("processes", [False, True])
def test_parallel_calls_give_results_and_errors(processes: bool, tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(source=str(SOURCE), processes=processes))
    answer = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=50, check=False
    )
    assert answer.stderr == ""
    total, lengths, sums, refusal = answer.stdout.splitlines()
    assert int(total) == sum(n * n for n in range(1000))
    assert lengths == "[5000, 2]"
    assert sums == "400000"
    assert refusal in ("no 0", "no 1", "no 2")
