"""The gates of memory: what they see of workers from outside, and what they make of two sides."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.environment import Side
from benchmarks.memory.moving import GRAPHS, value
from benchmarks.memory.outside import Run, Sampler, WorkerSeen, run_program
from benchmarks.memory.reducing import reduction
from benchmarks.memory.spilling import SPOILERS, digest, files_in, make
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.state import SchedulerState
from tools.accept.gates_growth import census
from tools.accept.gates_memory import PARTITION_BYTES, resident_partitions
from tools.accept.gates_moving import verdict

MB = 1_000_000


def seen(*statuses: tuple[float, str], last_at: float = 10.0) -> WorkerSeen:
    return WorkerSeen(1, last_at=last_at, statuses=list(statuses))


def ran(*workers: WorkerSeen, **answers: object) -> Run:
    return Run("shoal", dict(answers), list(workers), 1.0)


@pytest.mark.parametrize(
    ("statuses", "pauses"),
    [
        ([], []),
        ([(0.0, "running")], []),
        ([(0.0, "running"), (2.0, "paused"), (2.5, "running")], [0.5]),
        ([(0.0, "running"), (4.0, "paused")], [6.0]),
        ([(1.0, "paused"), (2.0, "running"), (3.0, "paused"), (7.0, "closing")], [1.0, 4.0]),
    ],
)
def test_a_pause_lasts_until_the_next_status_or_the_last_look(statuses, pauses):
    assert list(seen(*statuses).pauses()) == pauses


def test_each_process_beyond_those_that_there_should_be_took_the_place_of_one_lost():
    assert ran(seen(), seen()).nlost(2) == 0
    assert ran(seen(), seen(), seen()).nlost(2) == 1


def test_notes_of_workers_are_read_though_the_last_is_torn(tmp_path: Path):
    lines = [{"at": 1.0, "name": "0"}, {"at": 1.0, "status": "paused"}, {"at": 2.0, "late": 0.25}]
    text = "\n".join(map(json.dumps, lines)) + '\n{"at": 3.0, "sta'
    (tmp_path / "999999999.jsonl").write_text(text)
    with Sampler(tmp_path) as sampler:
        pass
    [worker] = sampler.seen.values()
    assert (worker.name, worker.late_seconds) == ("0", 0.25)
    assert worker.statuses == [(1.0, "paused")]


def test_a_program_that_is_not_over_in_time_is_ended_and_that_is_told():
    side = Side("shoal", sys.executable, "shoal")
    run = run_program(side, "heavy", {"ntasks": 1}, seconds_max=0.0)
    assert not run.finished
    assert run.outcome == "not over after 0 s"


def test_what_a_worker_took_before_is_not_counted():
    worker = WorkerSeen(1, peak_bytes=100 * MB + 3 * PARTITION_BYTES)
    assert resident_partitions(ran(worker, rest_bytes=100 * MB)) == 3


@pytest.mark.parametrize(("moved", "passes"), [(45, True), (48, True), (49, False), (0, False)])
def test_no_more_is_moved_than_their_rounds_move(moved, passes):
    ours = ran(moved_bytes=[moved * MB] * 3, seconds=[1.0])
    theirs = ran(moved_bytes=[46 * MB, 46 * MB, 48 * MB], seconds=[1.0])
    assert verdict("tree", ours, theirs).passed is passes


def test_an_even_spread_is_not_too_much():
    ours = ran(moved_bytes=[48 * MB], seconds=[1.0])
    theirs = ran(moved_bytes=[44 * MB], seconds=[1.0])
    assert verdict("merge", ours, theirs, even_mb=48).passed
    assert not verdict("merge", ours, theirs, even_mb=47).passed


def test_a_side_that_failed_has_no_figure():
    failed = Run("shoal", {}, [], 1.0, failure="KilledWorker: again")
    assert not verdict("merge", failed, ran(moved_bytes=[1], seconds=[1.0])).passed
    assert "KilledWorker" in verdict("merge", failed, failed).value


@pytest.mark.parametrize("spoiler", SPOILERS)
def test_a_file_that_was_spoilt_is_another(tmp_path: Path, spoiler: str):
    path = tmp_path / "value"
    path.write_bytes(bytes(200_000))
    assert files_in(tmp_path) == [path]
    SPOILERS[spoiler](path)
    assert not path.exists() or path.read_bytes() != bytes(200_000)


def test_blocks_are_what_their_number_says_and_every_byte_counts():
    block = make(3, 8000)
    assert block.nbytes == 8000
    assert digest(block) == digest(make(3, 8000))
    block[-1] += 1
    assert digest(block) != digest(make(3, 8000))


@pytest.mark.parametrize(("graph", "expected"), [("merge", 28), ("tree", 28), ("stencil", 77)])
def test_graphs_have_one_value(graph, expected):
    """0 to 7 are added once, and in the stencil to their neighbours first."""
    assert value(GRAPHS[graph](8)) == expected


def test_a_reduction_has_one_load_for_each_root_and_all_share_what_is_shared():
    graph = reduction(20, 2, 1000)
    loads = {key: call for key, call in graph.items() if key[0] == "load"}
    assert len(loads) == 20
    assert all(call[-2:] == (("describe", 0), ("describe", 1)) for call in loads.values())


def test_an_object_of_the_house_is_counted_while_it_is_there():
    before = census()
    kept = SchedulerState(SchedulerSettings(), 1)
    assert "shoal.scheduler.model.state.SchedulerState" in census() - before
    del kept
    assert census() - before == {}
