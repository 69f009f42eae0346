"""One canonical form per key."""

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.protocol.keys import MARK, from_canonical, to_canonical, to_text

parts = st.recursive(
    st.text() | st.binary() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


keys = parts.filter(lambda key: key != "")


@given(keys)
def test_the_user_gets_back_an_equal_key(key):
    assert from_canonical(to_canonical(key)) == key


@given(keys, keys)
def test_equal_keys_have_one_form_and_others_two(one, other):
    assert (to_canonical(one) == to_canonical(other)) == (one == other)


def test_a_plain_string_stands_for_itself():
    assert to_canonical("inc-123") == "inc-123"


def test_a_string_that_looks_like_a_canonical_tuple_is_not_taken_for_one():
    assert from_canonical(to_canonical(MARK + "(1, 2)")) == MARK + "(1, 2)"
    assert to_canonical(MARK + "(1, 2)") != to_canonical((1, 2))
    assert to_canonical("('x', 1)") != to_canonical(("x", 1))


def test_subclasses_and_numpy_integers_are_the_plain_key():
    class Color(enum.IntEnum):
        RED = 1

    assert to_canonical(("x", np.int64(3), True, Color.RED, 2.0)) == to_canonical(("x", 3, 1, 1, 2))


def test_a_tuple_nested_deeper_than_recursion_allows_is_still_a_key():
    key: object = "x"
    for _ in range(10_000):
        key = (key,)
    assert to_canonical(key).count("(") == 10_000


def test_people_see_tuples_as_tuples():
    assert to_text(to_canonical(("x", 0))) == "('x', 0)"


@pytest.mark.parametrize("key", [None, [1], {"a": 1}, ("x", None), float("nan"), object()])
def test_what_can_not_be_a_key_is_refused_by_name(key):
    with pytest.raises(TypeError, match="use str, bytes, int"):
        to_canonical(key)


@pytest.mark.parametrize(
    "key", ["a\ud800", ("a\ud800", 1), ("a", ("\udfff",), 2.5), MARK + "\ud800"]
)
def test_a_text_that_can_not_travel_is_refused_where_it_is_given(key):
    with pytest.raises(ValueError, match="half a surrogate pair"):
        to_canonical(key)


@pytest.mark.parametrize("key", ["ü", "\U0001f40b", ("\\ud800", 1), ("é", 0), ("", 1)])
def test_every_other_text_may_be_a_key(key):
    assert from_canonical(to_canonical(key)) == key


def test_the_empty_text_is_no_key():
    with pytest.raises(ValueError, match="key=''"):
        to_canonical("")
