"""A worker process that is killed costs time, and nothing else."""

import logging

from tests.faults.killing import recoveries


def test_results_are_right_after_the_only_holder_and_a_computing_worker_are_killed(
    tmp_path, caplog
):
    caplog.set_level(logging.CRITICAL, "shoal")
    seconds = recoveries(2, str(tmp_path))
    assert all(len(taken) == 2 for taken in seconds.values())
