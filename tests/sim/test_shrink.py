"""A failure is made smaller, and stays the same failure."""

from shoal.sim.plan import Crash, Plan, Submit
from shoal.sim.run import Verdict
from shoal.sim.shrink import shrink
from shoal.sim.swarm import expand


def verdict(plan: Plan, invariant: str) -> Verdict:
    return Verdict(plan, "", 1, 1, 1.0, invariant, "it is broken" if invariant else "")


def judge(plan: Plan) -> Verdict:
    """A program with a bug: it fails if a worker crashes and some task has two inputs."""
    crashes = any(isinstance(fault, Crash) for fault in plan.faults)
    submits = [act for act in plan.acts if isinstance(act, Submit)]
    has_pair = any(len(task.inputs) >= 2 for act in submits for task in act.tasks)
    if crashes and has_pair:
        return verdict(plan, "the bug")
    return verdict(plan, "another bug" if crashes else "")


def failing() -> Verdict:
    """A verdict on a seed that fails, with several faults."""
    verdicts = [judge(expand(seed)) for seed in range(200)]
    return next(v for v in verdicts if v.invariant == "the bug" and len(v.plan.faults) > 3)


def test_only_what_the_failure_needs_is_left() -> None:
    small = shrink(failing(), judge=judge, nruns_max=5000).plan
    [fault] = small.faults
    [act] = small.acts
    assert isinstance(fault, Crash)
    assert isinstance(act, Submit)
    [task] = act.tasks
    assert len(task.inputs) == 2
    assert (small.nclients, len(small.workers), small.weather.constant) == (1, 1, True)


def test_the_kind_of_failure_stays() -> None:
    assert shrink(failing(), judge=judge).invariant == "the bug"


def test_it_gives_up_after_so_many_runs() -> None:
    seen = []

    def count(plan: Plan) -> Verdict:
        seen.append(plan)
        return judge(plan)

    shrink(failing(), judge=count, nruns_max=7)
    assert len(seen) == 7
