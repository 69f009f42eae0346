"""Who waits for room in a simulated worker, and who is let in: what is wrong is noticed."""

from dataclasses import replace

import pytest

from shoal.ids import Key
from shoal.sim.awaiting import AWAIT_SECONDS_MAX, Awaited
from shoal.sim.cluster import Cluster
from shoal.sim.invariants import ENDED, GONE, broken
from shoal.sim.oracle import Instance
from shoal.sim.plan import Plan, SlowWorker, Submit, WorkerPlan
from shoal.sim.room_judge import STANDSTILL_SECONDS_MAX
from shoal.sim.rooms import WORKS_SECONDS
from shoal.sim.run import run
from shoal.sim.specs import TaskSpec
from shoal.sim.violation import Violation
from shoal.sim.worker_side import WorkerActor
from shoal.sim.world import World
from shoal.worker.policies.making_room import STANDSTILL_SECONDS
from shoal.worker.policies.room import Room

MB = 1_000_000
LARGE, SUM, OTHER = Key("large"), Key("sum"), Key("other")


def a_plan(*tasks: TaskSpec, room_mb: int = 40, nthreads: int = 1) -> Plan:
    """One client submits these to one worker."""
    submit = Submit(0.0, 0, tasks)
    return Plan(1, (WorkerPlan(nthreads, room_bytes=room_mb * MB),), 1, (submit,), ())


class Played:
    """A plan, played until only timers are left."""

    def __init__(self, plan: Plan) -> None:
        self.cluster = Cluster(plan)
        self.cluster.after_scheduler_step = lambda: None
        self.cluster.after_worker_step = lambda address: None
        self.cluster.start()
        [client] = self.cluster.live_clients()
        client.submit(plan.acts[0])  # type: ignore[arg-type]
        while self.cluster.world.nforeground:
            self.cluster.world.step()

    @property
    def worker(self) -> WorkerActor:
        [worker] = self.cluster.live_workers()
        return worker

    @property
    def room(self) -> Room:
        room = self.worker.machine.state.room
        assert room is not None
        return room

    def look(self) -> None:
        """Until the next look at memory, whenever that is."""
        until = self.cluster.world.now + 2.0
        while self.cluster.world.now < until:
            self.cluster.world.step()


def test_results_are_written_so_that_others_have_room() -> None:
    tasks = [TaskSpec(Key(f"in-{i}"), nbytes=15 * MB) for i in range(4)]
    played = Played(a_plan(*tasks, TaskSpec(SUM, inputs=(tasks[0].key, tasks[3].key))))
    assert played.cluster.nwaits
    assert played.worker.disk.files
    assert run(played.cluster.plan, checks_all=True).is_good


def test_what_has_no_room_is_let_in_at_last() -> None:
    tasks = (TaskSpec(LARGE, nbytes=30 * MB), TaskSpec(SUM, inputs=(LARGE,), nbytes=50))
    plan = a_plan(*tasks, room_mb=20)
    played = Played(plan)
    assert played.cluster.nforced[False]
    assert run(plan, checks_all=True).is_good


def test_a_run_that_waits_without_a_word_keeps_others_out_for_ten_seconds() -> None:
    """The other needs as much again as its input has, of which there is not so much left."""
    waits = TaskSpec(OTHER, seconds=0.3, awaits=SUM)
    tasks = (TaskSpec(LARGE, nbytes=30 * MB), waits, TaskSpec(SUM, inputs=(LARGE,)))
    plan = a_plan(*tasks, nthreads=2)
    verdict = run(plan, checks_all=True)
    assert verdict.is_good
    assert STANDSTILL_SECONDS < verdict.seconds < STANDSTILL_SECONDS_MAX + 1


def test_a_run_that_says_that_it_waits_keeps_nobody_out() -> None:
    waits = TaskSpec(OTHER, seconds=0.3, awaits=SUM, says_so=True)
    tasks = (TaskSpec(LARGE, nbytes=30 * MB), waits, TaskSpec(SUM, inputs=(LARGE,)))
    plan = a_plan(*tasks)
    verdict = run(plan, checks_all=True)
    assert verdict.is_good
    assert verdict.seconds < plan.calm_at + 1


