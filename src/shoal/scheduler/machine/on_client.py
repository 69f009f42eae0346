"""What clients say: new tasks, and which results they want.

Wants are numbered by the client, and each number is used once; a release names numbers, so one that
comes late can't touch a newer want of the same key.
"""

from collections.abc import Collection, Iterable

from shoal.errors import UnknownDependency
from shoal.ids import ClientTaskId
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_text
from shoal.protocol.messages import (
    CancelTasks,
    ClientHeartbeat,
    DefineClientCode,
    ForgetClientCode,
    ReleaseTasks,
    SubmitTasks,
    TaskCancelled,
    TaskOptions,
    WantKey,
)
from shoal.scheduler.machine.barriers import bind
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import tell
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.journaling import note_change
from shoal.scheduler.machine.naming import give_spec, task_by_name
from shoal.scheduler.machine.on_memory import reconsider
from shoal.scheduler.machine.placing import to_priority
from shoal.scheduler.machine.recovering import note_said
from shoal.scheduler.machine.releasing import drop_user, settle_all
from shoal.scheduler.machine.scattering import stop_bringing
from shoal.scheduler.machine.sharing import places_of
from shoal.scheduler.machine.telling import GRAPH_TASKS_MIN, report_graph
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import NO_OPTIONS, RELEASED, Client, Code, Task
from shoal.scheduler.model.keepers import DETACHED
from shoal.scheduler.model.shares import SEQUENCE_BITS
from shoal.scheduler.model.state import (
    link_dependencies,
    link_hold,
    link_want,
    unlink_hold,
    unlink_want,
)

AHEAD_MAX = 1 << 36
"""Tasks of a graph that are still to come; more would use up the places in the order."""


def on_define_client_code(core: Core, client: Client, message: DefineClientCode) -> None:
    """Keep the payload under a number of our own."""
    code = core.state.new_code(message.payload)
    code.nusers = 1
    client.codes[message.code] = code


def on_forget_client_code(core: Core, client: Client, message: ForgetClientCode) -> None:
    """The client lets go; tasks that use the code keep it."""
    for number in message.codes:
        code = client.codes.pop(number, None)
        if code is not None:
            drop_user(core, code)


def on_submit_tasks(core: Core, client: Client, message: SubmitTasks) -> None:
    """Make the tasks that are new, link them, and note what is wanted.  Cost: O(tasks + edges)."""
    _check_columns(client, message)
    settle_all(core)
    choices = [message.options or NO_OPTIONS, *message.other_options]
    priorities = [
        to_priority(options.priority, 0) - (_lead(core, options) if options.inside else 0)
        for options in choices
    ]
    places = places_of(core, client, message, priorities)
    is_hinted = any(options.memory for options in choices)
    chosen = message.option_indices
    known, named = core.state.tasks, core.state.orphans.named
    dependencies = message.dependencies
    tasks: list[Task] = []
    for index, key in enumerate(message.keys):
        task = known.get(key)
        if task is None:
            choice = chosen[index] if chosen else 0
            priority = priorities[choice] + places[index]
            task = _new_task(core, client, message, index, priority, choices[choice])
            if is_hinted and task.options.memory:
                task.prefix.is_hinted = True
                reconsider(core, task.prefix)
            if dependencies and dependencies[index]:
                _link(core, client, message, tasks, task, dependencies[index])
        elif named and task in named:
            choice = chosen[index] if chosen else 0
            priority = priorities[choice] + places[index]
            code = _code_of(client, message, index)
            give_spec(core, task, code, message.arguments[index], priority, choices[choice])
            if dependencies and dependencies[index]:
                _link(core, client, message, tasks, task, dependencies[index])
        elif task.options.actor and task.state == RELEASED:
            task.nbytes = -1  # another one is asked for
            note_change(core, task)
        tasks.append(task)
    if client.defined:
        bind(core, client, tasks)
    first = message.first
    wanted: Iterable[int] = range(len(tasks)) if message.wanted is None else message.wanted
    for index in wanted:
        task = tasks[index]
        number = ClientTaskId(first + index)
        link_want(task, client, number)
        if task.state != RELEASED:
            tell(core, task, client, number)
    for index in message.held:
        link_hold(tasks[index], client, ClientTaskId(first + index))
    core.starting.extend(task for task in tasks if task.state == RELEASED)
    for number in message.let_go:
        _let_go(core, client, number)
    if len(tasks) >= GRAPH_TASKS_MIN or message.graph is not None:
        _note_graph(core, client, message)


