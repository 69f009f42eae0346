"""Workers that hear nothing are suspect in the simulator too, and its judge knows who should be."""

from dataclasses import replace

from shoal.ids import Key
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.cluster import Cluster
from shoal.sim.nemesis import unleash
from shoal.sim.plan import Deafen, Freeze, Plan, Submit, WorkerPlan
from shoal.sim.run import run
from shoal.sim.silence_judge import SilenceJudge
from shoal.sim.specs import TaskSpec

TASKS = tuple([TaskSpec(Key(f"x-{i}"), nbytes=5000, seconds=0.02) for i in range(12)])
PLAN = Plan(
    1,
    (WorkerPlan(), WorkerPlan()),
    1,
    (Submit(0.05, 0, TASKS),),
    (Deafen(0.02, 0, 1.5),),
    calm_at=3.0,
    settings=(("heartbeat_seconds", 0.1), ("suspect_seconds", 0.3)),
)


def played(plan: Plan, until: float) -> tuple[Cluster, Worker]:
    """A cluster at that time, and its first worker as the scheduler knows it."""
    cluster = Cluster(plan)
    cluster.after_scheduler_step = lambda: None
    cluster.after_worker_step = lambda address: None
    cluster.start()
    for act in plan.acts:
        assert isinstance(act, Submit)
        cluster.world.at(act.at, lambda act=act: cluster.live_clients()[0].submit(act))
    unleash(cluster)
    go_on(cluster, until)
    return cluster, cluster.scheduler.machine.state.workers[cluster.places[0].address]


def go_on(cluster: Cluster, until: float) -> None:
    while (at := cluster.world.next_at) is not None and at < until:
        cluster.world.step()


def test_who_hears_nothing_is_suspect_until_it_is_mended() -> None:
    cluster, worker = played(PLAN, until=1.4)
    assert worker.silence is not None
    go_on(cluster, 2.0)
    assert worker.silence is None
    assert run(PLAN, checks_all=True).is_good


def test_who_hears_nothing_until_its_connection_breaks_begins_anew() -> None:
    assert run(replace(PLAN, faults=(Deafen(0.02, 0, 1.5, breaks=True),)), checks_all=True).is_good


def test_the_judge_misses_a_suspect() -> None:
    cluster, worker = played(replace(PLAN, settings=(("heartbeat_seconds", 0.1),)), until=1.4)
    judge = SilenceJudge(SchedulerSettings(suspect_seconds=0.3))
    state, heard = cluster.scheduler.machine.state, cluster.places[0].worker
    assert heard is not None
    ends = {worker: heard.end.other}
    assert list(judge.look(state, ends, 1.4)) == []
    assert f"{worker} is not suspect after 0.400 s" in list(judge.look(state, ends, 1.8))


def test_the_judge_sees_who_is_suspect_too_early() -> None:
    cluster, worker = played(replace(PLAN, faults=(Freeze(0.02, 0, 5.0),)), until=1.4)
    judge = SilenceJudge(SchedulerSettings(suspect_seconds=2.0))
    [told] = judge.look(cluster.scheduler.machine.state, {}, 1.4)
    assert told == f"{worker} is suspect, and was heard 0.000 s ago"
