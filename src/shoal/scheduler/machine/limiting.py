"""Names of which only so many tasks may run at once: set, looked at, and counted right."""

from collections import Counter
from collections.abc import Iterator

from shoal.protocol.answers import answer
from shoal.protocol.framing import ProtocolError
from shoal.protocol.limits import GetLimits, LimitSeen, SetLimits
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import ask_all_if_limited
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import QUEUED, Client
from shoal.scheduler.model.state import SchedulerState


def on_set_limits(core: Core, client: Client, call: SetLimits) -> None:
    """What is set holds for tasks that are submitted already, too; what runs goes on."""
    if any(nruns_max is not None and nruns_max < 0 for nruns_max in call.limits.values()):
        raise ProtocolError("SetLimits has a number below zero")
    set_to = core.state.limits.nruns_max
    for name, nruns_max in call.limits.items():
        if nruns_max is None:
            set_to.pop(name, None)
        else:
            set_to[name] = nruns_max
        core.state.limits.free(name)
    ask_all_if_limited(core)
    core.to_client(client, answer(call.request, limits_seen(core.state)))


def on_get_limits(core: Core, client: Client, call: GetLimits) -> None:
    """Answer with all that are set, run or waited for."""
    core.to_client(client, answer(call.request, limits_seen(core.state)))


def limits_seen(state: SchedulerState) -> dict[str, LimitSeen]:
    """How each name stands.  Cost: O(queued tasks that have some)."""
    limits = state.limits
    nwaiting: Counter[str] = Counter()
    for demand in state.demands.values():
        if demand.limits:
            ntasks = sum(t.state == QUEUED for _, _, run in demand.queue.runs for t in run)
            nwaiting.update(dict.fromkeys(demand.limits, ntasks))
    return {
        name: LimitSeen(limits.nruns_max.get(name), limits.nruns.get(name, 0), nwaiting[name])
        for name in {**limits.nruns_max, **limits.nruns, **nwaiting}
    }


def runs_are_counted(state: SchedulerState) -> Iterator[str]:
    """The runs of a name are those that workers have, and no more were begun than there may be."""
    counted: Counter[str] = Counter()
    for worker in state.workers.values():
        for options in worker.claims.values():
            counted.update(options.limits.keys())
    if dict(counted) != state.limits.nruns:
        yield f"{state.limits.nruns} runs are counted by limit, there are {dict(counted)}"
    yield from state.limits.lost()
    for worker in state.workers.values():
        for task in worker.processing:
            if task.options.limits and task.run and task.run not in worker.claims:
                yield f"{task!r} runs, and nobody counts it"


HANDLERS = Handlers(
    from_client={SetLimits: on_set_limits, GetLimits: on_get_limits},
    invariant=runs_are_counted,
)
