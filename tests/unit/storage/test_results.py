"""Values are kept by the number of their task, and looked at by key."""

import pytest

from shoal.ids import Key, TaskId
from shoal.protocol.keys import to_canonical
from shoal.storage.results import Results, ResultsView
from shoal.storage.spilled import Spilled


def test_sizes_add_up_as_values_come_and_go() -> None:
    """Replaced and dropped ones are taken off."""
    results = Results()
    results.put(TaskId(1), Key("x"), "old", 10)
    results.put(TaskId(1), Key("x"), "new", 30)
    results.put(TaskId(2), Key("y"), "other", 5)
    assert (results.nbytes, len(results)) == (35, 2)
    assert results[TaskId(1)] == "new"
    assert results.entry(TaskId(2)) == ("y", "other", 5)
    results.drop([TaskId(1), TaskId(9)])
    assert (results.nbytes, results.tasks()) == (5, [2])
    with pytest.raises(KeyError):
        results[TaskId(1)]
    results.clear()
    assert (results.nbytes, len(results)) == (0, 0)


def test_the_view_knows_the_keys_of_users() -> None:
    """Tuples too; what is not there is a KeyError."""
    results = Results()
    results.put(TaskId(1), to_canonical(("x", 0)), "value", 1)
    view = ResultsView(results)
    assert view["x", 0] == "value"
    assert list(view) == [("x", 0)]
    assert ("x", 1) not in view
    with pytest.raises(KeyError):
        view["z"]


def test_a_key_that_moved_to_another_number_outlives_the_old_one() -> None:
    """The old task is dropped after the new one has come."""
    results = Results()
    results.put(TaskId(1), Key("x"), "old", 1)
    results.put(TaskId(2), Key("x"), "new", 1)
    results.drop([TaskId(1)])
    assert results.by_key(Key("x")) == "new"


def test_who_watches_a_value_is_told_once_that_it_is_dropped() -> None:
    """Whoever watches no more is not told, and nobody takes another's watch away."""
    results, said = Results(), []

    def first() -> None:
        said.append("first")

    def second() -> None:
        said.append("second")

    results.watch(TaskId(1), first)
    results.unwatch(TaskId(1), second)
    results.put(TaskId(1), Key("x"), "value", 1)
    results.drop([TaskId(1)])
    results.drop([TaskId(1)])
    assert said == ["first"]
    results.watch(TaskId(2), second)
    results.unwatch(TaskId(2), second)
    results.drop([TaskId(2)])
    assert said == ["first"]
    results.watch(TaskId(3), second)
    results.clear()
    assert said == ["first", "second"]


def test_values_that_are_renumbered_are_the_same_values() -> None:
    """With their files, their watchers, and their keys."""
    results, said = Results(), []

    def dropped() -> None:
        said.append("dropped")

    results.watch(TaskId(1), dropped)
    results.put(TaskId(1), Key("x"), "value", 10)
    results.put(TaskId(2), Key("y"), "other", 5)
    results.add_file(TaskId(2), Spilled("path", [], 5, str))
    results.renumber([(TaskId(1), TaskId(-1)), (TaskId(2), TaskId(-2)), (TaskId(3), TaskId(-3))])
    assert results.tasks() == [-1, -2]
    assert results.by_key(Key("x")) == "value"
    assert results.nbytes == 15
    assert results.evict(TaskId(-2)) == "other"
    results.drop([TaskId(-1)])
    assert said == ["dropped"]
    assert results.by_key(Key("x")) is None


def test_who_watched_a_value_by_its_old_number_may_stop_by_that() -> None:
    results, said = Results(), []

    def dropped() -> None:
        said.append("dropped")

    results.watch(TaskId(1), dropped)
    results.put(TaskId(1), Key("x"), "value", 10)
    results.renumber([(TaskId(1), TaskId(-1))])
    results.unwatch(TaskId(1), dropped)
    results.drop([TaskId(-1)])
    assert said == []
