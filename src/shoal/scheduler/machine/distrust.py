"""Who lacks results, or is out of reach: whose copies of them count no more, and who is avoided.

A holder that nobody can ask may be slow, frozen, or behind a wall.  Shards that only it keeps would
hold up all outputs of a shuffle, so they are made again elsewhere as soon as two workers could not
reach it, or the only other one.
"""

from collections.abc import Sequence
from typing import Final

from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import lose_replica
from shoal.scheduler.model.entities import ERRED, RELEASED, Task, Worker

WITNESSES_MIN: Final = 2
"""Workers that can't reach a holder of shards, until it is taken to be out of reach of all."""

LINEAGE_MAX: Final = 64
"""Tasks before a transfer that keep away from a holder which is out of reach, too."""


def note_unreachable(core: Core, asker: Worker, addresses: Sequence[str]) -> list[Worker]:
    """`asker` could not reach these: it is believed for a while.  Returns those that are there."""
    peers = [peer for address in addresses if (peer := core.state.workers.get(address))]
    if peers:
        now = core.now
        until = now + core.settings.unreachable_seconds
        believed = {peer: at for peer, at in asker.cannot_reach.items() if at > now}
        asker.cannot_reach = believed | {peer.id: until for peer in peers}
    return peers


def distrust_holders(
    core: Core,
    task: Task,
    asker: Worker,
    missing: Sequence[Task],
    unreachable: Sequence[Worker],
    lacking: Sequence[Worker | None],
) -> None:
    """A run of `task` could not get `missing`: take from these the holders that lack them.

    Of those out of reach too, if that happened often, or if they keep shards and are out of reach
    of others as well.  All of them are told to drop it: one may have got a copy after the worker
    asked.  If it was told who lacks it, others may have it as well.

    Cost: O(missing + workers x unreachable).
    """
    gives_up = task.nfetch_failures > 2
    barriers = core.state.barriers
    cut_off: list[Worker] = []
    if unreachable and barriers:
        cut_off = [holder for holder in unreachable if _is_cut_off(core, holder, asker)]
        is_unpack = any(dependency in barriers for dependency in task.dependencies)
        if is_unpack and task.state != ERRED and len(cut_off) < len(unreachable):
            core.state.avoided.setdefault(task, {})[asker] = None  # others may reach them
    if unreachable and task.options.allow_other_workers and task.state != ERRED:
        core.state.avoided.setdefault(task, {})[asker] = None  # to be named is only a wish
    for dependency in missing:
        given_up: Sequence[Worker] = ()
        if cut_off and any(each in barriers for each in dependency.dependents or ()):
            given_up = cut_off
        for holder in list(dependency.who_has or ()):
            if holder in given_up:
                _avoid(core, dependency, holder)
            elif not _lacks(holder, lacking, unreachable) and (
                not gives_up or _is_irreplaceable(dependency)
            ):
                continue
            core.free(holder, dependency.id)
            lose_replica(core, dependency, holder)


def _lacks(holder: Worker, lacking: Sequence[Worker | None], unreachable: Sequence[Worker]) -> bool:
    """Whether a holder was asked and had not got it; if it is not told who, whoever answered."""
    return holder in lacking if lacking else holder not in unreachable


def _is_irreplaceable(result: Task) -> bool:
    """Whether this is the only copy of what can't be computed: who has it may be busy, or a suspect
    soon, and is given all the time that there is."""
    return result.code is None and result.who_has is not None and len(result.who_has) == 1


def _is_cut_off(core: Core, holder: Worker, asker: Worker) -> bool:
    """Whether enough others can't reach `holder`; `asker` alone, if there is nobody else.

    Unless somebody could not reach that one before: then it may be the one that is cut off.
    """
    now = core.now
    others = [worker for worker in core.state.workers.values() if worker is not holder]
    nwitnesses = sum(worker.cannot_reach.get(holder.id, 0.0) > now for worker in others)
    if len(others) > 1:
        return nwitnesses >= WITNESSES_MIN
    return holder.cannot_reach.get(asker.id, 0.0) <= now


def _avoid(core: Core, transfer: Task, holder: Worker) -> None:
    """It is made again, and so is what came before it and has gone; all of that elsewhere."""
    avoided = core.state.avoided
    lineage = [transfer]
    for task in lineage:
        avoided.setdefault(task, {})[holder] = None
        if len(lineage) < LINEAGE_MAX:
            lineage += [each for each in task.dependencies if each.state == RELEASED]
