"""Topics as clients and workers use them, and what the scheduler itself tells of who is there.

What workers and clients are called are topics as well; they are kept for a while after those have
gone.
"""

from collections.abc import Iterator

from shoal.protocol.answers import answer
from shoal.protocol.logs import ForwardLogs, ForwardLogsOf
from shoal.protocol.topics import (
    GetEvents,
    SubscribeTopics,
    TellTopics,
    TellTopicsOfWorker,
    UnsubscribeTopics,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.telling import ALL, OURS, report, tell_topics, topic_named
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.model.topics import Forwarding


def on_tell_topics(core: Core, client: Client, call: TellTopics) -> None:
    """A client tells something."""
    tell_topics(core, call.topics, call.value)
    core.to_client(client, answer(call.request, None))


def on_tell_topics_of_worker(core: Core, worker: Worker, message: TellTopicsOfWorker) -> None:
    """A worker tells something."""
    tell_topics(core, message.topics, message.value)


def on_get_events(core: Core, client: Client, call: GetEvents) -> None:
    """What was told under one topic, or under each.  Cost: O(events)."""
    forget_departed(core)
    topics = core.state.topics
    if call.topic is None:
        asked = {name: topic for name, topic in topics.items() if topic.events}
    else:
        asked = {call.topic: topics[call.topic]} if call.topic in topics else {}
    events = {name: [tuple(event) for event in topic.events] for name, topic in asked.items()}
    core.to_client(client, answer(call.request, events))


def on_subscribe_topics(core: Core, client: Client, message: SubscribeTopics) -> None:
    """Send on to `client` what is told from now on."""
    for name in message.topics:
        topic_named(core, name).subscribers[client] = None
        client.topics[name] = None


def on_unsubscribe_topics(core: Core, client: Client, message: UnsubscribeTopics) -> None:
    """Send on no more."""
    for name in message.topics:
        _unsubscribe(core, client, name)


def on_forward_logs(core: Core, client: Client, call: ForwardLogs) -> None:
    """Have every worker tell the records of a logger, at the lowest level that anybody wants."""
    before = _level_of(core, call.topic, call.logger)
    wish = Forwarding(client, call.topic, call.logger)
    if call.level is None:
        core.state.forwarding.pop(wish, None)
    else:
        core.state.forwarding[wish] = call.level
    _tell_workers(core, call.topic, call.logger, before)
    core.to_client(client, answer(call.request, None))


def greet_worker(core: Core, worker: Worker) -> None:
    """A worker has joined: that is told, and so is the worker what is wanted of its logs."""
    report(core, (ALL,), "add-worker", worker=worker.address)
    report(core, (worker.address,), "add-worker")
    core.state.departed.pop(worker.address, None)
    told: dict[tuple[str, str], None] = {}
    for wish in core.state.forwarding:
        told[wish.topic, wish.logger] = None
    for topic, logger in told:
        level = _level_of(core, topic, logger)
        core.to_worker(worker, ForwardLogsOf(topic, logger, level))


def forget_worker(core: Core, worker: Worker) -> None:
    """What was told of a worker is kept for a while after it has gone."""
    _depart(core, worker.address)


def greet_client(core: Core, client: Client) -> None:
    """A client has joined."""
    report(core, (ALL, client.name), "add-client", client=client.name)
    core.state.departed.pop(client.name, None)


def forget_client(core: Core, client: Client) -> None:
    """A client has gone, and hears no more."""
    for name in list(client.topics):
        _unsubscribe(core, client, name)
    for wish in [wish for wish in core.state.forwarding if wish.client is client]:
        before = _level_of(core, wish.topic, wish.logger)
        del core.state.forwarding[wish]
        _tell_workers(core, wish.topic, wish.logger, before)
    report(core, (ALL, client.name), "remove-client", client=client.name)
    _depart(core, client.name)


def forget_departed(core: Core) -> None:
    """Forget the topics of those that left long ago, or before many others."""
    state, settings = core.state, core.settings
    until = core.now - settings.departed_topic_seconds
    while state.departed:
        name, left_at = next(iter(state.departed.items()))
        if left_at > until and len(state.departed) <= settings.departed_topics_max:
            return
        del state.departed[name]
        topic = state.topics.get(name)
        if topic is not None and not topic.subscribers:
            del state.topics[name]


def subscribers_are_there(state: SchedulerState) -> Iterator[str]:
    """Whoever is to hear of a topic is connected, and knows it."""
    for name, topic in state.topics.items():
        for client in topic.subscribers:
            if state.clients.get(client.id) is not client or name not in client.topics:
                yield f"the topic {name!r} is for {client}, which has gone or does not know"
        if topic.nbytes < 0 or (not topic.events and topic.nbytes):
            yield f"the topic {name!r} has {topic.nbytes} B in {len(topic.events)} events"
    for client in state.clients.values():
        for name in client.topics:
            if name not in state.topics or client not in state.topics[name].subscribers:
                yield f"{client} has subscribed to {name!r}, which does not know"
    for wish in state.forwarding:
        if state.clients.get(wish.client.id) is not wish.client:
            yield f"logs of {wish.logger!r} are wanted by {wish.client}, which has gone"


def _unsubscribe(core: Core, client: Client, name: str) -> None:
    client.topics.pop(name, None)
    topic = core.state.topics.get(name)
    if topic is not None:
        topic.subscribers.pop(client, None)
        if not topic.events and not topic.subscribers:
            del core.state.topics[name]


def _depart(core: Core, name: str) -> None:
    if name in core.state.topics and name not in OURS:
        core.state.departed.pop(name, None)
        core.state.departed[name] = core.now
    forget_departed(core)


def _level_of(core: Core, topic: str, logger: str) -> int | None:
    """The lowest level at which anybody wants the records; None: nobody does."""
    levels = [
        level
        for wish, level in core.state.forwarding.items()
        if wish.topic == topic and wish.logger == logger
    ]
    return min(levels, default=None)


def _tell_workers(core: Core, topic: str, logger: str, before: int | None) -> None:
    level = _level_of(core, topic, logger)
    if level != before:
        for worker in core.state.workers.values():
            core.to_worker(worker, ForwardLogsOf(topic, logger, level))


HANDLERS = Handlers(
    from_client={
        TellTopics: on_tell_topics,
        GetEvents: on_get_events,
        SubscribeTopics: on_subscribe_topics,
        UnsubscribeTopics: on_unsubscribe_topics,
        ForwardLogs: on_forward_logs,
    },
    from_worker={TellTopicsOfWorker: on_tell_topics_of_worker},
    worker_joined=greet_worker,
    worker_gone=forget_worker,
    client_joined=greet_client,
    client_gone=forget_client,
    invariant=subscribers_are_there,
)
