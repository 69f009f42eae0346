"""Actors: tasks whose results live on one worker, and go with it.

An actor is placed where fewest are, and its result is known here by its proxy, which is small.  It
is never copied, moved, or made a second time: once it is gone, what depends on it fails.
"""

from collections.abc import Iterator

from shoal.errors import ActorLost, NoSuchActor
from shoal.protocol.actors import ActorsLost, ExplainActor
from shoal.protocol.answers import Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.waiting import fail, wait_again
from shoal.scheduler.model.entities import (
    ERRED,
    MEMORY,
    NEEDS_INPUTS,
    NO_RUN,
    NO_WORKER,
    PROCESSING,
    QUEUED,
    RELEASED,
    WAITING,
    Client,
    Task,
    Worker,
)
from shoal.scheduler.model.state import SchedulerState

EXPLAIN_SECONDS_MAX = 5.0
"""Whoever asks what became of an actor's worker is told by then that nothing is known."""


def lose_actor(core: Core, task: Task, worker: Worker, why: str) -> None:
    """The worker, or what it knew of the actor, is gone: whoever needs the actor fails.

    Runs that were given the actor fail with it, as it can't answer them.  `why`: a clause.
    """
    if task.state != MEMORY:
        return
    task.value = None
    core.move(task, RELEASED)
    for dependent in list(task.dependents or ()):
        if dependent.state == WAITING:
            dependent.nwaiting += 1
        elif dependent.state in (NO_WORKER, QUEUED):
            wait_again(core, dependent)
        elif dependent.state == PROCESSING:
            unplace(core, dependent, recall=dependent.run != NO_RUN)
            wait_again(core, dependent)
    failure = to_failure(
        ActorLost(to_text(task.key), worker.address, why), task.key, worker.address
    )
    if task.is_needed:
        fail(core, task, failure)
    else:
        core.releasing.append(task)
    if core.state.explanations:
        for client, request in core.state.explanations.pop(task, ()):
            core.to_client(client, Refusal(request, failure))


def tell_of_lost_actors(core: Core, worker: Worker, why: str) -> None:
    """A worker that has actors is given up: whoever waits for one of them is told so.

    That may be anybody who got a proxy.  Cost: O(workers + clients).
    """
    message = ActorsLost(worker.address, why)
    for peer in core.state.workers.values():
        if peer is not worker:
            core.to_worker(peer, message)
    for client in core.state.clients.values():
        core.to_client(client, message)


def on_explain_actor(core: Core, client: Client, call: ExplainActor) -> None:
    """Say what became of an actor that did not answer: now, or as soon as it is noticed here."""
    task = core.state.tasks.get(call.key)
    if task is None:
        failure = to_failure(NoSuchActor(to_text(call.key), "any worker"), call.key)
        core.to_client(client, Refusal(call.request, failure))
        return
    if task.state == MEMORY:
        due_at = core.now + EXPLAIN_SECONDS_MAX
        core.state.explanations.setdefault(task, {})[client, call.request] = due_at
        core.wake_by(due_at)
    else:
        _explain(core, client, call.request, task)


def explain_due(core: Core) -> None:
    """What is not known by now is not waited for any more.

    Cost: O(actors that are asked after + questions that are due).
    """
    explanations = core.state.explanations
    for task, asked in list(explanations.items()):
        for (client, request), due_at in list(asked.items()):
            if due_at > core.now:
                core.wake_by(due_at)
                break  # all wait for as long, so the others came later
            del asked[client, request]
            _explain(core, client, request, task)
        if not asked:
            del explanations[task]


def _explain(core: Core, client: Client, request: int, task: Task) -> None:
    """What is known of the actor."""
    failure = task.failure if task.state == ERRED else None
    if task.state == MEMORY:
        core.to_client(client, answer(request, None))
        return
    if failure is None:
        failure = to_failure(NoSuchActor(to_text(task.key), "any worker"), task.key)
    core.to_client(client, Refusal(request, failure))


def drop_questions(core: Core, client: Client) -> None:
    """The client has gone, and wants to know nothing.  Cost: O(questions)."""
    explanations = core.state.explanations
    for task, asked in list(explanations.items()):
        for question in [question for question in asked if question[0] is client]:
            del asked[question]
        if not asked:
            del explanations[task]


def actors_live_once(state: SchedulerState) -> Iterator[str]:
    """An actor is with one worker, which knows of it, from its placement to its end."""
    for task in state.tasks.values():
        if task.options.actor and task.state == MEMORY:
            holders = task.who_has or []
            if len(holders) != 1 or task not in holders[0].actors:
                yield f"the actor {task!r} is with {holders}, not with one worker"
            if task.value is None:
                yield f"the proxy of the actor {task!r} is not known"
        elif task.options.actor and task.state in NEEDS_INPUTS and task.nbytes >= 0:
            yield f"the actor {task!r} has lived, and is to be made again"
    for worker in state.workers.values():
        for task in worker.actors:
            is_placed = task.state == PROCESSING and task.worker is worker
            if not is_placed and task not in worker.has_what:
                yield f"{worker} is to have the actor {task!r}, and does not"


HANDLERS = Handlers(
    from_client={ExplainActor: on_explain_actor},
    client_gone=drop_questions,
    woken=explain_due,
    invariant=actors_live_once,
)
