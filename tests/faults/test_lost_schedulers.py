"""A scheduler that is killed and started again finds its workers, with all that they have."""

import os
from pathlib import Path

import shoal
from tests.faults.sessions import SECONDS_MAX, ncomputed, restart, site, slowly_noted


def test_nothing_that_is_there_is_computed_again(tmp_path: Path) -> None:
    """By a client that never heard of the first scheduler, and submits the same calls."""
    ended = restart(300, tmp_path)
    assert (ended.nright, ended.nagain) == (300, 0)
    assert ended.said == ""


def test_what_runs_as_the_scheduler_is_killed_is_not_run_again(tmp_path: Path) -> None:
    marks, begun, gate = (str(tmp_path / name) for name in ("marks", "begun", "gate"))
    os.mkfifo(begun)
    os.mkfifo(gate)
    arguments = (7, marks, begun, gate)
    with site(tmp_path, 1) as place, shoal.Client(place.address) as before:
        future = before.submit(slowly_noted, *arguments)
        assert Path(begun).read_text() == "begun"
        assert not future.done()
        place.kill_scheduler()
        place.start_scheduler()
        with shoal.Client(place.address, set_as_default=False) as after:
            after.wait_for_workers(1, timeout=SECONDS_MAX)
            again = after.submit(slowly_noted, *arguments)
            Path(gate).write_text("go on")
            assert again.result(timeout=SECONDS_MAX) == 49
        assert ncomputed(marks) == 1
