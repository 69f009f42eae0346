"""Groups of tasks, as their keys say."""

from types import SimpleNamespace

import pytest

from shoal.observe.groups import grouped, key_split_group
from shoal.scheduler.model.entities import STATES


@pytest.mark.parametrize(
    ("key", "group"),
    [
        (("x-2", 1), "x-2"),
        ("('x-2', 1)", "x-2"),
        (b"('x-2', 1)", "x-2"),
        ("ae05086432ca935f6eba409a8ecd4896", "data"),
        ("<module.submodule.myclass object at 0xdaf372", "myclass"),
        ("x-1", "x"),
        (None, "Other"),
        ("", "Other"),
    ],
)
def test_the_group_of_a_key_is_that_of_its_collection(key, group):
    assert key_split_group(key) == group


def task(group, state, nbytes=-1, kind=None, needs=()):
    prefix = SimpleNamespace(states=dict.fromkeys(STATES, 9))
    return SimpleNamespace(
        group_key=group, state=state, nbytes=nbytes, type=kind, dependencies=needs, prefix=prefix
    )


def test_tasks_are_counted_by_group():
    first = task("a", "memory", 5, "int")
    second = task("a", "memory", 7, "int", [first])
    groups = grouped([first, second, task("b", "waiting", needs=[first, second])])
    assert list(groups) == ["a", "b"]
    a, b = groups.values()
    assert (len(a), a.nbytes_total, a.types) == (2, 12, {"int"})
    assert a.states == dict.fromkeys(STATES, 0) | {"memory": 2}
    assert (a.dependencies, b.dependencies) == (set(), {"a"})
    assert repr(b) == "<b: waiting: 1>"


def test_a_group_is_done_when_none_of_its_tasks_has_anything_left_to_do():
    groups = grouped([task("a", "memory"), task("b", "memory"), task("b", "waiting")])
    assert [group.name for group in groups.values() if group.done] == ["a"]
