"""How long a cluster that gets smaller waits for copies."""

from shoal.deploy.cluster import RETIRE_PATIENCE_SECONDS
from shoal.scheduler.model.settings import SchedulerSettings


def test_a_worker_that_goes_is_kept_until_three_others_did_not_answer():
    assert 3 * SchedulerSettings().copy_patience_seconds <= RETIRE_PATIENCE_SECONDS
