"""The index of loads knows its extremes up to a factor of two."""

from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.loads import LoadIndex
from tests.unit.scheduler.stage import a_worker

WORKERS = [a_worker(name) for name in "abdefgh"]
PUT = st.tuples(st.sampled_from(WORKERS), st.integers(0, 2**62))
DISCARD = st.tuples(st.sampled_from(WORKERS), st.none())


@given(st.lists(st.one_of(PUT, PUT, DISCARD)))
def test_its_extremes_are_those_of_a_plain_dictionary(events: list[tuple[object, object]]) -> None:
    """Within a bucket, loads are alike."""
    index = LoadIndex()
    model: dict[object, int] = {}
    for worker, load in events:
        if load is None:
            index.discard(worker)
            model.pop(worker, None)
        else:
            index.put(worker, load)
            model[worker] = load
        assert len(index) == len(model)
        assert all((worker in index) == (worker in model) for worker in WORKERS)
        lowest, highest = index.lowest(), index.highest()
        if not model:
            assert lowest is highest is None
            continue
        assert model[lowest].bit_length() == min(model.values()).bit_length()
        assert model[highest].bit_length() == max(model.values()).bit_length()


def test_a_small_change_of_load_moves_nobody() -> None:
    """Who came into the bucket first stays first."""
    index = LoadIndex()
    first, second = WORKERS[:2]
    index.put(first, 1000)
    index.put(second, 600)
    index.put(first, 1023)
    assert index.lowest() is first
    index.put(first, 1024)
    assert index.lowest() is second
    assert index.highest() is first


def test_whoever_is_put_last_comes_after_those_of_a_like_load_only() -> None:
    index = LoadIndex()
    first, second, third = WORKERS[:3]
    index.put(first, 1000)
    index.put(second, 600)
    index.put(third, 100)
    index.put_last(first)
    assert list(index.from_highest()) == [second, first, third]
    index.discard(first)
    index.put_last(first)  # who is not here stays away
    assert list(index.from_highest()) == [second, third]


def test_the_greatest_load_has_a_place() -> None:
    index = LoadIndex()
    index.put(WORKERS[0], 2**63 - 1)
    assert index.highest() is WORKERS[0]
