"""joblib's backend `dask` runs on shoal, through the drop-in that it imports as `distributed`."""

from pathlib import Path

import pytest

from tests.programs import DROP_IN, printed_by_script

SCRIPT = """
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
    printed = printed_by_script(SCRIPT.format(processes=processes), tmp_path, path=(DROP_IN,))
    total, lengths, sums, refusal = printed.splitlines()
    assert int(total) == sum(n * n for n in range(1000))
    assert lengths == "[5000, 2]"
    assert sums == "400000"
    assert refusal in ("no 0", "no 1", "no 2")
