"""What happened, told under topics: kept within limits, and said to whoever has subscribed."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from shoal.protocol.keys import from_canonical
from shoal.protocol.plain import dump_plain
from shoal.protocol.topics import TopicEvent
from shoal.scheduler.machine.core import Core
from shoal.scheduler.model.entities import Client, Task, Worker
from shoal.scheduler.model.topics import Event, Topic

ALL: Final = "all"
"""The topic of what concerns the whole cluster."""
SCHEDULER: Final = "scheduler"
"""The topic of graphs."""
STEALING: Final = "stealing"
"""The topic of runs that are taken back for idle workers."""
OURS: Final = (ALL, SCHEDULER, STEALING)
"""Topics that never go with a worker or client, should it be called like one."""

NAMES_MAX: Final = 500
"""Tasks that an event names of a kind, which takes 10 us for each."""
GRAPH_TASKS_MIN: Final = 100
"""Tasks that come at once, but not as a graph, are worth a word if they are so many."""


def report(core: Core, topics: Iterable[str], action: str, **facts: Any) -> None:
    """Tell under `topics` what the scheduler did or saw; facts are of builtin types.

    In their names `_` becomes `-`.  Cost: 3 us; never to be called for each task.
    """
    value = {"action": action, **{name.replace("_", "-"): fact for name, fact in facts.items()}}
    tell_topics(core, topics, dump_plain(value))


def tell_topics(core: Core, topics: Iterable[str], value: bytes) -> None:
    """Keep a pickled value under each of `topics`, and say it to their subscribers."""
    settings = core.settings
    event = Event(core.now + core.about.wall_ahead_seconds, value)
    for name in topics:
        topic = topic_named(core, name)
        topic.add(event, settings.topic_events_max, settings.topic_bytes_max)
        for client in topic.subscribers:
            core.to_client(client, TopicEvent(name, event.at, value))
        if core.told is not None:
            core.told.append((name, value))


def topic_named(core: Core, name: str) -> Topic:
    """The topic, made if it is new; if there are too many, the one longest silent goes."""
    topics = core.state.topics
    topic = topics.pop(name, None)
    if topic is None:
        topic = Topic()
        if len(topics) >= core.settings.topics_max:
            _forget_one(topics)
    topics[name] = topic  # last, as the latest that was used
    return topic


def _forget_one(topics: dict[str, Topic]) -> None:
    for name, topic in topics.items():
        if not topic.subscribers:
            del topics[name]
            return


def report_loss(core: Core, worker: Worker, *, expected: bool) -> None:
    """Tell that a worker has gone, before that has consequences.  Cost: O(what it held)."""
    only_here = [t for t in worker.has_what if t.value is None and t.who_has == [worker]]
    facts = {
        "processing_tasks": _names(worker.processing),
        "lost_computed_tasks": _names(task for task in only_here if task.code is not None),
        "lost_scattered_tasks": _names(task for task in only_here if task.code is None),
        "expected": expected or worker.is_leaving,
    }
    report(core, (ALL,), "remove-worker", worker=worker.address, **facts)
    report(core, (worker.address,), "remove-worker", **facts)


def report_quarantine(core: Core, worker: Worker, seconds: float) -> None:
    """Tell that a worker is given nothing for so long, as all fails there; 0: not any more."""
    word = "quarantine-worker" if seconds else "worker-out-of-quarantine"
    report(core, (ALL, worker.address), word, worker=worker.address, seconds=seconds)


def report_silence(core: Core, worker: Worker, *, is_suspect: bool) -> None:
    """Tell that a worker is suspect, as nothing was heard of it; or that it was heard again."""
    word = "suspect-worker" if is_suspect else "worker-heard-again"
    report(core, (ALL, worker.address), word, worker=worker.address, heard_at=worker.heard_at)


def report_retirement(core: Core, verdicts: Mapping[str, str]) -> None:
    """Tell which workers were let go of, and which could not be, and why."""
    retired = [address for address, why in verdicts.items() if not why]
    kept = {address: why for address, why in verdicts.items() if why}
    report(core, (ALL,), "retire-workers", retired=retired, could_not_retire=list(kept))
    report(core, retired, "retired")
    for address, why in kept.items():
        report(core, (address,), "could-not-retire", reason=why)


def report_graph(core: Core, client: Client, ntasks: int) -> None:
    """Tell that all of a graph has arrived."""
    now = core.now + core.about.wall_ahead_seconds
    report(
        core,
        (SCHEDULER, client.name),
        "update-graph",
        status="OK",
        client=client.name,
        metrics={"tasks": ntasks, "start_timestamp_seconds": now},
    )


def _names(tasks: Iterable[Task]) -> list[object]:
    """Users' keys of some of the tasks."""
    return [from_canonical(task.key) for task in islice(tasks, NAMES_MAX)]
