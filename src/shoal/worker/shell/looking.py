"""What a worker tells of itself when somebody looks: stacks, story, versions, all that it knows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import dask.config

from shoal.comms.exchange import ReplicaExchange
from shoal.observe.clock import seconds_ahead
from shoal.observe.dumps import plain
from shoal.observe.stimuli import stimulus_of_run
from shoal.observe.versions import get_versions
from shoal.protocol import looking
from shoal.protocol.keys import to_text
from shoal.protocol.looking import WorkerRecord
from shoal.protocol.messages import Message
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import HANDED, LONG_RUNNING, Run
from shoal.worker.shell import speeds
from shoal.worker.shell.context import Host
from shoal.worker.shell.threads import RunThreads

_SECTIONS: Final = ("distributed", "shoal")
"""Of the configuration; what else users keep there is nobody's business."""


class Insides(Protocol):
    """What does a worker's work."""

    machine: WorkerMachine
    threads: RunThreads
    exchange: ReplicaExchange


class Looked(Host, Protocol):
    """A worker, as it is looked at."""

    @property
    def feed(self) -> Insides:
        """What does its work."""

    @property
    def status(self) -> Any:
        """As `Status` has it."""

    @property
    def memory_limit(self) -> int:
        """Bytes; 0: none."""

    @property
    def scheduler_address(self) -> str:
        """Where its scheduler is."""


async def on_call_stacks_here(worker: Looked, call: looking.CallStacksHere) -> dict[str, Any]:
    """Where the tasks are that run now."""
    stacks = worker.feed.threads.stacks()
    wanted = None if call.keys is None else frozenset(call.keys)
    return {key: told for key, told in stacks.items() if wanted is None or key in wanted}


async def on_story_here(worker: Looked, call: looking.StoryHere) -> list[WorkerRecord]:
    """What was recorded of these."""
    keys, runs = frozenset(call.keys), frozenset(call.runs)
    return [record for record in _story(worker) if record.key in keys or record.run in runs]


async def on_installed_here(
    worker: Looked, call: looking.InstalledHere
) -> dict[str, dict[str, Any]]:
    """What is installed."""
    return await asyncio.to_thread(get_versions, call.packages)


async def on_state_here(worker: Looked, call: looking.StateHere) -> dict[str, Any]:
    """All that the worker knows.  Cost: O(tasks + records of the story)."""
    feed = worker.feed
    state = feed.machine.state
    long_running = [to_text(run.key) for run in state.runs.values() if run.state == LONG_RUNNING]
    executing = [to_text(run.key) for run in feed.threads.executing() if run.state != LONG_RUNNING]
    picture = {
        "type": "Worker",
        "id": str(worker.name),
        "scheduler": worker.scheduler_address,
        "address": worker.address,
        "status": worker.status.value,
        "nthreads": worker.nthreads,
        "memory_limit": worker.memory_limit,
        "thread_id": threading.get_ident(),
        "config": {name: plain(dask.config.config.get(name, {})) for name in _SECTIONS},
        "logs": [list(line) for line in worker.recent_logs.latest()],
        "executing": executing,
        "long_running": long_running,
        "ready": [
            to_text(run.key)
            for run in state.runs.values()
            if run.state == HANDED or run.is_held_back
        ],
        "data": {to_text(held.key): held.nbytes for held in state.held.values()},
        "data_needed": {to_text(want.key): list(want.holders) for want in state.wants.values()},
        "in_flight_tasks": [to_text(w.key) for w in state.wants.values() if w.in_flight],
        "in_flight_workers": {peer: other.nrequests for peer, other in state.peers.items()},
        "log": [
            [to_text(record.key), record.what, {}, stimulus_of_run(record.run), record.at]
            for record in _story(worker)
        ],
        "tasks": _tasks(feed, frozenset(executing), frozenset(call.exclude)),
    }
    return {name: value for name, value in picture.items() if name not in call.exclude}


def _story(worker: Looked) -> list[WorkerRecord]:
    feed = worker.feed
    ahead = seconds_ahead()
    story = list(feed.machine.state.story)
    return [WorkerRecord(at + ahead, key, what, run) for at, key, what, run in story]


def _tasks(
    feed: Insides, executing: frozenset[str], exclude: frozenset[str]
) -> dict[str, dict[str, Any]]:
    state = feed.machine.state
    shown: dict[str, dict[str, Any]] = {}
    for held in state.held.values():
        if not held.freed:
            shown[to_text(held.key)] = {
                "state": "memory",
                "nbytes": held.nbytes,
                "npins": held.npins,
            }
    for want in state.wants.values():
        name = "flight" if want.in_flight else "fetch"
        shown[to_text(want.key)] = {"state": name, "nbytes": want.nbytes}
    for run in state.runs.values():
        shown[to_text(run.key)] = {"state": _name(run, executing), "run_id": run.number}
    return {
        key: {name: fact for name, fact in {"key": key, **facts}.items() if name not in exclude}
        for key, facts in shown.items()
    }


def _name(run: Run, executing: frozenset[str]) -> str:
    if run.state == LONG_RUNNING:
        return LONG_RUNNING
    if to_text(run.key) in executing:
        return "executing"
    return "ready" if run.state == HANDED or run.is_held_back else "waiting"


async def on_speeds_here(worker: Looked, call: looking.SpeedsHere) -> dict[str, dict[str, float]]:
    """How fast the disk and the memory are, or the way to a peer."""
    if call.peer:
        return {"network": await speeds.of_network(worker.feed.exchange, call.peer)}
    disk = await asyncio.to_thread(speeds.of_disk, worker.local_directory)
    return {"disk": disk, "memory": await asyncio.to_thread(speeds.of_memory)}


OPERATIONS: Final[dict[type[Message], Callable[[Any, Any], Awaitable[object]]]] = {
    looking.CallStacksHere: on_call_stacks_here,
    looking.StoryHere: on_story_here,
    looking.InstalledHere: on_installed_here,
    looking.StateHere: on_state_here,
    looking.SpeedsHere: on_speeds_here,
}
"""Call → what answers it."""
