"""Values that are lost with the worker that held them, in peace or amid their transfer."""

import logging
import os
import signal
from math import inf
from pathlib import Path

import pytest

from shoal import Client, LocalCluster, wait
from shoal.errors import DataLost
from tests.faults.kit.ends import count_tasks, length, until, whole
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.roles import Cast, free_port

NBYTES = 100_000
LARGE_NBYTES = 24_000_000
PARTS = (0.0, 0.25, 0.75)
SECONDS_MAX = 20.0


def scattered(client: Client, *, broadcast: bool) -> tuple[object, str, int]:
    """A value that came from the client; a worker that holds it, and the process of that."""
    pid_by_address = client.run(os.getpid)
    holder = min(pid_by_address)
    options = {"broadcast": True} if broadcast else {"workers": [holder]}
    return client.scatter(bytes(NBYTES), hash=False, **options), holder, pid_by_address[holder]


def test_a_scattered_value_that_is_lost_is_an_error_that_names_it_and_its_last_holder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "shoal")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        value, holder, pid = scattered(client, broadcast=False)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(DataLost) as told:
            client.submit(length, value).result(timeout=SECONDS_MAX)
        assert holder in str(told.value)
        assert value.key in str(told.value)  # type: ignore[attr-defined]


def test_a_scattered_value_with_a_second_copy_is_not_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "shoal")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        value, _, pid = scattered(client, broadcast=True)
        os.kill(pid, signal.SIGKILL)
        assert client.submit(length, value).result(timeout=SECONDS_MAX) == NBYTES


def test_a_holder_that_dies_amid_a_transfer_costs_time_and_nothing_else(tmp_path: Path) -> None:
    """Another makes the value again; what came of the first is seen by nobody."""
    with Cast(tmp_path) as cast:
        _, address = cast.scheduler()
        _, reader = cast.worker(address, "--no-nanny")
        with cast.client(address) as client:
            for part in PARTS:
                port = free_port()
                with Proxy(f"tcp://127.0.0.1:{port}") as proxy:
                    place = ("--worker-port", str(port), "--contact-address", proxy.address)
                    holder, _ = cast.worker(address, "--no-nanny", *place)
                    value = client.submit(
                        whole,
                        LARGE_NBYTES,
                        workers=[proxy.address],
                        allow_other_workers=True,
                        pure=False,
                    )
                    wait(value, timeout=SECONDS_MAX)
                    assert client.who_has(value) == {value.key: (proxy.address,)}
                    held = proxy.hold(proxy.back, int(part * LARGE_NBYTES))
                    total = client.submit(length, value, workers=[reader], pure=False)
                    held.result(SECONDS_MAX)
                    holder.kill()
                    proxy.set(proxy.back, held_after=inf)
                    assert total.result(timeout=SECONDS_MAX) == LARGE_NBYTES
                    holder.end()
                    del value, total
            until(lambda: client.run_on_scheduler(count_tasks) == 0)
        assert cast.complaints() == []
