"""Plain values: what a scheduler reads of what others pickled, and what stays closed to it."""

import copyreg
import os
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.protocol.plain import DEPTH_MAX, SHARED_MAX, Opaque, dump_plain, load_plain

EXTENSION = 250
"""A number in the registry of what pickles may name by number."""


@pytest.fixture
def extension() -> Iterator[None]:
    """A function that this process has registered, and has found by its number before."""
    copyreg.add_extension("os", "getcwd", EXTENSION)
    assert pickle.loads(pickle.EXT1 + bytes([EXTENSION]) + b".") is os.getcwd
    yield
    copyreg.remove_extension("os", "getcwd", EXTENSION)


@pytest.mark.parametrize(
    "value",
    [
        [
            None,
            True,
            False,
            0,
            255,
            256,
            65536,
            -1,
            1 << 70,
            -(1 << 70),
            1 << 3000,
            2.5,
            "",
            "é\x00",
        ],
        ["x" * 300, b"y", b"y" * 300, bytearray(b"z"), "\ud800"],
        {"a": [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ()], ("b", (2,)): {1, 2}, 3: frozenset({4})},
        [[{}], [], set(), frozenset()],
        list(range(3000)),
    ],
)
def test_plain_values_are_read_as_the_library_reads_them(value: Any) -> None:
    """Types included."""
    found = load_plain(dump_plain(value))
    assert found == value
    assert repr(found) == repr(value)


def test_what_occurs_more_than_once_is_shared_again() -> None:
    """A text and a tuple of texts as often as one likes; lists a few times; one in itself too."""
    constant, rows = ("x", 1), [2]
    many = [constant] * 1000
    assert load_plain(dump_plain(many)) == many
    few = load_plain(dump_plain([rows, rows]))
    assert few[0] is few[1]
    assert isinstance(load_plain(dump_plain([rows] * (SHARED_MAX + 2))), Opaque)
    rows.append(rows)  # type: ignore[arg-type]
    found = load_plain(dump_plain(rows))
    assert found[1] is found


@pytest.mark.usefixtures("extension")
def test_a_registered_function_is_not_called() -> None:
    """Though it is found by a number, without a name."""
    called = pickle.EXT1 + bytes([EXTENSION]) + pickle.EMPTY_TUPLE + pickle.REDUCE + b"."
    assert pickle.loads(called) == os.getcwd()
    assert isinstance(load_plain(called), Opaque)


def test_the_depth_of_tuples_is_limited() -> None:
    """A key of a dict is hashed, which goes down as deep as it is, and would end the process."""

    def key_of_depth(depth: int) -> bytes:
        nested = pickle.EMPTY_TUPLE + pickle.TUPLE1 * (depth - 1)
        return pickle.EMPTY_DICT + nested + pickle.NONE + pickle.SETITEM + pickle.STOP

    assert len(load_plain(key_of_depth(DEPTH_MAX))) == 1
    assert isinstance(load_plain(key_of_depth(DEPTH_MAX + 1)), Opaque)
    assert isinstance(load_plain(key_of_depth(100 * sys.getrecursionlimit())), Opaque)


def test_a_value_that_doubles_at_each_of_many_steps_stays_closed() -> None:
    """To hash it, or to write it down, would take for ever."""
    doubled: Any = (1,)
    for _ in range(64):
        doubled = (doubled, doubled)
    assert isinstance(load_plain(dump_plain(doubled)), Opaque)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b".",
        b"N",  # no end
        b"NN.",  # two values
        b"(.",
        b"t.",  # no mark
        b"\x86.",  # a pair of nothing
        b"h\x00.",  # a reference to nothing
        b"\x8c\x05abc.",  # a text that is too short
        b"\x8e" + b"\xff" * 8 + b".",  # bytes that nobody has
        b"\x96" + b"\xff" * 8 + b".",
        b"J\x00.",  # half a number
        b"}(Ne.",  # a dict is no list
        b"](NNu.",  # nor a list a dict
        b"}]Ns.",  # a list is no key
        b"}(Nu.",  # a key without a value
        b"cos\ngetcwd\n.",
        b"\x8c\x02os\x8c\x06getcwd\x93.",
        b"(ios\ngetcwd\n.",
        b"N}b.",
        b"N)R.",
        b"N)\x81.",
        b"(No.",
        b"NQ.",
        b"P1\n.",
        b"\x97.",
    ],
)
def test_broken_and_busy_pickles_stay_closed(payload: bytes) -> None:
    """Whatever names, calls, builds or refers to what is elsewhere."""
    assert isinstance(load_plain(payload), Opaque)


def test_an_index_reserves_nothing() -> None:
    """Four bytes could ask for gigabytes otherwise."""
    assert load_plain(b"Nr\xff\xff\xff\xff.") is None
