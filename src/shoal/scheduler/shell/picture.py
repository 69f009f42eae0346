"""All that a scheduler knows, for a dump: in plain types, each task and record encoded.

Hundreds of thousands of mappings would hold up the loop when they go, all at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Set
from typing import Any, Final

import msgspec

from shoal.observe.clock import seconds_ahead
from shoal.observe.dumps import plain
from shoal.observe.extensions import of_shuffle
from shoal.observe.facts import facts_of_identity
from shoal.observe.stimuli import stimulus_of
from shoal.protocol.keys import to_text
from shoal.protocol.plain import load_plain
from shoal.scheduler.machine.story import Story
from shoal.scheduler.model.entities import Client, Prefix, Task
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.model.topics import Event
from shoal.scheduler.shell.host import Host
from shoal.scheduler.shell.slices import in_slices

_encoder: Final = msgspec.msgpack.Encoder()

_NTASKS: Final = 300
"""So many are described at once, in a few ms."""

_NEVENTS: Final = 200
"""Likewise of events, which may have large values."""

_NRECORDS: Final = 2_000
"""Likewise of the story, and of keys."""


async def picture_of(host: Host, exclude: Set[str] = frozenset()) -> dict[str, Any]:
    """What a scheduler knows.

    It goes on with its work meanwhile, so that of many tasks the last are seen later than the
    first; each by itself is as it was at one moment.

    Args:
        exclude: names of fields that are left out, at the top and of each task.

    Cost: O(tasks + edges + records of the story), about 10 us for each task.
    """
    machine = host.machine
    state = machine.state
    picture = {
        **facts_of_identity(host.describe()),
        "status": "running",
        "thread_id": threading.get_ident(),
        "transition_log": [] if "transition_log" in exclude else await _log(machine.story),
        "transition_counter": len(machine.story),
        "tasks": {} if "tasks" in exclude else await _tasks(state, exclude),
        "task_groups": {prefix.name: _prefix(prefix) for prefix in state.prefixes.values()},
        "clients": {client.name: await _client(client) for client in list(state.clients.values())},
        "memory": {address: worker.nbytes for address, worker in state.workers.items()},
        "events": {name: await _events(topic.events) for name, topic in list(state.topics.items())},
        "extensions": {
            "locks": sorted(state.locks),
            "shuffle": {id: of_shuffle(shuffle) for id, shuffle in list(state.shuffles.items())},
        },
    }
    return {name: value for name, value in picture.items() if name not in exclude}


async def _log(story: Story) -> list[msgspec.Raw]:
    ahead = seconds_ahead()
    shown: list[msgspec.Raw] = []
    async for records in in_slices(story, _NRECORDS):
        shown += (
            _encoded([to_text(key), start, finish, {}, stimulus_of(cause, step), at + ahead])
            for at, key, start, finish, cause, step, _ in records
        )
    return shown


async def _events(events: Iterable[Event]) -> list[list[Any]]:
    shown: list[list[Any]] = []
    async for some in in_slices(events, _NEVENTS):
        shown += ([event.at, plain(load_plain(event.value))] for event in some)
    return shown


async def _tasks(state: SchedulerState, exclude: Set[str]) -> dict[str, msgspec.Raw]:
    shown: dict[str, msgspec.Raw] = {}
    async for tasks in in_slices(state.tasks.values(), _NTASKS):
        for task in tasks:
            if state.tasks.get(task.key) is task:  # else it has been forgotten meanwhile
                shown[to_text(task.key)] = _encoded(_task(task, exclude))
    return shown


def _encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(value))


def _task(task: Task, exclude: Set[str]) -> dict[str, Any]:
    failure, options = task.failure, task.options
    shown = {
        "key": to_text(task.key),
        "state": task.state,
        "prefix": task.prefix.name,
        "group": task.prefix.name,
        "priority": task.priority,
        "dependencies": [to_text(other.key) for other in task.dependencies],
        "dependents": [to_text(other.key) for other in task.dependents or ()],
        "who_has": [worker.address for worker in task.who_has or ()],
        "who_wants": list(dict.fromkeys(client.name for client, _ in task.wants)),
        "processing_on": None if task.worker is None else task.worker.address,
        "run_id": task.run,
        "nbytes": task.nbytes,
        "type": task.kind or None,
        "retries": task.retries,
        "suspicious": task.blame,
        "actor": options.actor,
        "annotations": {},
        "worker_restrictions": list(options.workers) or None,
        "loose_restrictions": options.allow_other_workers,
        "resource_restrictions": dict(options.resources) or None,
        "exception_text": None if failure is None else failure.text,
        "traceback_text": None if failure is None else failure.traceback_text,
        "exception_blame": None if failure is None else to_text(failure.origin),
        "erred_on": [failure.worker] if failure is not None and failure.worker else None,
        "run_spec": None if task.code is None else f"code {task.code.id}",
    }
    return {name: value for name, value in shown.items() if name not in exclude}


def _prefix(prefix: Prefix) -> dict[str, Any]:
    return {
        "name": prefix.name,
        "states": dict(prefix.ntasks),
        "nfinished": prefix.nfinished,
        "nfailed": prefix.nfailed,
        "duration_us": prefix.duration_us,
    }


async def _client(client: Client) -> dict[str, Any]:
    wanted: list[str] = []
    async for tasks in in_slices(client.tasks.values(), _NRECORDS):
        wanted += (to_text(task.key) for task in tasks)
    return {"client_key": client.name, "wants_what": wanted}
