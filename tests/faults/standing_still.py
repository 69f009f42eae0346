"""How long others wait for a worker that has stopped, is cut off, or can't be reached by a peer.

Each returns the seconds until what needs its data is there, as everything is set by default.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

from shoal import Client, LocalCluster, wait
from tests.faults.kit.ends import length, whole
from tests.faults.kit.networks import Network
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.roles import Cast, free_port

NBYTES: Final = 2_000_000
FEW_NBYTES: Final = 100_000
SECONDS_MAX: Final = 20.0
PROGRESS_SECONDS_MAX: Final = 15.0
"""Promised for each of them."""

Settings = dict[str, str]


# ---- a worker that is stopped


@contextmanager
def two_workers() -> Iterator[Client]:
    """With a process each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seconds_past_a_frozen_holder(client: Client) -> float:
    """Until a result is there whose input a frozen worker holds; it is thawed then."""
    pid_by_address = client.run(os.getpid)
    holder, reader = pid_by_address
    value = client.submit(whole, FEW_NBYTES, workers=[holder], allow_other_workers=True, pure=False)
    wait(value, timeout=PROGRESS_SECONDS_MAX)
    assert client.who_has(value)[value.key] == (holder,)
    os.kill(pid_by_address[holder], signal.SIGSTOP)
    began_at = monotonic()
    try:
        total = client.submit(length, value, workers=[reader], pure=False)
        assert total.result(timeout=2 * PROGRESS_SECONDS_MAX) == FEW_NBYTES
        return monotonic() - began_at
    finally:
        os.kill(pid_by_address[holder], signal.SIGCONT)


def frozen(_stage: Path) -> float:
    """One of two workers on this machine."""
    with two_workers() as client:
        return seconds_past_a_frozen_holder(client)


# ---- a machine that is cut off


@contextmanager
def two_machines(
    stage: Path, settings: Settings
) -> Iterator[tuple[Client, Network, dict[str, str]]]:
    """A scheduler here, a worker on each of two other machines; the workers' addresses by name."""
    with Network("a", "b") as network, Cast(stage) as cast:
        _, address = cast.scheduler(host=network.host, **settings)
        workers = {}
        for name in ("a", "b"):
            options = ("--name", name)
            inside = {"host": network.address_of(name), "inside": network.inside(name)}
            _, workers[name] = cast.worker(address, *options, **inside, **settings)
        with cast.client(address) as client:
            yield client, network, workers
            network.join("a")
        assert cast.complaints("scheduler", "[Ww]orker") == []


def cut_off(stage: Path, settings: Settings | None = None) -> float:
    """The machine of the worker that holds what another one needs."""
    with two_machines(stage, settings or {}) as (client, network, workers):
        value = client.submit(whole, NBYTES, workers=[workers["a"]], allow_other_workers=True)
        wait(value, timeout=SECONDS_MAX)
        network.cut("a")
        began_at = monotonic()
        total = client.submit(length, value, workers=[workers["b"]])
        assert total.result(timeout=2 * PROGRESS_SECONDS_MAX) == NBYTES
        return monotonic() - began_at


# ---- a peer that does not answer


@contextmanager
def a_holder_behind_a_proxy(stage: Path) -> Iterator[tuple[Client, Proxy, str]]:
    """Two workers, one of which peers reach by way of a proxy; and the address of the other."""
    port = free_port()
    with Cast(stage) as cast, Proxy(f"tcp://127.0.0.1:{port}") as proxy:
        _, address = cast.scheduler()
        place = ("--worker-port", str(port), "--contact-address", proxy.address)
        cast.worker(address, "--no-nanny", *place)
        _, reader = cast.worker(address, "--no-nanny")
        with cast.client(address) as client:
            yield client, proxy, reader
            proxy.mend()
        assert cast.complaints("[Ww]orker") == []


def seconds_to_use(
    client: Client, holder: str, reader: str, seconds_max: float, nbytes: int = NBYTES
) -> float:
    """How long it takes until a result of `holder` has been used where it is not."""
    value = client.submit(whole, nbytes, workers=[holder], allow_other_workers=True, pure=False)
    wait(value, timeout=SECONDS_MAX)
    began_at = monotonic()
    total = client.submit(
        length, value, workers=[reader], allow_other_workers=True, pure=False
    ).result(timeout=seconds_max)
    assert total == nbytes
    return monotonic() - began_at


def unreachable(stage: Path) -> float:
    """The scheduler hears the holder, and a peer's requests are taken and never answered."""
    with a_holder_behind_a_proxy(stage) as (client, proxy, reader):
        assert seconds_to_use(client, proxy.address, reader, SECONDS_MAX) < SECONDS_MAX
        proxy.set(proxy.back, is_swallowed=True)
        return seconds_to_use(client, proxy.address, reader, 4 * PROGRESS_SECONDS_MAX)


STANDSTILLS: Final[dict[str, Callable[[Path], float]]] = {
    "is frozen": frozen,
    "is cut off": cut_off,
    "does not answer a peer": unreachable,
}
