"""What is left of clusters that were closed."""

from shoal import Client, LocalCluster
from tools.accept.gates_growth import census


def live() -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        squares = client.map(pow, range(20), [2] * 20, pure=False)
        assert client.submit(sum, squares).result() == 2470


def test_no_object_of_a_closed_cluster_stays():
    live()  # tables that are made once stay
    before = census()
    live()
    live()
    assert census() - before == {}
