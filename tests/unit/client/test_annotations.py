"""What users say about parts of a graph: equal options are one object, however many there are."""

import time

from shoal.client.annotations import options_by_key

NANNOTATIONS = 20_000


def test_options_that_are_equal_are_one_object():
    said = {
        "a": {"priority": 1, "workers": ["x", "y"]},
        "b": {"priority": 1.0, "workers": ("y", "x")},
        "c": {"resources": {"GPU": 1, "RAM": 2}},
        "d": {"resources": {"RAM": 2.0, "GPU": 1.0}},
        "e": {"priority": 0},
    }
    found = options_by_key(said, None)
    assert list(found) == ["a", "b", "c", "d"]
    assert found["a"] is found["b"]
    assert found["c"] is found["d"]
    assert found["a"] is not found["c"]


def test_many_different_annotations_take_no_time():
    """If each is compared with all others that takes some ten seconds."""
    said = {n: {"priority": n + 1} for n in range(NANNOTATIONS)}
    started_at = time.monotonic()
    assert len(options_by_key(said, None)) == NANNOTATIONS
    assert time.monotonic() - started_at < 3.0
