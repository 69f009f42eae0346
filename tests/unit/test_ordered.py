"""An OrderedSet is a set in everything but its order, which is that of insertion."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.ordered import OrderedSet

ITEMS = st.lists(st.integers(0, 9))


@given(ITEMS)
def test_it_keeps_each_item_once_where_it_was_first_seen(items: list[int]) -> None:
    assert list(OrderedSet(items)) == list(dict.fromkeys(items))
    assert len(OrderedSet(items)) == len(set(items))


@given(ITEMS, ITEMS)
def test_adding_and_discarding_many_is_what_a_set_does(items: list[int], others: list[int]) -> None:
    added, discarded = OrderedSet(items), OrderedSet(items)
    added.add_all(others)
    discarded.discard_all(others)
    assert list(added) == list(dict.fromkeys(items + others))
    assert list(discarded) == [item for item in dict.fromkeys(items) if item not in others]


@given(ITEMS, ITEMS)
def test_equality_ignores_order(items: list[int], others: list[int]) -> None:
    assert (OrderedSet(items) == OrderedSet(others)) == (set(items) == set(others))


def test_adding_again_does_not_move_an_item() -> None:
    waiting = OrderedSet("ab")
    waiting.add("a")
    assert list(waiting) == ["a", "b"]


def test_discard_is_silent_about_what_is_missing_and_remove_is_not() -> None:
    waiting = OrderedSet("a")
    waiting.discard("z")
    with pytest.raises(KeyError, match="z"):
        waiting.remove("z")
    waiting.remove("a")
    assert not waiting


def test_first_and_last_leave_from_their_ends() -> None:
    waiting = OrderedSet("abc")
    assert waiting.first() == "a"
    assert waiting.pop_first() == "a"
    assert waiting.pop_last() == "c"
    assert list(waiting) == ["b"]


@pytest.mark.parametrize("ask", [OrderedSet.first, OrderedSet.pop_first, OrderedSet.pop_last])
def test_an_empty_one_has_no_ends(ask) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(KeyError):
        ask(OrderedSet())


def test_a_copy_is_a_set_of_its_own() -> None:
    first = OrderedSet("ab")
    second = first.copy()
    second.add("c")
    assert list(first) == ["a", "b"]
    assert isinstance(second, OrderedSet)


def test_it_survives_pickle_in_order_and_shows_its_items() -> None:
    waiting = OrderedSet("ba")
    assert list(pickle.loads(pickle.dumps(waiting))) == ["b", "a"]
    assert repr(waiting) == "OrderedSet(['b', 'a'])"
