"""Networks that lose what is said, one way or both, or are slow; and peers that never answer.

Where a connection would take a shorter way on one machine, processes are on machines of their own.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import dask
import pytest

from shoal import Client, wait
from shoal.errors import FutureCancelledError
from tests.faults.kit.ends import length, until, whole
from tests.faults.kit.limits import needs_networks
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.roles import Cast
from tests.faults.standing_still import (
    NBYTES,
    PROGRESS_SECONDS_MAX,
    SECONDS_MAX,
    a_holder_behind_a_proxy,
    cut_off,
    seconds_to_use,
    two_machines,
    unreachable,
)
from tests.faults.table import of_fault

FEW_NBYTES = 5_000
SILENCE_SECONDS = 2.0
SILENCE = {"DASK_SHOAL__COMM__SILENCE_SECONDS": str(SILENCE_SECONDS)}


# ---- a machine that is cut off


@needs_networks
def test_what_a_worker_held_that_is_cut_off_is_computed_again_elsewhere(tmp_path: Path) -> None:
    assert cut_off(tmp_path, SILENCE) < PROGRESS_SECONDS_MAX


@of_fault("F13")
@needs_networks
def test_a_worker_that_is_cut_off_is_given_up_in_time_and_comes_back_with_its_data(
    tmp_path: Path,
) -> None:
    with two_machines(tmp_path, SILENCE) as (client, network, workers):
        value = client.submit(whole, NBYTES, workers=[workers["a"]], key="held")
        wait(value, timeout=SECONDS_MAX)
        network.cut("a")
        until(lambda: len(client.scheduler_info()["workers"]) == 1, PROGRESS_SECONDS_MAX)
        network.join("a")
        client.wait_for_workers(2, timeout=PROGRESS_SECONDS_MAX)
        total = client.submit(length, value, workers=[workers["b"]])
        assert total.result(timeout=SECONDS_MAX) == NBYTES
        assert client.who_has(value)[value.key][0] == workers["a"]


# ---- what is said is lost


@contextmanager
def behind_a_proxy(stage: Path) -> Iterator[tuple[Client, Proxy, str]]:
    """Two workers, one of which reaches its scheduler by way of a proxy; and its address."""
    with Cast(stage) as cast:
        _, address = cast.scheduler()
        with Proxy(address) as proxy:
            _, beyond = cast.worker(proxy.address, "--no-nanny", "--name", "beyond")
            cast.worker(address, "--no-nanny", "--name", "near")
            with cast.client(address) as client:
                yield client, proxy, beyond
                proxy.mend()
        assert cast.complaints("[Ww]orker", "Not let in") == []


@of_fault("F14")
def test_a_worker_of_which_nothing_is_heard_is_given_up_in_time(tmp_path: Path) -> None:
    """It hears all that is said to it."""
    with behind_a_proxy(tmp_path) as (client, proxy, beyond):
        proxy.set(proxy.there, is_swallowed=True)
        task = client.submit(sum, [1, 2], workers=[beyond], allow_other_workers=True)
        assert task.result(timeout=PROGRESS_SECONDS_MAX) == 3


@of_fault("F14")
def test_a_worker_that_hears_nothing_is_given_up_in_time(tmp_path: Path) -> None:
    """It is heard all the time."""
    with behind_a_proxy(tmp_path) as (client, proxy, beyond):
        proxy.set(proxy.back, is_swallowed=True)
        task = client.submit(sum, [1, 2], workers=[beyond], allow_other_workers=True)
        assert task.result(timeout=PROGRESS_SECONDS_MAX) == 3


@of_fault("F17")
def test_a_scheduler_that_has_vanished_is_noticed_by_worker_and_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing tells them of it: their connections are as good as ever.  They look no longer than a
    second for another one, so that what they have noticed shows."""
    caplog.set_level(logging.CRITICAL, "shoal")
    no_wait = {"DASK_SHOAL__WORKER__RECONNECT_SECONDS": "1"}
    no_window = {"DASK_SHOAL__SCHEDULER__RESUME_SECONDS": "1",
                 "DASK_SHOAL__SCHEDULER__CLIENT_RESUME_SECONDS": "1"}  # fmt: skip
    with Cast(tmp_path) as cast, dask.config.set({"shoal.client.reconnect-seconds": 1}):
        _, address = cast.scheduler(**no_window)
        with Proxy(address) as proxy:
            worker, _ = cast.worker(proxy.address, "--no-nanny", **no_wait)
            with cast.client(proxy.address) as client:
                assert client.submit(sum, [1, 2]).result(timeout=SECONDS_MAX) == 3
                proxy.forget_far_ends()
                proxy.refuse()
                began_at = monotonic()
                with pytest.raises(FutureCancelledError, match="was lost, and none has let"):
                    client.submit(sum, [1, 2, 3]).result(timeout=2 * PROGRESS_SECONDS_MAX)
                assert monotonic() - began_at < PROGRESS_SECONDS_MAX
                worker.end(PROGRESS_SECONDS_MAX)
        assert cast.complaints("scheduler", "[Ww]orker") == []


# ---- workers that do not reach each other


def test_a_peer_that_refuses_all_who_dial_costs_a_moment(tmp_path: Path) -> None:
    with a_holder_behind_a_proxy(tmp_path) as (client, proxy, reader):
        proxy.refuse()
        assert seconds_to_use(client, proxy.address, reader, SECONDS_MAX) < PROGRESS_SECONDS_MAX


@of_fault("F15")
@pytest.mark.timeout(120)
def test_a_peer_that_does_not_answer_costs_fifteen_seconds_at_most(tmp_path: Path) -> None:
    """It takes what is said, and does nothing."""
    assert unreachable(tmp_path) < PROGRESS_SECONDS_MAX


def test_a_slow_link_takes_its_time_and_gives_the_right_result(tmp_path: Path) -> None:
    """Of late pieces, in single bytes at first, and then of a quarter of what it could be."""
    with a_holder_behind_a_proxy(tmp_path) as (client, proxy, reader):
        proxy.set(proxy.back, is_split=True, delay_seconds=0.05)
        proxy.set(proxy.there, is_split=True, delay_seconds=0.05)
        assert seconds_to_use(client, proxy.address, reader, SECONDS_MAX, FEW_NBYTES) >= 0.1
        proxy.mend()
        proxy.set(proxy.back, bytes_per_second=NBYTES)
        assert seconds_to_use(client, proxy.address, reader, SECONDS_MAX) >= 0.5


@of_fault("F16")
@pytest.mark.timeout(120)
def test_a_link_that_drips_is_given_up(tmp_path: Path) -> None:
    with a_holder_behind_a_proxy(tmp_path) as (client, proxy, reader):
        proxy.set(proxy.back, bytes_per_second=1_000)
        seconds = seconds_to_use(client, proxy.address, reader, 4 * PROGRESS_SECONDS_MAX)
        assert seconds < PROGRESS_SECONDS_MAX


# ---- nobody ever answers


def test_a_client_waits_for_who_never_speaks_as_long_as_it_was_told_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began_at = monotonic()
        with pytest.raises(OSError, match=r"127\.0\.0\.1"):
            Client(f"tcp://127.0.0.1:{mute.getsockname()[1]}", timeout=1)
        assert monotonic() - began_at < 3
