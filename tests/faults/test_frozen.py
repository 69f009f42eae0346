"""Workers that say nothing for a while: stopped by a signal, or held by what they run."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import dask
import pytest

from shoal import Client, LocalCluster, wait
from tests.faults.kit.ends import length, whole
from tests.faults.kit.tasks import hold_interpreter
from tests.faults.table import of_fault

NBYTES = 100_000
PROGRESS_SECONDS_MAX = 15.0
TTL_SECONDS = 2.0


@contextmanager
def two_workers() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seconds_past_a_frozen_holder(client: Client) -> float:
    """How long it takes to have a result whose input a frozen worker holds; it is thawed then."""
    pid_by_address = client.run(os.getpid)
    holder, reader = pid_by_address
    value = client.submit(whole, NBYTES, workers=[holder], allow_other_workers=True, pure=False)
    wait(value, timeout=PROGRESS_SECONDS_MAX)
    assert client.who_has(value)[value.key] == (holder,)
    os.kill(pid_by_address[holder], signal.SIGSTOP)
    began_at = monotonic()
    try:
        total = client.submit(length, value, workers=[reader], pure=False)
        assert total.result(timeout=2 * PROGRESS_SECONDS_MAX) == NBYTES
        return monotonic() - began_at
    finally:
        os.kill(pid_by_address[holder], signal.SIGCONT)


def test_what_a_frozen_worker_holds_is_computed_again_once_it_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "shoal")
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": TTL_SECONDS}),
        two_workers() as client,
    ):
        assert seconds_past_a_frozen_holder(client) < PROGRESS_SECONDS_MAX


@of_fault("F06")
def test_a_frozen_worker_holds_nobody_up_for_more_than_fifteen_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As it is set by default; and once it goes on, it works again."""
    caplog.set_level(logging.CRITICAL, "shoal")
    with two_workers() as client:
        assert seconds_past_a_frozen_holder(client) < PROGRESS_SECONDS_MAX
        client.wait_for_workers(2, timeout=PROGRESS_SECONDS_MAX)
        sums = [
            client.submit(sum, [1, 2], workers=[there], pure=False)
            for there in client.scheduler_info()["workers"]
        ]
        assert client.gather(sums) == [3, 3]


@of_fault("F25")
def test_a_worker_whose_task_holds_the_interpreter_is_not_given_up() -> None:
    """It can't give a sign of life itself, and is no lost one."""
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": TTL_SECONDS}),
        two_workers() as client,
    ):
        pids = client.run(os.getpid)
        held = client.submit(hold_interpreter, 3 * TTL_SECONDS, pure=False)
        assert held.result(timeout=PROGRESS_SECONDS_MAX) == "done"
        assert client.run(os.getpid) == pids
