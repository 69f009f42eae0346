"""Random tables and arrays, exchanged between workers, are what pandas and numpy say they are."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from shoal import Client
from shoal.client.dask_settings import drop_in_is_ours

pytest.importorskip("dask.dataframe")

from tests.exchanged.kinds import is_for_cluster
from tests.exchanged.running import run_on_cluster

pytestmark = [
    pytest.mark.skipif(
        not (drop_in_is_ours() and find_spec("pyarrow")),
        reason="dask finds shuffles by the name `distributed`, and sends them by pyarrow",
    ),
    # of dask's, as it reads instants with a time zone
    pytest.mark.filterwarnings("ignore:Series.values returning:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """One cluster for all of them."""
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as one:
        yield one


@pytest.mark.parametrize("number", [n for n in range(300) if is_for_cluster(n)])
def test_what_is_exchanged_is_what_it_was(client: Client, number: int) -> None:
    run_on_cluster(number)
