"""Choices: each is asked with a few entities, and changes none of them."""

import pytest

from shoal.ids import RunId
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.model.entities import Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.ways import Ways
from shoal.scheduler.policies.blame import suspects
from shoal.scheduler.policies.liveness import has_stalled_runs, silent_workers
from shoal.scheduler.policies.placement import (
    HOLDERS_LOOKED_AT,
    INPUTS_LOOKED_AT,
    OUT_OF_REACH_US,
    EarliestStart,
    choose_scatter,
    has_inputs_to_move,
    may_run_on,
)
from shoal.scheduler.policies.queuing import LateBinding
from shoal.scheduler.policies.stealing import TakeFromBacklog
from tests.unit.scheduler.stage import a_result, a_task, a_worker

SETTINGS = SchedulerSettings()
PLACEMENT = EarliestStart(SETTINGS, Ways(SETTINGS.bandwidth_bytes_per_second))
BYTES_PER_MS = 100_000  # of the default bandwidth


# --- placement ---


def test_bringing_an_input_takes_its_bytes_over_the_bandwidth_and_a_latency() -> None:
    a, b = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", 5 * BYTES_PER_MS, a))
    assert PLACEMENT.fetch_us(task, a, 0.0) == 0
    assert PLACEMENT.fetch_us(task, b, 0.0) == 6000


def test_small_inputs_travel_along_and_cost_nothing() -> None:
    a, b = a_worker("a"), a_worker("b")
    small = a_result("x", 10, a)
    small.value = b"1"
    task = a_task("y", small)
    assert PLACEMENT.fetch_us(task, b, 0.0) == 0
    assert not has_inputs_to_move(task)
    assert has_inputs_to_move(a_task("z", small, a_result("w", 10, a)))


def test_however_much_waits_for_one_large_result_not_all_are_sent_there_at_once() -> None:
    """A million tasks wait on the holder, a day and more of work: its copies come first."""
    placement = EarliestStart(SETTINGS, Ways(SETTINGS.bandwidth_bytes_per_second))
    placement.ways.nworkers = 9
    holder, *others = (a_worker(name) for name in "abcdefghi")
    model = a_result("model", 10_000 * BYTES_PER_MS, holder)
    model.nwaiters = 1_000_000
    holder.backlog_us = 1_000_000 * 500_000
    sent = 0
    for number, worker in enumerate(others):
        task = a_task(f"y{number}", model)
        if placement.choose(task, worker, 0.0) is worker:
            placement.ways.begin(task, worker)
            sent += 1
    assert 1 <= sent < len(others)


def test_a_task_starts_where_queue_and_inputs_are_over_first() -> None:
    a, b = a_worker("a"), a_worker("b", nthreads=4)
    task = a_task("y", a_result("x", BYTES_PER_MS, a))  # 2 ms away from b
    a.sent_us = 1999
    assert PLACEMENT.choose(task, b, 0.0) is a
    a.sent_us, a.backlog_us = 1000, 1001
    assert PLACEMENT.choose(task, b, 0.0) is b
    b.sent_us = 40  # 10 us for each of its threads
    assert PLACEMENT.choose(task, b, 0.0) is a


def test_ties_go_to_the_first_holder() -> None:
    a, b = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", 1, b, a))
    assert PLACEMENT.choose(task, a, 0.0) is b


def test_without_workers_there_is_no_place() -> None:
    assert PLACEMENT.choose(a_task(), None, 0.0) is None
    leaving = a_worker("a")
    leaving.is_leaving = True
    assert PLACEMENT.choose(a_task("y", a_result("x", 1, leaving)), None, 0.0) is None


def test_a_holder_out_of_reach_is_as_far_as_can_be_until_we_forget() -> None:
    a, b = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", 0, a))
    b.cannot_reach[a.id] = 10.0
    assert PLACEMENT.fetch_us(task, b, 9.9) == 1000 + OUT_OF_REACH_US
    assert PLACEMENT.fetch_us(task, b, 10.0) == 1000
    other = a_worker("d")
    task = a_task("y", a_result("x", 0, a, other))
    assert PLACEMENT.fetch_us(task, b, 9.9) == 1000  # the other one can be asked


def test_only_so_many_holders_and_inputs_are_looked_at() -> None:
    holders = [a_worker(chr(ord("A") + index)) for index in range(20)]
    assert len({holder.id for holder in holders}) == 20
    for holder in holders[:HOLDERS_LOOKED_AT]:
        holder.sent_us = 10
    task = a_task("y", a_result("x", 0, *holders))
    assert PLACEMENT.choose(task, None, 0.0) is holders[0]
    many = a_task("z", *(a_result(f"x{i}", 0, holders[0]) for i in range(INPUTS_LOOKED_AT + 5)))
    assert PLACEMENT.fetch_us(many, holders[1], 0.0) == INPUTS_LOOKED_AT * 1000


@pytest.mark.parametrize("name", ["tcp://a:1", "a", "there"])
def test_a_restriction_names_a_worker_by_address_name_or_host(name: str) -> None:
    worker = a_worker("a")
    worker.host = "there"
    task = a_task()
    assert may_run_on(task, worker)
    task.options = TaskOptions(workers=["z", name])
    assert may_run_on(task, worker)
    task.options = TaskOptions(workers=["z"])
    assert not may_run_on(task, worker)


def test_scattered_values_go_round_by_threads() -> None:
    workers = [a_worker("a", 1), a_worker("b", 3)]
    assert [choose_scatter(workers, n).name for n in range(9)] == list("abbbabbba")


# --- queuing ---


