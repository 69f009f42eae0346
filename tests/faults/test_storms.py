"""A little of what `make faults` plays: a few kills, on either kind of cluster."""

from pathlib import Path

import pytest

from tests.faults.grounds import KINDS
from tests.faults.storm import storm

SECONDS = 4.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_storm_leaves_right_results_and_as_many_workers_as_there_were(
    kind: str, tmp_path: Path
) -> None:
    told = storm(kind, 1, SECONDS, tmp_path)
    assert told.complaints == []
    assert told.nkills >= 2
    assert told.nrounds >= 2
