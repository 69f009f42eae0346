"""Every element of an array goes to one place of one output block, whatever the chunks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.shuffle.geometry import (
    Segment,
    block_index,
    linear_index,
    pieces_of_axis,
    runs_of,
    segments_of_axis,
)

UNKNOWN = math.nan


def sizes(total):
    """Any way to cut an axis, empty blocks among them."""
    return st.lists(st.integers(0, total), max_size=5).map(
        lambda cuts: tuple(np.diff([0, *sorted(cuts), total]).tolist())
    )


AXES = st.integers(0, 30).flatmap(lambda total: st.tuples(sizes(total), sizes(total)))


def moved(old, new):
    """The elements of an axis, each its own number, put where the pieces say."""
    source = np.split(np.arange(sum(old)), np.cumsum(old)[:-1])
    made = [np.full(size, -1) for size in new]
    for block, pieces in zip(source, pieces_of_axis(old, new), strict=True):
        for piece in pieces:
            part = block[piece.start : piece.stop]
            assert (made[piece.output][piece.offset : piece.offset + len(part)] == -1).all()
            made[piece.output][piece.offset : piece.offset + len(part)] = part
    return made


@given(AXES)
def test_each_element_arrives_where_it_was_and_once(axis):
    old, new = axis
    arrived = np.concatenate(moved(old, new))
    assert arrived.tolist() == list(range(sum(old)))


@given(AXES)
def test_pieces_are_not_empty_and_ascend(axis):
    for pieces in pieces_of_axis(*axis):
        outputs = [piece.output for piece in pieces]
        assert outputs == sorted(set(outputs))
        assert all(piece.start < piece.stop for piece in pieces)


@given(AXES)
def test_each_block_is_in_one_segment_and_a_segment_is_of_the_same_size_before_and_after(axis):
    old, new = axis
    segments = segments_of_axis(old, new)
    assert [i for s in segments for i in range(s.first_input, s.end_input)] == [*range(len(old))]
    assert [i for s in segments for i in range(s.first_output, s.end_output)] == [*range(len(new))]
    for s in segments:
        assert sum(old[s.first_input : s.end_input]) == sum(new[s.first_output : s.end_output])


def test_blocks_that_begin_together_are_where_an_axis_is_cut():
    assert segments_of_axis((2, 2, 3, 1), (4, 2, 2)) == [Segment(0, 2, 0, 1), Segment(2, 4, 1, 3)]


def test_what_stays_is_cut_into_its_blocks():
    assert segments_of_axis((2, 3), (2, 3)) == [Segment(0, 1, 0, 1), Segment(1, 2, 1, 2)]


def test_runs_are_the_product_of_the_axes_segments():
    assert len(list(runs_of(((2, 2), (1, 1, 1)), ((2, 2), (3,))))) == 2


def test_blocks_of_unknown_size_stay_what_they_are():
    unknown = (UNKNOWN, UNKNOWN)
    assert segments_of_axis(unknown, unknown) == [Segment(0, 1, 0, 1), Segment(1, 2, 1, 2)]
    [[piece]] = pieces_of_axis((UNKNOWN,), (UNKNOWN,))
    assert (piece.start, piece.stop) == (0, None)


def test_blocks_of_unknown_size_can_not_be_changed():
    with pytest.raises(ValueError, match="unknown size"):
        segments_of_axis((UNKNOWN, UNKNOWN), (UNKNOWN,))


@given(st.lists(st.integers(1, 4), max_size=4))
def test_blocks_are_numbered_in_the_order_of_their_indices(counts):
    indices = list(itertools.product(*map(range, counts)))
    assert [block_index(number, counts) for number in range(len(indices))] == indices
    assert [linear_index(index, counts) for index in indices] == list(range(len(indices)))
