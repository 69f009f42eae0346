"""Make a failing plan smaller, as long as it fails in the same way.

Fewer faults first, then fewer acts, tasks, places, edges and surprises.  Since every stream of
chance has a name of its own, what is left out doesn't move what stays.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from shoal.sim.network import Weather
from shoal.sim.plan import Act, Plan, Submit
from shoal.sim.run import Verdict, run
from shoal.sim.specs import TaskSpec

T = TypeVar("T")


def run_in_full(plan: Plan) -> Verdict:
    """Run a plan, and look at everything after each step."""
    return run(plan, checks_all=True)


def shrink(
    verdict: Verdict, *, nruns_max: int = 600, judge: Callable[[Plan], Verdict] = run_in_full
) -> Verdict:
    """A verdict on a smaller plan that breaks the same invariant.

    Args:
        nruns_max: how many runs this may take, of some ten milliseconds each.
        judge: runs a plan.
    """
    best = verdict
    left = nruns_max
    progress = True
    while progress and left > 0:
        progress = False
        for make_candidates in (_fewer_faults, _fewer_acts, _fewer_tasks, _plainer):
            for candidate in make_candidates(best.plan):
                if left <= 0:
                    break
                left -= 1
                found = judge(candidate)
                if found.invariant == verdict.invariant:
                    best = found
                    progress = True
                    break
            else:
                continue
            break
    return best


def _fewer_faults(plan: Plan) -> Iterator[Plan]:
    for faults in _parts(plan.faults):
        yield replace(plan, faults=faults)


def _fewer_acts(plan: Plan) -> Iterator[Plan]:
    for acts in _parts(plan.acts):
        yield replace(plan, acts=acts)
    if plan.nclients > 1:
        nclients = plan.nclients - 1
        acts = tuple(act for act in plan.acts if act.client < nclients)
        yield replace(plan, nclients=nclients, acts=acts)
        acts = tuple(replace(act, client=min(act.client, nclients - 1)) for act in plan.acts)
        yield replace(plan, nclients=nclients, acts=acts)


def _fewer_tasks(plan: Plan) -> Iterator[Plan]:
    for i, act in enumerate(plan.acts):
        if isinstance(act, Submit):
            for tasks in _parts(act.tasks):
                yield _with_act(plan, i, replace(act, tasks=tasks))
            for smaller in _fewer_edges(act):
                yield _with_act(plan, i, smaller)


def _fewer_edges(act: Submit) -> Iterator[Submit]:
    for i, task in enumerate(act.tasks):
        for inputs in _parts(task.inputs):
            yield _with_task(act, i, replace(task, inputs=inputs))
        if task.nfailures:
            yield _with_task(act, i, replace(task, nfailures=0))


def _plainer(plan: Plan) -> Iterator[Plan]:
    if len(plan.workers) > 1:
        yield replace(plan, workers=plan.workers[:-1])
    for i, worker in enumerate(plan.workers):
        for plainer in (
            replace(worker, nthreads=1),
            replace(worker, joins_at=0.0),
            replace(worker, resources=()),
        ):
            if plainer != worker:
                workers = (*plan.workers[:i], plainer, *plan.workers[i + 1 :])
                yield replace(plan, workers=workers)
    steady = Weather(constant=True, delay_seconds=plan.weather.delay_seconds)
    for candidate in (
        replace(plan, weather=steady),
        replace(plan, settings=()),
        replace(plan, is_encoded=False),
    ):
        if candidate != plan:
            yield candidate
    for i, act in enumerate(plan.acts):
        if isinstance(act, Submit):
            for change in (
                replace(act, options=None),
                replace(act, nslices=1),
                replace(act, bundle_size=1),
                replace(act, wanted=None),
            ):
                if change != act:
                    yield _with_act(plan, i, change)


def _parts(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without the second half, the first half, then without ever smaller pieces down to one."""
    size = len(items) // 2
    while size > 1:
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        size //= 2
    for i in range(len(items) - 1, -1, -1):
        yield items[:i] + items[i + 1 :]


def _with_act(plan: Plan, index: int, act: Act) -> Plan:
    return replace(plan, acts=(*plan.acts[:index], act, *plan.acts[index + 1 :]))


def _with_task(act: Submit, index: int, task: TaskSpec) -> Submit:
    return replace(act, tasks=(*act.tasks[:index], task, *act.tasks[index + 1 :]))
