"""Pytest's fixtures: import those that a test module uses into it, or into its conftest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.client.blocking import LoopThread
from shoal.client.client import Client
from shoal.testing.clusters import cluster
from shoal.testing.watching import clean

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
def client(loop: asyncio.AbstractEventLoop, s: dict[str, Any]) -> Iterator[Client]:
    """A blocking client of the cluster."""
    with Client(s["address"], loop=loop) as connected:
        yield connected


@pytest.fixture
def c(client: Client) -> Client:
    """The same."""
    return client


@pytest.fixture
def client_secondary(loop: asyncio.AbstractEventLoop, s: dict[str, Any]) -> Iterator[Client]:
    """Another client of the cluster, which is not the default one."""
    with Client(s["address"], loop=loop, set_as_default=False) as connected:
        yield connected
