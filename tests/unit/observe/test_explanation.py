"""What is explained shows as its lines, and is a text for all else."""

import copy
import pickle

import pytest

from shoal.observe.explanation import Explanation

LINES = "'x' is queued:\n  no worker is there"


def test_it_is_shown_line_by_line_though_it_is_a_text() -> None:
    told = Explanation(LINES)
    assert repr(told) == LINES
    assert told == LINES
    assert told.splitlines()[0] == "'x' is queued:"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_pickled_as_itself(protocol: int) -> None:
    told = pickle.loads(pickle.dumps(Explanation(LINES), protocol))
    assert type(told) is Explanation
    assert repr(told) == LINES
    assert type(copy.copy(told)) is Explanation