def on_want_key(core: Core, client: Client, message: WantKey) -> None:
    """A future that came from elsewhere: want what it names, if it is known."""
    if message.task in client.tasks:
        raise ProtocolError("WantKey uses a number that has a task already")
    settle_all(core)
    task = core.state.tasks.get(message.key) or task_by_name(core, message.key)
    if task is None:
        core.to_client(client, TaskCancelled(message.task, "unknown"))
        return
    link_want(task, client, message.task)
    tell(core, task, client, message.task)
    core.starting.append(task)


def on_release_tasks(core: Core, client: Client, message: ReleaseTasks) -> None:
    """The client's futures are gone."""
    for number in message.tasks:
        task = client.tasks.get(number)
        if task is not None:
            unlink_want(task, client, number)
            if task.code is None:
                stop_bringing(core, task, client)
            core.releasing.append(task)


def on_cancel_tasks(core: Core, client: Client, message: CancelTasks) -> None:
    """End these and what depends on them, as far as this client wants it; forced, for everybody.

    What another client wants goes on, and so does what that needs.
    """
    cancelling = [client.tasks[number] for number in message.tasks if number in client.tasks]
    cancel_all(core, client, cancelling, message.force, message.reason)


def cancel_all(
    core: Core, client: Client, cancelling: list[Task], force: bool, reason: str
) -> None:
    """As `on_cancel_tasks`.  What was detached nobody waits for, so it ends like one's own."""
    detached = core.state.keepers.get(DETACHED)
    seen = dict.fromkeys(cancelling)
    while cancelling:
        task = cancelling.pop()
        for owner, number in task.wants:
            if owner is client or owner is detached or force:
                unlink_want(task, owner, number)
                stop_bringing(core, task, owner)
                core.to_client(owner, TaskCancelled(number, reason))
        core.releasing.append(task)
        for dependent in task.dependents or ():
            if dependent not in seen:
                seen[dependent] = None
                cancelling.append(dependent)


def on_client_heartbeat(core: Core, client: Client, message: ClientHeartbeat) -> None:
    """A sign of life; that it was heard is recorded for every message alike."""
    if core.state.recovery is not None:
        note_said(core, client)


def drop_client(core: Core, client: Client) -> None:
    """The client has gone, and with it all that only it wanted."""
    for number, task in list(client.tasks.items()):
        unlink_want(task, client, number)
        stop_bringing(core, task, client)
        core.releasing.append(task)
    for number in list(client.held):
        _let_go(core, client, number)
    for code in client.codes.values():
        drop_user(core, code)
    client.codes.clear()


def _check_columns(client: Client, message: SubmitTasks) -> None:
    """Refuse a message that contradicts itself, before anything is changed.

    Raises:
        ProtocolError: the client is broken, or not a client.
    """
    ntasks = len(message.keys)
    if (
        len(message.arguments) != ntasks
        or len(message.codes) not in (1, ntasks)
        or len(message.dependencies) not in (0, ntasks)
        or len(message.prefix_indices) not in (0, ntasks)
        or len(message.option_indices) not in (0, ntasks)
        or not message.prefixes
    ):
        raise ProtocolError("SubmitTasks has columns of different lengths")
    if not all(code in client.codes for code in message.codes):
        raise ProtocolError("SubmitTasks names a code that was not defined")
    nprefixes = len(message.prefixes)
    if not all(0 <= index < nprefixes for index in message.prefix_indices):
        raise ProtocolError("SubmitTasks names a prefix that it does not have")
    noptions = len(message.other_options)
    if not all(0 <= index <= noptions for index in message.option_indices):
        raise ProtocolError("SubmitTasks names options that it does not have")
    _check_numbers(client, message)
    for index, numbers in enumerate(message.dependencies):
        if numbers and max(numbers) >= message.first + index:
            raise ProtocolError("SubmitTasks has a task before one that it depends on")
        if len(numbers) > 1 and len(frozenset(numbers)) != len(numbers):
            raise ProtocolError("SubmitTasks has a dependency twice")


