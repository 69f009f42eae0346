"""What unpacks of a shuffle take of memory, as soon as it is known how large each partition is.

It is fed in as if a user had said it with the task, so that a large output partition waits for a
worker with room for it, and one that fits nowhere fails with numbers instead of killing workers.
"""

from typing import Final

from msgspec.structs import replace

from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.errors import OutputTooLarge
from shoal.scheduler.machine.on_memory import reconsider
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import MEMORY, WAITING, Task
from shoal.scheduler.model.shuffles import Shuffle

STEPS: Final = 8
"""Sizes between one power of two and the next that are told apart, so that options are shared."""


def expect_of_outputs(core: Core, shuffle: Shuffle) -> None:
    """All is cut: say of each unpack that waits for it what its run takes, where that matters.

    A user who has said so himself is believed.  Cost: O(outputs).
    """
    footprints = core.state.footprints
    if not footprints.is_limited or not shuffle.outputs:
        return
    nbytes = shuffle.output_nbytes()
    if not nbytes or max(nbytes) * shuffle.peak_ratio < footprints.weighty_bytes:
        return
    shared: dict[tuple[int, int], tuple[TaskOptions, TaskOptions]] = {}
    known = {shuffle: nbytes}
    limit, noutputs = footprints.limit_max, len(nbytes)
    for unpack in list(shuffle.barrier.dependents or ()):
        output = shuffle.outputs.get(unpack.key, -1)
        if not 0 <= output < noutputs or unpack.state != WAITING:
            continue
        total = nbytes[output]
        if len(unpack.dependencies) > 1:
            total += _of_others(core, unpack, shuffle, known)
        if limit and total > limit:
            error = OutputTooLarge(to_text(unpack.key), shuffle.id, output, total, limit)
            fail(core, unpack, to_failure(error, unpack.key))
            continue
        if unpack.options.memory and not _is_hinted(core, unpack):
            continue
        shuffle.hinted[unpack] = None
        _hint(core, unpack, int(total * shuffle.peak_ratio), shared)


def _of_others(core: Core, unpack: Task, shuffle: Shuffle, known: dict[Shuffle, list[int]]) -> int:
    """Bytes of the shards that it joins of other shuffles, which are complete."""
    total = 0
    for dependency in unpack.dependencies:
        other = core.state.barriers.get(dependency)
        if other is None or other is shuffle or dependency.state != MEMORY:
            continue
        output, nbytes = other.outputs.get(unpack.key), known.get(other)
        if nbytes is None:
            nbytes = known[other] = other.output_nbytes()
        if output is not None and 0 <= output < len(nbytes):
            total += nbytes[output]
    return total


def _is_hinted(core: Core, unpack: Task) -> bool:
    """Whether what its run takes was said here, and by no user."""
    shuffles = (core.state.barriers.get(dependency) for dependency in unpack.dependencies)
    return any(shuffle is not None and unpack in shuffle.hinted for shuffle in shuffles)


def _hint(
    core: Core,
    unpack: Task,
    nbytes: int,
    shared: dict[tuple[int, int], tuple[TaskOptions, TaskOptions]],
) -> None:
    """Its run takes so much, or a little less."""
    before = unpack.options
    step = 1 << max(0, nbytes.bit_length() - STEPS.bit_length())
    rounded = -(-max(1, nbytes) // step) * step
    pair = shared.get((id(before), rounded))
    if pair is None:  # with the old ones, as those that have gone would leave their id to others
        pair = shared[id(before), rounded] = (before, replace(before, memory=rounded))
    unpack.options = pair[1]
    if not unpack.prefix.is_hinted:
        unpack.prefix.is_hinted = True
        reconsider(core, unpack.prefix)