def test_a_run_that_works_for_long_comes_to_its_end_on_a_slow_worker_too() -> None:
    works = TaskSpec(LARGE, seconds=WORKS_SECONDS)
    slow = SlowWorker(0.01, 0, factor=30.0, seconds=5.0)
    plan = replace(a_plan(works), acts=(Submit(0.02, 0, (works,)),), faults=(slow,))
    verdict = run(plan, checks_all=True)
    assert verdict.is_good
    assert WORKS_SECONDS < verdict.seconds < 2 * WORKS_SECONDS


def test_heartbeats_of_workers_without_a_bound_may_be_many_as_well() -> None:
    works = TaskSpec(LARGE, seconds=4 * WORKS_SECONDS)
    plan = replace(a_plan(works, room_mb=0), settings=(("heartbeat_seconds", 0.1),))
    assert run(plan, checks_all=True).is_good


def test_a_run_does_not_wait_for_ever() -> None:
    world = World()
    there = {SUM: Instance(TaskSpec(SUM), (), 0)}
    awaited = Awaited(world, lambda: there)
    went_on: list[float] = []
    for _ in range(2):  # once in vain, and then not at all
        awaited.wait(TaskSpec(OTHER, awaits=SUM), lambda: went_on.append(world.now))
        while world.step():
            pass
    assert went_on == [AWAIT_SECONDS_MAX, AWAIT_SECONDS_MAX]
    awaited.wait(TaskSpec(LARGE, awaits=SUM), lambda: went_on.append(world.now))
    awaited.computed(SUM)
    while world.step():
        pass
    assert went_on == [AWAIT_SECONDS_MAX] * 3


def test_who_waits_at_the_end_is_noticed() -> None:
    played = Played(a_plan(TaskSpec(LARGE, nbytes=MB)))
    assert "nobody waits for room" not in {name for name, _ in broken(played.cluster, ENDED)}
    played.room.lacking_bytes = 1
    assert "nobody waits for room" in {name for name, _ in broken(played.cluster, ENDED)}
    assert "no room is kept" in {name for name, _ in broken(played.cluster, GONE)}


def test_who_waits_for_nothing_is_noticed() -> None:
    played = Played(a_plan(TaskSpec(LARGE, nbytes=MB)))
    judge = played.worker.room.judge
    assert judge is not None
    played.room.lacking_bytes = 1
    judge.settled(is_trimming=False)
    played.cluster.world.now += 3.0
    with pytest.raises(Violation, match="something waits for nothing"):
        judge.settled(is_trimming=False)


def test_room_that_is_kept_for_nobody_is_noticed() -> None:
    played = Played(a_plan(TaskSpec(LARGE, nbytes=MB)))
    played.room.reserved_bytes = 5
    with pytest.raises(Violation, match="5 bytes reserved, and runs have 0"):
        played.look()


def test_a_standstill_that_is_none_is_noticed() -> None:
    played = Played(a_plan(TaskSpec(LARGE, nbytes=MB)))
    judge = played.worker.room.judge
    assert judge is not None
    with pytest.raises(Violation, match=r"could have .* leave memory"):
        judge.forces(is_overdue=False)
    [replica] = played.worker.machine.state.held.values()
    replica.npins = 1
    judge.forces(is_overdue=False)  # as nothing goes on
    with pytest.raises(Violation, match="takes for a standstill what went on"):
        judge.forces(is_overdue=True)


def test_without_a_bound_nothing_waits() -> None:
    plan = a_plan(TaskSpec(LARGE, nbytes=30 * MB), TaskSpec(SUM, inputs=(LARGE,)))
    plan = replace(plan, workers=(WorkerPlan(),))
    assert Played(plan).worker.room.judge is None
