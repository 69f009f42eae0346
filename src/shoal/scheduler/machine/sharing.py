"""Where the tasks of a message come in the order: after what its client has submitted, and beside
what others have.

For one client alone that is the order of submission, and nothing is counted.  Once a second one
submits, each urgency has an order of its own, in which the clients take turns.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from shoal.ids import TaskId
from shoal.protocol.messages import SubmitTasks, TaskOptions
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import (
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Client,
    Task,
)
from shoal.scheduler.model.shares import (
    SEQUENCE_BITS,
    SEQUENCE_MASK,
    STEP,
    Level,
    Standing,
    evenly_spaced,
)
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.sharing import SAMPLE_TASKS, cost, units_seen, weight_of

LEVELS_MAX = 256
"""Urgencies with an order of their own; beyond those, what comes goes after all that came."""

PLACED_LOOKED_AT = 20_000
"""Placed tasks that are looked at, on all workers, to find out where an order stands."""

NESTING_MAX = 100
"""Tasks within tasks that are followed to the client that began it all."""

TO_COME = frozenset({RELEASED, WAITING, QUEUED, NO_WORKER})
"""States of tasks that were not sent; beside those that are placed, and not sent."""


def places_of(core: Core, client: Client, message: SubmitTasks, bases: Sequence[int]) -> list[int]:
    """The tag of each task of the message, to be added to the priority of its options.

    Args:
        bases: priorities of the message's options, without places.

    Cost: O(1) for a client that is alone, else O(tasks).
    """
    state, shares = core.state, core.state.shares
    owner = _owner(state, client, message.options)
    if owner not in shares.flows:
        _take_part(core, owner)
    if shares.is_shared:
        return _meshed(core, client, owner, message, bases)
    ntasks = len(message.keys)
    if message.graph is None:
        first = state.next_sequence
        state.next_sequence = first + ntasks * STEP
        return evenly_spaced(first, ntasks)
    cursors = client.sequences.setdefault(message.graph, {})
    if cursors:
        first = max(cursors.values())
        cursors.clear()
    else:
        first = state.next_sequence
        state.next_sequence += (ntasks + message.ntasks_ahead) * STEP
    cursors[None] = first + ntasks * STEP
    state.next_sequence = max(state.next_sequence, cursors[None])
    if message.ntasks_ahead == 0:
        del client.sequences[message.graph]
    return evenly_spaced(first, ntasks)


def note_sent(core: Core, task: Task, expected_us: int) -> None:
    """While several clients submit: the order has got to this task."""
    level = core.state.shares.levels.get(task.priority >> SEQUENCE_BITS)
    if level is not None:
        level.serve(task.priority & SEQUENCE_MASK, expected_us)


def drop_flow(core: Core, client: Client) -> None:
    """The client has gone; whoever is left alone needs no levels."""
    shares = core.state.shares
    if shares.flows.pop(client, None) is None:
        return
    for level in shares.levels.values():
        level.standings.pop(client, None)
    if not shares.is_shared:
        shares.levels.clear()
    if shares.before is not None and (shares.before[0] is client or not shares.is_shared):
        shares.before = None


def _owner(state: SchedulerState, client: Client, options: TaskOptions | None) -> Client:
    """Who is to wait longer for these tasks: what tasks submit is at their client's expense."""
    if options is None or not options.inside or client not in state.serving:
        return client
    inside = options.inside
    for _ in range(NESTING_MAX):
        task = state.tasks.get(inside)
        if task is None or not task.wants:
            break
        owner = task.wants[0][0]
        if owner not in state.serving:
            return owner if state.clients.get(owner.id) is owner else client
        inside = task.options.inside
        if not inside:
            break
    return client


def _take_part(core: Core, owner: Client) -> None:
    """A client submits for the first time."""
    shares = core.state.shares
    if len(shares.flows) == 1:
        first = next(iter(shares.flows))
        newest = TaskId(core.state.next_task_id - 1)  # that anybody has submitted: it was alone
        shares.before = first, Standing(0, core.state.next_sequence, newest)
    shares.flows[owner] = weight_of(owner.name, owner.share, core.settings.shares)


