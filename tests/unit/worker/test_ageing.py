"""What is old of the memory that is no result: the least that there was for a while."""

import random

from shoal.worker.policies.ageing import Ageing


def test_nothing_is_old_at_first() -> None:
    ageing = Ageing(30.0)
    assert [ageing.note(100, now) for now in (0.0, 10.0, 29.9)] == [0, 0, 0]
    assert ageing.note(100, 30.0) == 100


def test_a_passing_peak_is_never_old() -> None:
    ageing = Ageing(30.0)
    found = [ageing.note(500 if 40 <= now < 60 else 100, float(now)) for now in range(100)]
    assert max(found) == 100


def test_what_stays_becomes_old_and_what_goes_is_not_any_more() -> None:
    ageing = Ageing(30.0)
    found = [ageing.note(100 if now < 50 else 500, float(now)) for now in range(100)]
    assert found[79] == 100
    assert found[81] == 500
    assert ageing.note(200, 100.0) == 200


def test_without_a_while_everything_is_old() -> None:
    ageing = Ageing(0.0)
    assert [ageing.note(nbytes, 1.0) for nbytes in (5, 3)] == [5, 3]


def test_it_is_the_least_of_the_window_whatever_comes() -> None:
    chance = random.Random(7)
    ageing, seen = Ageing(10.0), []
    for step in range(500):
        now, nbytes = step * 0.5, chance.randrange(1000)
        seen.append((now, nbytes))
        least = min(nbytes for at, nbytes in seen if at >= now - 10.0)
        assert ageing.note(nbytes, now) == (least if now >= 10.0 else 0)
