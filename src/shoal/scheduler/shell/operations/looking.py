"""Looks at the whole cluster: what workers say of themselves, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import msgspec

from shoal.observe.clock import seconds_ahead
from shoal.observe.versions import get_versions
from shoal.protocol import looking
from shoal.protocol.answers import answer
from shoal.protocol.messages import Failure, Message
from shoal.protocol.payload import load
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.shell.host import Host, Operations
from shoal.scheduler.shell.operations.asking import all_answered, ask, ask_all, those_that_answered
from shoal.scheduler.shell.slices import in_slices

_NKEYS: Final = 5_000
"""So many sizes are added up at once, in a few ms."""


async def on_sizes_of_results(host: Host, call: looking.SizesOfResults) -> Message:
    """Bytes of results in memory, by key or by prefix.  Cost: O(tasks) if no keys are named."""
    tasks = host.machine.state.tasks
    sizes: dict[str, int] = {}
    async for keys in in_slices(tasks if call.keys is None else dict.fromkeys(call.keys), _NKEYS):
        for key in keys:
            task = tasks.get(key)
            if task is not None and task.nbytes >= 0:
                name = task.prefix.name if call.by_prefix else key
                sizes[name] = sizes.get(name, 0) + task.nbytes
    return answer(call.request, sizes)


async def on_call_stacks(host: Host, call: looking.CallStacks) -> Message:
    """Where the tasks are that run now; of workers that run none of these, nothing."""
    state = host.machine.state
    workers: Iterable[Worker] = state.workers.values()
    if call.keys is not None:
        tasks = [task for key in call.keys if (task := state.tasks.get(key)) is not None]
        workers = dict.fromkeys(task.worker for task in tasks if task.worker is not None)
    found = await ask_all(host, workers, lambda n: looking.CallStacksHere(n, call.keys))
    stacks = those_that_answered(found)
    return answer(call.request, {address: said for address, said in stacks.items() if said})


async def on_whole_story(host: Host, call: looking.WholeStory) -> Message:
    """What was recorded, here and on the workers."""
    ahead = seconds_ahead()
    steps = frozenset(call.causes)
    keys = frozenset(call.keys)
    mine = [
        msgspec.structs.replace(record, at=record.at + ahead)
        for record in host.machine.story.where(keys, steps)
    ]
    state = host.machine.state
    found = await ask_all(
        host, state.workers.values(), lambda n: looking.StoryHere(n, call.keys, call.runs)
    )
    told = those_that_answered(found) if call.skips_unreachable else all_answered(found)
    return answer(call.request, looking.Told(mine, told))


async def on_installed_versions(host: Host, call: looking.InstalledVersions) -> Message:
    """What is installed here and on the workers."""
    found = await ask_all(
        host,
        host.machine.state.workers.values(),
        lambda n: looking.InstalledHere(n, call.packages),
    )
    here = await asyncio.to_thread(get_versions, call.packages)
    return answer(call.request, looking.Installed(here, those_that_answered(found)))


async def on_cluster_state(host: Host, call: looking.ClusterState) -> Message:
    """All that is known, written to a url or in the answer.  Cost: O(all that is known)."""
    from shoal.observe import dumps  # only here, as it is rare

    picture = await whole_picture(host, call.exclude)
    if call.url:
        options: Any = load(call.options) if call.options else {}
        await asyncio.to_thread(dumps.write, picture, call.url, call.format, options)
        return answer(call.request, b"")
    return answer(call.request, await asyncio.to_thread(dumps.packed, picture, call.format))


async def whole_picture(host: Host, exclude: Iterable[str] = ()) -> dict[str, Any]:
    """What the scheduler and its workers know; of a worker that failed to tell, how.

    Its larger parts are encoded, as a dump has them: `dumps.in_plain_types` decodes these.
    """
    from shoal.scheduler.shell.picture import picture_of  # only here, as it is rare

    left_out = list(exclude)
    workers = list(host.machine.state.workers.values())
    states, installed, here = await asyncio.gather(
        ask_all(host, workers, lambda n: looking.StateHere(n, left_out)),
        ask_all(host, workers, looking.InstalledHere),
        asyncio.to_thread(get_versions),
    )
    return {
        "scheduler": await picture_of(host, frozenset(left_out)),
        "workers": {address: _or_text(said) for address, said in states.items()},
        "versions": {"scheduler": here, "workers": those_that_answered(installed)},
    }


def _or_text(said: Any) -> Any:
    return said.text if isinstance(said, Failure) else said


async def on_hardware_speeds(host: Host, call: looking.HardwareSpeeds) -> Message:
    """Disks and memory of all workers at once, then the network, one pair after the other."""
    workers = list(host.machine.state.workers.values())
    told = all_answered(await ask_all(host, workers, looking.SpeedsHere, _MEASURING_SECONDS_MAX))
    ways: dict[str, Any] = {}
    for index, worker in enumerate(workers):  # each way alone, or they would slow each other down
        peer = workers[(index + 1) % len(workers)]
        if peer is not worker:
            call_to_peer = partial(_way_to, peer.address)
            way = await ask(host, worker, call_to_peer, _MEASURING_SECONDS_MAX)
            ways[worker.address] = way
    speeds = _means([*told.values(), *all_answered(ways).values()])
    return answer(call.request, {what: speeds.get(what, {}) for what in MEASURED})


def _way_to(peer: str, request: int) -> looking.SpeedsHere:
    return looking.SpeedsHere(request, peer)


_MEASURING_SECONDS_MAX: Final = 120.0
"""A slow disk, or way, has one sample of each size."""

MEASURED: Final = ("disk", "memory", "network")


def _means(told: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """What several workers measured, averaged."""
    values: dict[str, dict[str, list[float]]] = {}
    for one in told:
        for what, by_size in one.items():
            for size, speed in by_size.items():
                values.setdefault(what, {}).setdefault(size, []).append(speed)
    return {
        what: {size: sum(speeds) / len(speeds) for size, speeds in by_size.items()}
        for what, by_size in values.items()
    }


OPERATIONS: Final[Operations] = {
    looking.SizesOfResults: on_sizes_of_results,
    looking.CallStacks: on_call_stacks,
    looking.WholeStory: on_whole_story,
    looking.InstalledVersions: on_installed_versions,
    looking.ClusterState: on_cluster_state,
    looking.HardwareSpeeds: on_hardware_speeds,
}
