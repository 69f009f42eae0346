"""Keys of calls, functions on their way, and futures inside arguments."""

import functools

import numpy as np
import pytest

from shoal.client.errors import UnpicklableTask
from shoal.client.future import Future
from shoal.client.submission import (
    Functions,
    dump_arguments,
    key_of_call,
    key_of_item,
    replace_futures,
)
from shoal.protocol.payload import InputRef, load, load_call

FUNCTION = Functions().prepare(len)


def key(*args, **kwargs):
    return key_of_call(FUNCTION, args, kwargs, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1,), (2,)),
        ((1,), (True,)),
        ((1,), (1.0,)),
        ((0.0,), (-0.0,)),
        (("1",), (1,)),
        (("1",), (b"1",)),
        ((None,), ("None",)),
        ((1, 2), (12,)),
        ((1, 2), (2, 1)),
        (([1],), ((1,),)),
        ((np.arange(3),), (np.arange(4),)),
        ((np.float64(1),), (1.0,)),
        ((Future("a"),), ("a",)),
        ((Future("a"),), (None,)),
        ((Future("a"), None), (None, Future("a"))),
    ],
    ids=repr,
)
def test_calls_that_differ_have_different_keys(one, other):
    assert key(*one) != key(*other)


@pytest.mark.parametrize("make", [lambda: "a" * 3, lambda: [1, {"k": (2, 3)}], lambda: np.ones(3)])
def test_equal_calls_have_equal_keys_whatever_objects_they_use(make):
    assert key(make(), make()) == key(make(), make())
    shared = make()
    assert key(shared, shared) == key(make(), make())


def test_keywords_count_by_name():
    assert key(a=1) != key(b=1)
    assert key(1) != key(a=1)


def test_an_item_of_a_map_has_the_key_of_its_call():
    for item in (1, "x", None, 2.5, b"y"):
        assert key_of_item(FUNCTION, item) == key(item)


def test_a_function_is_prepared_the_same_way_each_time():
    functions = Functions()
    square = lambda x: x * x  # noqa: E731
    assert functions.prepare(square) == functions.prepare(square)
    assert functions.prepare(square).name == "lambda"
    assert load(functions.prepare(square).payload)(3) == 9
    assert functions.prepare(functools.partial(int, base=2)).name == "int"


def test_a_function_that_refers_to_something_is_pickled_anew():
    functions = Functions()
    factor = 2

    def scale(x):
        return x * factor

    before = functions.prepare(scale)
    factor = 3
    assert load(functions.prepare(scale).payload)(10) == 30
    assert functions.prepare(scale) != before


def test_a_function_whose_code_was_replaced_is_pickled_anew():
    functions = Functions()

    def one():
        return 1

    def two():
        return 2

    functions.prepare(one)
    one.__code__ = two.__code__
    assert load(functions.prepare(one).payload)() == 2


def test_a_function_that_does_not_pickle_says_so():
    lock = __import__("threading").Lock()
    with pytest.raises(UnpicklableTask, match="lock"):
        Functions().prepare(lambda: lock)


def test_arguments_without_futures_are_left_alone():
    args = ([1, 2, {"a": (3,)}], {4})
    kwargs = {"k": [5]}
    replaced, same, futures = replace_futures(args, kwargs)
    assert replaced is args
    assert replaced[0] is args[0]
    assert same is kwargs
    assert futures == []


def test_futures_are_replaced_where_they_are_and_listed_once():
    x, y = Future("x"), Future("y")
    args = (x, [y, (x, {"k": {x}, "z": 1})], frozenset([y]))
    dumped, futures = dump_arguments(args, {"w": [[x]]}, "key")
    assert futures == [x, y]
    loaded, kwargs = load_call(dumped, [10, 20])
    assert loaded == (10, [20, (10, {"k": {10}, "z": 1})], frozenset([20]))
    assert kwargs == {"w": [[10]]}
    assert args[1][0] is y  # the caller's own containers are as they were


def test_two_futures_of_one_key_are_one_input():
    _, futures = dump_arguments((Future("x"), Future("x")), {}, "key")
    assert len(futures) == 1


def test_deep_nesting_needs_no_recursion():
    deep = Future("x")
    for _ in range(50_000):
        deep = [deep]
    (found,), _, futures = replace_futures((deep,), {})
    assert [future.key for future in futures] == ["x"]
    for _ in range(50_000):
        [found] = found
    assert isinstance(found, InputRef)
    while deep:  # taken apart by hand: to free it would recurse in C
        deep = deep.pop() if isinstance(deep, list) else None


def test_a_container_that_holds_itself_ends():
    loop = [1]
    loop.append(loop)
    (found,), _, futures = replace_futures((loop,), {})
    assert found is loop
    assert futures == []


def test_arguments_that_do_not_pickle_say_for_which_task():
    with pytest.raises(UnpicklableTask, match="'my-key'"):
        dump_arguments((iter([1]), (i for i in [1])), {}, "my-key")
