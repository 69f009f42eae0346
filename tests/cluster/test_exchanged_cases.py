"""Random tables and arrays, exchanged between workers, are what pandas and numpy say they are."""

from collections.abc import Iterator

import pytest

from shoal import Client

pytest.importorskip("dask.dataframe")

from tests.exchanged.kinds import is_for_cluster
from tests.exchanged.running import run_on_cluster
from tests.marks import needs_name

pytestmark = [
    needs_name,
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
