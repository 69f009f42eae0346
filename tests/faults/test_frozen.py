"""Workers that say nothing for a while: stopped by a signal, or held by what they run."""

import logging
import os

import dask
import pytest

from tests.faults.kit.tasks import hold_interpreter
from tests.faults.standing_still import (
    PROGRESS_SECONDS_MAX,
    seconds_past_a_frozen_holder,
    two_workers,
)
from tests.faults.table import of_fault

TTL_SECONDS = 2.0


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
