"""Has a worker memory for a task?  And what is remembered of memory at all?"""

import pickle

import dask.config
import pytest
from msgspec import structs

from shoal.ids import RunId
from shoal.scheduler.machine.errors import KilledByMemory, NotEnoughMemory
from shoal.scheduler.model.entities import QUEUED, Task, Weight, Worker
from shoal.scheduler.model.estimates import footprint_bytes, high_estimate, learn_footprint
from shoal.scheduler.model.footprints import NOTHING_WEIGHS, Footprints
from shoal.scheduler.model.queue import TaskQueue
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.policies.memory import Admission
from shoal.scheduler.shell.settings import settings_of
from tests.unit.scheduler.stage import a_result, a_task, a_worker

GIB = 1 << 30


def admission(**settings: float | None) -> Admission:
    return Admission(SchedulerSettings(**settings))  # type: ignore[arg-type]


def limited(name: str = "a", nthreads: int = 4, limit: float = 2.0) -> Worker:
    worker = a_worker(name, nthreads)
    worker.memory_limit = int(limit * GIB)
    return worker


def known(name: str, gib: float) -> Task:
    task = a_task(name)
    learn_footprint(task.prefix, int(gib * GIB), 10)
    return task


def put_out(task: Task, worker: Worker, gauged: float = 0.0) -> None:
    """A run of it is out there."""
    weight = Weight(task, 0.0)
    weight.gauged_bytes = int(gauged * GIB)
    worker.weights[RunId(len(worker.weights) + 1)] = weight
    worker.nsent += 1


def test_room_is_what_limit_rest_results_and_runs_leave() -> None:
    worker = limited()
    worker.rest_bytes = int(0.1 * GIB)
    a_result("kept", int(0.4 * GIB), worker)
    put_out(known("run", 0.3), worker, gauged=0.35)
    assert round(admission().room_bytes(worker) / GIB, 2) == 0.75
    assert round(admission(memory_pause_ratio=0.9).room_bytes(worker) / GIB, 2) == 0.95


def test_results_beyond_the_target_are_on_disk_unless_nothing_goes_there() -> None:
    worker = limited()
    a_result("kept", int(1.5 * GIB), worker)
    assert round(admission().empty_bytes(worker) / GIB, 2) == 0.4
    assert round(admission(memory_target_ratio=None).empty_bytes(worker) / GIB, 2) == 0.1


def test_inputs_that_have_to_be_fetched_need_room_too() -> None:
    here, there = limited("a"), limited("b")
    held = a_result("held", GIB, here)
    task = a_task("x", held)
    learn_footprint(task.prefix, GIB // 2, 10)
    assert admission().needs_bytes(task, here) == GIB // 2
    assert admission().needs_bytes(task, there) == GIB // 2 + GIB


def test_what_a_user_says_counts_until_a_worker_died_of_more() -> None:
    task = known("x", 1.0)
    task.options = structs.replace(task.options, memory=1000)
    assert admission().own_bytes(task) == 1000
    task.blame = 1
    assert admission().own_bytes(task) == GIB


def test_where_runs_come_one_after_the_other_any_task_has_room() -> None:
    worker = limited(nthreads=1)
    put_out(known("x", 1.5), worker)
    assert admission().fits(known("y", 1.5), worker, 0.0)


def test_a_worker_without_a_limit_has_room_for_anything() -> None:
    worker = a_worker(nthreads=4)
    put_out(known("x", 100.0), worker)
    assert admission().fits(known("y", 100.0), worker, 0.0)


def test_why_a_task_waits_is_told_with_numbers() -> None:
    worker = limited()
    worker.rest_bytes = GIB // 10
    a_result("kept", int(1.1 * GIB), worker)
    put_out(known("load", 0.2), worker)
    task = known("load", 1.2)
    learn_footprint(task.prefix, int(1.2 * GIB), 10)
    learn_footprint(task.prefix, int(1.2 * GIB), 10)
    assert admission().why_not(task, worker, 0.0) == (
        "waits for memory: needs about 1.20 GiB (learnt from 3 runs of 'load'), worker a has "
        "204.80 MiB left of 2.00 GiB: 1.10 GiB kept, 204.80 MiB running, 102.40 MiB at rest"
    )
    hinted = a_task("other")
    hinted.options = structs.replace(hinted.options, memory=GIB)
    assert "needs about 1.00 GiB (as was said with it)" in admission().why_not(hinted, worker, 0.0)
    assert admission().why_not(known("light", 0.01), worker, 0.0) == ""


def test_why_a_task_of_an_unknown_kind_waits_is_told() -> None:
    worker = limited()
    task = a_task("load")
    put_out(task, worker)
    assert admission().why_not(task, worker, 0.1) == (
        "nobody knows yet what a run of 'load' takes: one goes first on a, which runs it"
    )


def test_estimates_are_high() -> None:
    assert high_estimate(100, 200) == 200
    assert high_estimate(800, 0) == 700
    task = known("x", 0.0)
    learn_footprint(task.prefix, 0, 500)
    assert footprint_bytes(task.prefix) == 500


def test_limits_are_those_of_the_workers_that_are_there() -> None:
    footprints = Footprints()
    assert not footprints.is_limited
    small, large, free = limited("a", 4, 2.0), limited("b", 4, 8.0), a_worker("d")
    assert footprints.add(large, 0.8)
    assert footprints.add(small, 0.8)
    assert footprints.weighty_bytes == int(2 * GIB * 0.8 / 4 / 8)
    assert footprints.limit_max == 8 * GIB
    footprints.note_result(3 * GIB)
    assert footprints.ninputs_safe == 2
    footprints.add(free, 0.8)
    assert footprints.limit_max == 0
    assert footprints.ninputs_safe == NOTHING_WEIGHS
    footprints.remove(free)
    footprints.remove(large)
    assert footprints.limit_max == 2 * GIB
    footprints.remove(small)
    assert not footprints.is_limited


def test_a_queue_takes_over_another_in_order() -> None:
    one, other = TaskQueue(), TaskQueue()
    for priority in (1, 4):
        one.push(queued(priority))
    for priority in (2, 3, 5):
        other.push(queued(priority))
    one.absorb(other)
    assert [task.priority for task in iter(one.pop, None)] == [1, 2, 3, 4, 5]
    assert (one.nentries, other.nentries, other.pop()) == (0, 0, None)


@pytest.mark.parametrize(
    "error",
    [
        KilledByMemory("x", "tcp://a:1", 3, "", ["SIGKILL"], [("tcp://a:1", 3 * GIB, 4 * GIB)], 1),
        NotEnoughMemory("x", 3 * GIB, 2 * GIB, [("y", GIB)], 5),
        NotEnoughMemory("x", 3 * GIB, 2 * GIB),
    ],
    ids=["killed", "inputs", "scattered"],
)
def test_an_error_of_memory_is_the_same_after_a_journey(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
    assert isinstance(copy, MemoryError)
    assert "3.00 GiB" in str(copy)


def queued(priority: int) -> Task:
    task = a_task(f"t{priority}", priority=priority)
    task.state = QUEUED
    return task


def test_the_machine_goes_by_what_is_set_for_workers() -> None:
    with dask.config.set(
        {
            "shoal.scheduler.default-task-memory": {"load": "2 MB"},
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.target": False,
        }
    ):
        settings = settings_of()[1]
    assert settings.known_bytes == {"load": 2_000_000}
    assert (settings.memory_pause_ratio, settings.memory_target_ratio) == (1.0, None)