@pytest.mark.parametrize(
    ("saturation", "nthreads", "nslots"),
    [(1.1, 1, 2), (1.1, 10, 11), (1.1, 11, 13), (1.0, 7, 7), (0.1, 2, 1), (float("inf"), 1, 2)],
)
def test_slots_are_the_saturation_times_the_threads_rounded_up(
    saturation: float, nthreads: int, nslots: int
) -> None:
    binding = LateBinding(SchedulerSettings(worker_saturation=saturation))
    assert binding.slots(nthreads) == nslots


def test_there_is_room_in_the_slots_and_in_the_pipe() -> None:
    binding = LateBinding(SETTINGS)
    worker = a_worker("a", nthreads=2, slots_max=3)
    worker.nsent, worker.sent_us = 2, 10**9
    assert binding.has_room(worker)  # a slot, whatever is expected
    worker.nsent = 3
    assert not binding.has_room(worker)
    worker.sent_us = 1999
    assert binding.has_room(worker)  # a millisecond for each thread
    worker.sent_us = 2000
    assert not binding.has_room(worker)
    worker.nsent, worker.sent_us = SETTINGS.pipe_runs_max, 0
    assert not binding.has_room(worker)


def test_a_worker_that_leaves_has_no_room() -> None:
    worker = a_worker("a")
    worker.is_leaving = True
    assert not LateBinding(SETTINGS).has_room(worker)


def test_what_never_finished_is_expected_to_be_long_and_nothing_takes_no_time() -> None:
    binding = LateBinding(SETTINGS)
    assert binding.expected_us(a_task()) == 500_000
    assert binding.expected_us(a_task(duration_us=0)) == 1
    assert binding.expected_us(a_task(duration_us=70)) == 70


# --- stealing ---


def worth(task: Task, us: int, victim: Worker, thief: Worker, now: float, n: int = 2) -> bool:
    """Whether `thief`, one of `n` workers, shall have `task`, which takes `us`."""
    PLACEMENT.ways.nworkers = n
    stealing = TakeFromBacklog(PLACEMENT)
    gain_us = stealing.gain_us(us, victim, thief, now)
    return stealing.is_worth_it(task, us, gain_us, victim, thief, now)


def test_a_task_is_stolen_if_it_starts_sooner_inputs_moved() -> None:
    victim, thief = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", BYTES_PER_MS, victim))  # 2 ms away
    victim.backlog_us = 2001
    assert worth(task, 1000, victim, thief, 0.0)
    victim.backlog_us = 2000
    assert not worth(task, 1000, victim, thief, 0.0)
    thief.sent_us = 1
    victim.backlog_us = 2001
    assert not worth(task, 1000, victim, thief, 0.0)


def test_nothing_is_stolen_whose_inputs_take_much_longer_to_move_than_it_takes_itself() -> None:
    """What carries them would be busy with little else; unless there is very much to do."""
    victim, thief = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", 9 * BYTES_PER_MS, victim), duration_us=1)  # 10 ms away
    victim.backlog_us = 499_000
    assert worth(task, 5_000, victim, thief, 0.0)
    assert not worth(task, 4_000, victim, thief, 0.0)
    victim.backlog_us = 501_000
    assert worth(task, 4_000, victim, thief, 0.0)
    task.prefix.duration_us = -1  # how much there is to do is not known
    assert not worth(task, 4_000, victim, thief, 0.0)


def test_an_input_that_many_need_counts_for_those_that_each_worker_will_run() -> None:
    """A hundred tasks, ten workers: one that gets it will run ten of them."""
    victim, thief = a_worker("a"), a_worker("b")
    wide = a_result("x", 99 * BYTES_PER_MS, victim)  # 100 ms away
    wide.nwaiters = 100
    task = a_task("y", wide)
    victim.backlog_us = 10**9
    assert worth(task, 5_000, victim, thief, 0.0, n=10)
    assert not worth(task, 5_000, victim, thief, 0.0, n=20)


def test_a_victim_is_judged_by_what_is_known_now() -> None:
    victim, thief = a_worker("a"), a_worker("b")
    task = a_task("y", a_result("x", BYTES_PER_MS, victim))
    victim.processing = {a_task(f"w{i}"): 1 for i in range(3)}
    victim.backlog_us = 3
    assert not worth(task, 1, victim, thief, 0.001)
    assert worth(task, 1000, victim, thief, 0.0)  # they turned out to be longer
    assert worth(task, 1, victim, thief, 0.01)  # it has been silent for 10 ms


# --- blame and liveness ---


def test_the_oldest_runs_are_suspected_one_for_each_thread() -> None:
    worker = a_worker("a", nthreads=2)
    tasks = [a_task(name) for name in "uvwxyz"]
    for task, run in zip(tasks, (5, 3, 0, 4, 9, 0), strict=True):
        task.run = RunId(run)
        worker.processing[task] = 1
    assert [task.key for task in suspects(worker)] == ["v", "x"]


def test_silence_is_counted_from_when_a_worker_was_heard() -> None:
    early, late = a_worker("a", now=1.0), a_worker("b", now=5.0)
    assert silent_workers([early, late], 10.0, 11.0) == []
    assert silent_workers([early, late], 10.0, 11.1) == [early]


def test_runs_are_stalled_if_no_thread_is_free_and_nothing_was_said() -> None:
    worker = a_worker("a", nthreads=2, now=1.0)
    worker.nsent = 3
    assert not has_stalled_runs(worker, 0.5, 1.4)
    assert has_stalled_runs(worker, 0.5, 1.5)
    worker.nsent = 2
    assert not has_stalled_runs(worker, 0.5, 9.0)
