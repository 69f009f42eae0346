"""Pytest's fixtures: import those that a test module uses into it, or into its conftest."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, Final

import pytest

from shoal.client.blocking import LoopThread
from shoal.client.client import Client
from shoal.compat.security import Security
from shoal.testing.certificates import tls_only_security
from shoal.testing.clusters import cluster
from shoal.testing.leaks import clean

DEFAULT_PORTS: Final = (8786, 8787)

Addresses = tuple[dict[str, Any], list[dict[str, Any]]]


@pytest.fixture
def cleanup() -> Iterator[None]:
    """Nothing is left behind."""
    with clean():
        yield


@pytest.fixture
def loop_in_thread(cleanup: None) -> Iterator[asyncio.AbstractEventLoop]:
    """The loop of blocking clients, running in its thread."""
    thread = LoopThread.acquire()
    try:
        yield thread.loop
    finally:
        thread.release()


@pytest.fixture
def loop(loop_in_thread: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """The same."""
    return loop_in_thread


@pytest.fixture
def cluster_fixture(loop: asyncio.AbstractEventLoop) -> Iterator[Addresses]:
    """A scheduler and two workers, in processes."""
    with cluster() as running:
        yield running


@pytest.fixture
def s(cluster_fixture: Addresses) -> dict[str, Any]:
    """The scheduler: its address."""
    return cluster_fixture[0]


@pytest.fixture
def a(cluster_fixture: Addresses) -> dict[str, Any]:
    """The first worker: its address and process."""
    return cluster_fixture[1][0]


@pytest.fixture
def b(cluster_fixture: Addresses) -> dict[str, Any]:
    """The second worker: its address and process."""
    return cluster_fixture[1][1]


@pytest.fixture
def client(loop: asyncio.AbstractEventLoop, cluster_fixture: Addresses) -> Iterator[Client]:
    """A blocking client of the cluster."""
    with Client(cluster_fixture[0]["address"], loop=loop) as connected:
        yield connected


@pytest.fixture
def c(client: Client) -> Client:
    """The same."""
    return client


@pytest.fixture
def client_secondary(
    loop: asyncio.AbstractEventLoop, cluster_fixture: Addresses
) -> Iterator[Client]:
    """Another client of the cluster, which is not the default one."""
    with Client(cluster_fixture[0]["address"], loop=loop, set_as_default=False) as connected:
        yield connected


@pytest.fixture
def client_no_amm(client: Client) -> Iterator[Client]:
    """A client of a cluster where no policy drops or copies results by itself."""
    is_running = client.amm.running()
    client.amm.stop()
    yield client
    if is_running:
        client.amm.start()


@pytest.fixture
def security() -> Security:
    """Of connections that have to be encrypted."""
    return tls_only_security()


@pytest.fixture
def tls_cluster(loop: asyncio.AbstractEventLoop, security: Security) -> Iterator[Addresses]:
    """As `cluster_fixture`, encrypted: an UnsupportedOption, as by `gen_tls_cluster`."""
    options = {"security": security}
    with cluster(worker_kwargs=options, scheduler_kwargs=options) as running:
        yield running


@pytest.fixture
def tls_client(
    loop: asyncio.AbstractEventLoop, tls_cluster: Addresses, security: Security
) -> Iterator[Client]:
    """A blocking client of the encrypted cluster."""
    with Client(tls_cluster[0]["address"], security=security, loop=loop) as connected:
        yield connected


@pytest.fixture
def name_of_test(request: pytest.FixtureRequest) -> str:
    """The test's name, without its file."""
    return str(request.node.name)


@pytest.fixture
def requires_default_ports(name_of_test: str) -> None:
    """Skip a test if somebody has the ports that services take when nobody says otherwise."""
    for port in DEFAULT_PORTS:
        try:
            socket.create_server(("", port)).close()
        except OSError as error:
            pytest.skip(f"{name_of_test} needs port {port}: {error}")


@pytest.fixture
def no_time_resync() -> None:
    """For tests that compare times: clocks here are never set back."""
