"""When workers that could go may: time is what the test says it is."""

from shoal.deploy.ripening import START_SECONDS_MAX, Ripening


def started(seconds: float) -> Ripening:
    """One that has seen a worker come, after so long."""
    ripening = Ripening()
    ripening.note(0.0, ["a"], [])
    ripening.note(seconds, ["a"], ["a"])
    return ripening


def test_a_worker_goes_after_so_many_looks_in_a_row() -> None:
    ripening = Ripening()
    assert [ripening.ripe(now, ["a"], ["a"], 3) for now in (1.0, 2.0, 3.0)] == [[], [], ["a"]]


def test_a_worker_that_had_something_to_do_between_begins_anew() -> None:
    ripening = Ripening()
    assert ripening.ripe(1.0, ["a", "b"], ["a", "b"], 2) == []
    assert ripening.ripe(2.0, ["b"], ["a", "b"], 2) == ["b"]
    assert ripening.ripe(3.0, ["a"], ["a"], 2) == []
    ripening.start_anew()
    assert ripening.ripe(4.0, ["a"], ["a"], 2) == []
    assert ripening.nlooks == {"a": 1}


def test_a_worker_is_kept_for_as_long_as_its_start_took() -> None:
    """Two minutes; a gap of less costs no start."""
    ripening = started(120.0)
    assert ripening.start_seconds == 120.0
    assert ripening.ripe(200.0, ["a"], ["a"], 1) == []
    assert ripening.seconds_left(250.0) == 70.0
    assert ripening.ripe(319.0, ["a"], ["a"], 1) == []
    assert ripening.ripe(320.0, ["a"], ["a"], 1) == ["a"]


def test_one_that_has_not_come_yet_goes_at_once() -> None:
    """It has cost nothing, and the place in its queue may be worth something to others."""
    ripening = started(120.0)
    assert ripening.ripe(200.0, ["b", "a"], ["a"], 1) == ["b"]


def test_quicker_starts_are_believed_after_some_of_them() -> None:
    ripening = started(100.0)
    for n, name in enumerate("bcdefgh"):
        ripening.note(200.0 + n, [name], [])
        ripening.note(200.0 + n + 0.5, [name], [name])
    assert 0.5 < ripening.start_seconds < 2.0


def test_slower_starts_are_believed_at_once_within_reason() -> None:
    assert started(1e9).start_seconds == START_SECONDS_MAX


def test_what_was_there_from_the_beginning_tells_nothing_of_starts() -> None:
    ripening = Ripening()
    ripening.note(0.0, ["a"], ["a"])
    ripening.note(100.0, ["a"], ["a"])
    assert ripening.start_seconds == 0.0
