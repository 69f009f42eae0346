"""The web page of a cluster: found, answered, and gone with it."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from shoal import Client
from shoal.deploy.local import LocalCluster
from shoal.testing.clusters import gen_test
from shoal.testing.watching import captured_logger
from tests.unit.web.visitor import visit

OPTIONS: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1}


@pytest.fixture(params=[True, False], ids=["processes", "threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """With a page on any free port."""
    with LocalCluster(processes=request.param, dashboard_address=":0", **OPTIONS) as running:
        yield running


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.status == 200
        text: bytes = response.read()
        return text.decode()


def test_the_link_of_client_and_cluster_answers(cluster: LocalCluster) -> None:
    """However the client found the cluster."""
    link = cluster.dashboard_link
    assert link.startswith("http://127.0.0.1:")
    assert link.endswith("/status")
    assert "<title>shoal</title>" in _read(link)
    with Client(cluster) as client:
        assert client.dashboard_link == link
        assert client.scheduler_info()["services"] == cluster.scheduler.services
        assert link in client._repr_html_()
    with Client(cluster.scheduler_address, security=cluster.token) as client:
        assert client.dashboard_link == link


def test_counts_follow_what_clients_do(cluster: LocalCluster) -> None:
    """Read over HTTP, as a script does."""
    with Client(cluster) as client:
        future = client.submit(bytes, 5)
        assert future.result() == bytes(5)
        counts = json.loads(_read(cluster.dashboard_link.replace("/status", "/json/counts.json")))
        assert (counts["workers"], counts["cores"], counts["memory"]) == (1, 1, 1)
        assert counts["bytes"] > 5


def test_two_clusters_have_pages_of_their_own_and_say_nothing_of_it() -> None:
    """The second takes the next free port."""
    with (
        captured_logger("shoal") as heard,
        LocalCluster(processes=False, **OPTIONS) as first,
        LocalCluster(processes=False, **OPTIONS) as second,
    ):
        ports = [cluster.scheduler.services["dashboard"] for cluster in (first, second)]
        assert 8787 <= ports[0] < ports[1]
    assert "port" not in heard.getvalue()


def test_a_cluster_without_a_page_has_no_link() -> None:
    """None turns it off."""
    with LocalCluster(processes=False, dashboard_address=None, **OPTIONS) as cluster:
        assert cluster.dashboard_link == ""
        with Client(cluster) as client:
            assert client.dashboard_link == ""
            assert "dashboard" not in client._repr_html_()


@gen_test()
async def test_a_page_on_loopback_is_for_this_machine_only() -> None:
    """The default; a foreign name is refused."""
    async with LocalCluster(
        processes=False, asynchronous=True, dashboard_address=":0", **OPTIONS
    ) as cluster:
        port = cluster.scheduler.services["dashboard"]
        assert (await visit(port, "/health", host="evil.example")).status == 403
