"""Clients are told what their tasks need that no connected worker has, once they have waited.

One word for all tasks that need the same, to each client that waits for any of them; not again for
some minutes, as long as they wait.  The scheduler's log has one as well.  The tasks go on waiting:
such a worker may still come.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from shoal.protocol.limits import TasksStranded
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import WorkCanNotRun
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.warning import warn
from shoal.scheduler.model.demands import DemandKey, Told, demand_key
from shoal.scheduler.model.entities import NO_WORKER, QUEUED, Client, Task
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.explain import Explaining

AGAIN_SECONDS: Final = 300.0
"""How long a client is not told the same again."""

WORDS_MAX: Final = 20
"""Different words to one client in that time; more of them nobody would read."""

TASKS_LOOKED_AT: Final = 1000
"""Of those that wait, in one step; others are due in the next ones."""

DEPENDENTS_LOOKED_AT: Final = 64
"""Of a task that nobody waits for itself, until it is found out who waits for it."""

NAMES_TOLD: Final = 5
"""Workers that are named."""


def tell_stranded(core: Core) -> None:
    """Time has come for those that have waited for so long and wait still.

    Cost: O(those), and for each word O(workers).
    """
    state, seconds = core.state, core.settings.stranded_warning_seconds
    if seconds is None:
        return
    untold, nlooked_at = state.untold, 0
    found: dict[tuple[Client, DemandKey], list[Task]] = {}
    unmet: dict[DemandKey, list[Task]] = {}
    while untold and untold[0][0] + seconds <= core.now and nlooked_at < TASKS_LOOKED_AT:
        since, task = untold.popleft()
        nlooked_at += 1
        if state.unrunnable.get(task) != since:
            continue
        key = demand_key(task.options)
        unmet.setdefault(key, []).append(task)
        for client in who_waits(state, task):
            found.setdefault((client, key), []).append(task)
    for (client, key), tasks in found.items():
        _tell(core, client, key, tasks, seconds)
    for key, tasks in unmet.items():
        _warn(core, key, tasks, seconds)
    if untold:
        core.wake_by(max(core.now, untold[0][0] + seconds))


def _tell(core: Core, client: Client, key: DemandKey, tasks: list[Task], seconds: float) -> None:
    """Say it, unless the client has heard it, or very much."""
    options = tasks[0].options
    workers = [worker for worker in core.state.workers.values() if not worker.is_leaving]
    if not (options.resources or options.workers):
        return  # anybody may run it: nobody has come yet, or all are paused, which is told apart
    if not is_news(core, client, key, tasks[0]):
        return
    named = core.state.workers_named(options.workers)
    allowed = workers if options.allow_other_workers or not named else list(named)
    offered = {
        name: max((worker.resources.get(name, 0.0) for worker in allowed), default=0.0)
        for name in options.resources
    }
    names = [worker.name or worker.address for worker in workers[:NAMES_TOLD]]
    message = TasksStranded(
        tasks[0].key,
        len(tasks),
        seconds,
        options.workers,
        options.resources,
        len(workers),
        offered,
        names,
        sum(not worker.takes_work for worker in workers),
    )
    core.to_client(client, message)


def _warn(core: Core, key: DemandKey, tasks: list[Task], seconds: float) -> None:
    """Whoever looks after the workers has it in the log, in the words of explanations."""
    options = tasks[0].options
    if not (options.resources or options.workers):
        return  # as for clients
    explaining = Explaining(core.state, core.queuing, core.admission, core.now)
    lines = [line.strip() for line in explaining.why(tasks[0])]
    warn(core, f"unmet {key}", str(WorkCanNotRun(tasks[0].key, len(tasks), seconds, lines)))


def is_news(core: Core, client: Client, key: DemandKey, task: Task) -> bool:
    """Whether to tell this client of tasks that need this: once, and not too much in all.

    If the one that it was told of waits no more, as it was run or let go of, others that do are
    news.  It counts as told from now on.
    """
    state = core.state
    told = state.told_unmet.setdefault(client, {})
    for needed, before in list(told.items()):
        if before.at + AGAIN_SECONDS <= core.now:
            del told[needed]
    if sum(before.ntimes for before in told.values()) >= WORDS_MAX:
        return False
    last = told.pop(key, None)
    if last is not None:
        first = state.task_by_id.get(last.task)
        if first is not None and first.state in (NO_WORKER, QUEUED):
            told[key] = last
            return False
    told[key] = Told(core.now, task.id, 1 if last is None else last.ntimes + 1)
    return True


def who_waits(state: SchedulerState, task: Task) -> list[Client]:
    """The connected clients that want the task, or else what is the nearest to depend on it.

    What a task has submitted is wanted by a client of its worker, which nobody reads: so those that
    want the outer task are asked, too.
    """
    due = deque((task,))
    seen = {task: None}
    inner: list[Client] = []
    while due:
        task = due.popleft()
        clients = list({c: None for c, _ in task.wants if state.clients.get(c.id) is c})
        if any(client not in state.serving for client in clients):
            return clients
        inner = inner or clients
        outer = state.tasks.get(task.options.inside) if clients and task.options.inside else None
        for following in (outer,) if outer is not None else task.dependents or ():
            if len(seen) < DEPENDENTS_LOOKED_AT and following not in seen:
                seen[following] = None
                due.append(following)
    return inner


def forget_told(core: Core, client: Client) -> None:
    """A client has gone; once nobody is there, nobody waits to be told."""
    state = core.state
    state.told_unmet.pop(client, None)
    if len(state.clients) == 1:
        state.untold.clear()
        state.nested_since.clear()


def told_are_there(state: SchedulerState) -> Iterator[str]:
    """Who was told is connected, and those that are to be told are in the order of their times."""
    for client in state.told_unmet:
        if state.clients.get(client.id) is not client:
            yield f"{client} was told of tasks, and has gone"
    times = [since for since, _ in state.untold]
    if times != sorted(times):
        yield "tasks that clients are to be told of are not in the order of their times"


HANDLERS = Handlers(client_gone=forget_told, woken=tell_stranded, invariant=told_are_there)