def _check_numbers(client: Client, message: SubmitTasks) -> None:
    """Numbers are used once: a want that lost its own could never be released again."""
    ntasks = len(message.keys)
    first = message.first
    numbers: Collection[int]
    for indices, says in ((message.wanted, "wants"), (message.held, "holds")):
        if indices is None:
            numbers = range(first, first + ntasks)
        elif not indices:
            continue
        elif min(indices) < 0 or max(indices) >= ntasks:
            raise ProtocolError("SubmitTasks refers to a task that it does not have")
        elif len(frozenset(indices)) != len(indices):
            raise ProtocolError(f"SubmitTasks {says} a task twice")
        else:
            numbers = [first + index for index in indices]
        if not (client.tasks.keys().isdisjoint(numbers) and client.held.keys().isdisjoint(numbers)):
            raise ProtocolError("SubmitTasks uses a number that has a task already")
    graph = first if message.graph is None else message.graph
    if graph > first or not 0 <= message.ntasks_ahead <= AHEAD_MAX:
        raise ProtocolError("SubmitTasks is no slice of the graph that it names")


def _note_graph(core: Core, client: Client, message: SubmitTasks) -> None:
    """Tell of a graph as its last slice has come, and of many tasks at once."""
    if message.ntasks_ahead == 0:
        ntasks = len(message.keys)
        if message.graph is not None:
            ntasks += message.first - message.graph
        report_graph(core, client, ntasks)


def _let_go(core: Core, client: Client, number: ClientTaskId) -> None:
    task = client.held.get(number)
    if task is not None:
        unlink_hold(task, client, number)
        core.releasing.append(task)


def _lead(core: Core, options: TaskOptions) -> int:
    """What tasks that a task submits are ahead of others of their urgency: one step for each task
    that one was submitted in.

    A task that waits for them would else wait for all that was submitted before, and the more of
    its kind would begin and wait as well.
    """
    submitter = core.state.tasks.get(options.inside)
    if submitter is None:
        return 0
    own = to_priority(submitter.options.priority, 0) >> SEQUENCE_BITS
    ahead = own - (submitter.priority >> SEQUENCE_BITS)
    return (ahead + 1) << SEQUENCE_BITS


def _new_task(
    core: Core,
    client: Client,
    message: SubmitTasks,
    index: int,
    priority: int,
    options: TaskOptions,
) -> Task:
    """A task as the message's columns describe it, in the indexes but not linked yet."""
    code = _code_of(client, message, index)
    code.nusers += 1
    prefixes = message.prefixes
    indices = message.prefix_indices
    return core.state.new_task(
        message.keys[index],
        code,
        message.arguments[index],
        prefixes[indices[index] if indices else 0],
        priority,
        options,
    )


def _code_of(client: Client, message: SubmitTasks, index: int) -> Code:
    codes = message.codes
    return client.codes[codes[index] if len(codes) > 1 else codes[0]]


def _link(
    core: Core,
    client: Client,
    message: SubmitTasks,
    tasks: list[Task],
    task: Task,
    numbers: list[ClientTaskId],
) -> None:
    """Link a new task to its dependencies; it fails if one of them is not known any more."""
    dependencies: list[Task] = []
    for number in numbers:
        offset = number - message.first
        if offset >= 0:
            dependencies.append(tasks[offset])
            continue
        dependency = client.tasks.get(number) or client.held.get(number)
        if dependency is None:
            core.state.incomplete[task] = None
            unknown = UnknownDependency(to_text(task.key))
            fail(core, task, to_failure(unknown, task.key, ""))
            return
        dependencies.append(dependency)
    link_dependencies(task, tuple(dependencies))


HANDLERS = Handlers(
    from_client={
        DefineClientCode: on_define_client_code,
        ForgetClientCode: on_forget_client_code,
        SubmitTasks: on_submit_tasks,
        WantKey: on_want_key,
        ReleaseTasks: on_release_tasks,
        CancelTasks: on_cancel_tasks,
        ClientHeartbeat: on_client_heartbeat,
    },
    client_gone=drop_client,
)