def _meshed(
    core: Core, client: Client, owner: Client, message: SubmitTasks, bases: Sequence[int]
) -> list[int]:
    """Tags among those of other clients."""
    state, known = core.state, core.state.tasks
    weight = state.shares.flows[owner]
    numbers = [base >> SEQUENCE_BITS for base in bases]
    names, indices, chosen = message.prefixes, message.prefix_indices, message.option_indices
    before = client.sequences.get(message.graph, {}) if message.graph is not None else {}
    cursors: dict[int | None, int] = {}
    costs: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    starts: dict[int, int] = {}
    places: list[int] = []
    for index, key in enumerate(message.keys):
        number = numbers[chosen[index] if chosen else 0]
        place = cursors.get(number)
        if place is None:
            place = cursors[number] = starts[number] = _start(core, owner, number, before)
        places.append(place)
        if key in known:
            continue
        which = number, indices[index] if indices else 0
        units = costs.get(which)
        if units is None:
            level = state.shares.levels.get(number)
            prefix = state.prefixes.get(names[which[1]])
            units = costs[which] = STEP if level is None else cost(prefix, level, weight)
        cursors[number] = place + units
        counts[number] = counts.get(number, 0) + 1
    newest = TaskId(state.next_task_id + sum(counts.values()) - 1)
    for number, count in counts.items():
        end = cursors[number]
        if message.ntasks_ahead and not before:
            end += message.ntasks_ahead * max(1, (end - starts[number]) // count)
        _stand(state, owner, number, starts[number], end, newest)
    if message.graph is not None:
        if message.ntasks_ahead:
            client.sequences[message.graph] = {**before, **cursors}
        else:
            client.sequences.pop(message.graph, None)
    return places


def _start(core: Core, owner: Client, number: int, before: dict[int | None, int]) -> int:
    """The first tag of these tasks: after those of their client, and of their graph, and not
    before what the order has got to."""
    state = core.state
    level = _level(core, number)
    if level is None:  # there are too many urgencies: after all others
        return max(before.get(number, 0), state.next_sequence)
    if before:
        place = before.get(number, before.get(None))
        if place is not None:
            return max(place, level.reached)
    standing = level.standings.get(owner)
    if standing is not None and _is_to_come(state, standing.newest):
        return max(standing.next_tag, level.reached)
    return level.reached


def _stand(
    state: SchedulerState, owner: Client, number: int, start: int, end: int, newest: TaskId
) -> None:
    """The client has got so far."""
    state.next_sequence = max(state.next_sequence, end)
    level = state.shares.levels.get(number)
    if level is None:
        return
    standing = level.standings.get(owner)
    if standing is None or not _is_to_come(state, standing.newest):
        level.standings[owner] = Standing(start, end, newest)
    else:
        standing.next_tag, standing.newest = max(standing.next_tag, end), newest


def _is_to_come(state: SchedulerState, number: TaskId) -> bool:
    """Whether a task was not sent yet."""
    task = state.task_by_id.get(number)
    if task is None:
        return False
    return task.state in TO_COME or (task.state == PROCESSING and task.run == NO_RUN)


def _level(core: Core, number: int) -> Level | None:
    """The order of one urgency; None: there are too many.

    Cost: O(1), but for a new one some milliseconds, whatever is placed or queued.
    """
    state, shares = core.state, core.state.shares
    level = shares.levels.get(number)
    if level is not None:
        if level.nserved >= SAMPLE_TASKS:
            level.look_again(units_seen(level, shares.flows))
        return level
    if len(shares.levels) >= LEVELS_MAX and not _let_one_go(state):
        return None
    level = shares.levels[number] = _found_level(core, number)
    if shares.before is not None:
        first, standing = shares.before
        level.standings[first] = Standing(0, standing.next_tag, standing.newest)
    return level


def _let_one_go(state: SchedulerState) -> bool:
    """Forget the level that is the longest known, if nobody has tasks to come there."""
    levels = state.shares.levels
    number, level = next(iter(levels.items()))
    del levels[number]
    if any(_is_to_come(state, standing.newest) for standing in level.standings.values()):
        levels[number] = level
        return False
    return True


def _found_level(core: Core, number: int) -> Level:
    """Where the order of one urgency stands, which nobody has watched so far."""
    state = core.state
    newest, reached = NO_RUN, -1
    waiting = list(_queued_heads(state, number))
    durations: list[int] = []
    looked_at = max(16, PLACED_LOOKED_AT // max(1, len(state.workers)))
    for worker in state.workers.values():
        for task in islice(worker.processing, looked_at):
            if task.run != NO_RUN:
                durations.append(core.queuing.expected_us(task))
            if task.priority >> SEQUENCE_BITS != number:
                continue
            if task.run == NO_RUN:
                waiting.append(task.priority & SEQUENCE_MASK)
            elif task.run > newest:
                newest, reached = task.run, task.priority & SEQUENCE_MASK
    if reached < 0:
        reached = min(waiting, default=core.state.next_sequence)
    typical_us = sum(durations) / len(durations) if durations else core.queuing.unknown_us
    return Level(reached, typical_us)


def _queued_heads(state: SchedulerState, number: int) -> Iterator[int]:
    """The first tag of this urgency in each run of the queue.

    Runs rise, so it is looked for by halves.
    """
    for _, _, run in state.queue.runs:
        low, high = 0, len(run)
        while low < high:
            middle = (low + high) // 2
            if run[middle].priority >> SEQUENCE_BITS < number:
                low = middle + 1
            else:
                high = middle
        if low < len(run) and run[low].priority >> SEQUENCE_BITS == number:
            yield run[low].priority & SEQUENCE_MASK


def shares_are_of_who_is_there(state: SchedulerState) -> Iterator[str]:
    """Who takes turns is connected, and while it is one, nothing is counted."""
    shares = state.shares
    for client in shares.flows:
        if state.clients.get(client.id) is not client:
            yield f"{client} takes turns, and has gone"
    if shares.levels and not shares.is_shared:
        yield f"{len(shares.levels)} urgencies are shared by {len(shares.flows)} clients"
    for number, level in shares.levels.items():
        for client, standing in level.standings.items():
            if client not in shares.flows:
                yield f"{client} stands at urgency {number}, and takes no turns"
            if standing.next_tag > state.next_sequence:
                yield f"{client} has places beyond all that were given"


HANDLERS = Handlers(client_gone=drop_flow, invariant=shares_are_of_who_is_there)
