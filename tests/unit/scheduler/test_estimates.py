"""How long a task is expected to take."""

from shoal.scheduler.model.entities import Prefix
from shoal.scheduler.model.estimates import learn_duration


def test_the_first_run_says_it_all_and_later_ones_half_of_it() -> None:
    prefix = Prefix("inc")
    assert prefix.duration_us == -1
    learn_duration(prefix, 0.001)
    assert prefix.duration_us == 1000
    learn_duration(prefix, 0.003)
    assert prefix.duration_us == 2000
    assert prefix.nfinished == 2


def test_a_clock_that_went_backwards_counts_as_no_time() -> None:
    prefix = Prefix("inc")
    learn_duration(prefix, -5.0)
    assert prefix.duration_us == 0
