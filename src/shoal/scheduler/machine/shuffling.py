"""Shuffles: transfers tell what they cut, barriers complete, unpacks ask where the shards are.

An answer of a run counts only if it is the one that is out, and what an unpack asks only in the
epoch that it is of: each time that shards were lost and made again begins another.
"""

import pickle
from collections.abc import Iterator
from typing import Final

from msgspec import Raw
from msgspec.msgpack import decode

from shoal.protocol.answers import Answer, Refusal, answer
from shoal.protocol.exceptions import to_failure
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_text
from shoal.protocol.shuffles import (
    DefineShuffles,
    LocateShards,
    ShardHolder,
    ShardsJoined,
    ShardsLocated,
    ShardsMade,
)
from shoal.scheduler.machine.barriers import keep_inputs
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import lose_replica, lose_result, to_memory
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.joining import expect_of_outputs
from shoal.scheduler.machine.on_worker import task_of_run
from shoal.scheduler.machine.waiting import fail
from shoal.scheduler.model.entities import (
    MEMORY,
    NO_RUN,
    PROCESSING,
    RELEASED,
    WAITING,
    Client,
    Task,
    Worker,
)
from shoal.scheduler.model.shuffles import LANE_BYTES, Made, Shuffle
from shoal.scheduler.model.state import SchedulerState
from shoal.shuffle.errors import P2PConsistencyError, P2PIllegalStateError, ShuffleStale

BARRIER_STATES: Final = frozenset({RELEASED, WAITING, MEMORY, "erred"})
"""Of a barrier: nobody runs it, so it is never placed."""

ASKED_MAX: Final = 8
"""Times that a transfer is run again as it was not heard what it cut; then it cuts nothing."""


def on_define_shuffles(core: Core, client: Client, message: DefineShuffles) -> None:
    """Barriers are about to come; one that is here already keeps its first definition."""
    for definition in message.shuffles:
        if definition.ninputs < 0 or definition.noutputs < 0:
            raise ProtocolError("DefineShuffles has fewer than no partitions")
        client.defined[definition.barrier] = definition


def on_shards_made(core: Core, worker: Worker, message: ShardsMade) -> None:
    """A transfer's run has cut its input; the task finishes next.

    What is cut again counts once in all sums: they say how much there is, not how often.
    """
    task = task_of_run(core, worker, message.task, message.run)
    shuffle = core.state.shuffles.get(message.shuffle)
    if task is None or shuffle is None or shuffle.barrier not in (task.dependents or ()):
        return
    by_output = message.nbytes_by_output
    if by_output and len(by_output) != shuffle.noutputs * LANE_BYTES:
        raise ProtocolError("ShardsMade has not as many output partitions as its shuffle")
    _note_time(core, shuffle)
    shuffle.asked_again.pop(task, None)
    made = shuffle.made.get(task)
    if made is None:
        shuffle.made[task] = Made(message.input_partition, message.rows, message.digest)
        shuffle.add_nbytes(message.nbytes, by_output)
        shuffle.disk_nbytes += message.disk_nbytes
    else:
        made.rows, made.digest = message.rows, message.digest


def on_shards_joined(core: Core, worker: Worker, message: ShardsJoined) -> None:
    """An unpack's run has all its rows; the task finishes next."""
    task = task_of_run(core, worker, message.task, message.run)
    shuffle = core.state.shuffles.get(message.shuffle)
    if task is None or shuffle is None:
        return
    _note_time(core, shuffle)
    shuffle.njoined += 1
    shuffle.joined_nbytes += message.nbytes


def on_locate_shards(core: Core, worker: Worker, call: LocateShards) -> None:
    """Say who holds each transfer's shards: the asker itself, or a holder that it can reach.

    Cost: O(input partitions), once for each epoch unless some have several holders.
    """
    shuffle = core.state.shuffles.get(call.shuffle)
    why = _why_not(shuffle, call.epoch)
    if shuffle is None or why:
        failure = to_failure(ShuffleStale(f"The shuffle {call.shuffle!r} {why}."))
        core.to_worker(worker, Refusal(call.request, failure))
        return
    located = shuffle.located
    if located is None:
        located = _locate(core, shuffle, worker)
    core.to_worker(worker, Answer(call.request, located))


def _locate(core: Core, shuffle: Shuffle, worker: Worker) -> Raw:
    """Where `worker` finds all shards; kept for the next that asks if it is told the same."""
    by_holder: dict[Worker, ShardHolder] = {}
    rows = 0
    is_same_for_all = True
    for transfer in shuffle.barrier.dependencies:
        made = shuffle.made[transfer]
        rows += made.rows
        holders = transfer.who_has
        assert holders is not None
        if len(holders) == 1:
            holder = holders[0]
        else:
            is_same_for_all = False
            holder = _holder_for(core, transfer, worker)
        found = by_holder.get(holder)
        if found is None:
            found = by_holder[holder] = ShardHolder(holder.address, [], [], [], [])
        found.transfers.append(transfer.id)
        found.keys.append(transfer.key)
        found.input_partitions.append(made.input_partition)
        found.digests.append(made.digest)
    holders_told = list(by_holder.values())
    located = answer(0, ShardsLocated(shuffle.epoch, shuffle.ninputs, holders_told, rows)).value
    if is_same_for_all:
        shuffle.located = located
    return located


def complete_barriers(core: Core) -> None:
    """Of the tasks that are ready, those that are barriers are in memory at once.

    Cost: O(ready tasks), and O(inputs + outputs) for each barrier.
    """
    barriers = core.state.barriers
    for task in list(core.ready):
        shuffle = barriers.get(task)
        if shuffle is not None and task.state == WAITING and task.nwaiting == 0:
            _complete(core, shuffle)


def _complete(core: Core, shuffle: Shuffle) -> None:
    """All transfers are in memory: so is the barrier, unless they disagree with what was said."""
    barrier = shuffle.barrier
    error = _contradiction(shuffle)
    if error is not None:
        fail(core, barrier, to_failure(error, barrier.key))
        return
    if _ask_again(core, shuffle):
        return
    for transfer in barrier.dependencies:
        made = shuffle.made[transfer]
        shuffle.has_changed = shuffle.has_changed or made.has_changed
        made.delivered_digest = made.digest
        transfer.value = None  # what was kept is to be asked for, and not to be outlived
    _make_again(core, shuffle)
    shuffle.lost.clear()
    shuffle.located = None
    shuffle.epoch = core.state.next_shuffle_epoch
    core.state.next_shuffle_epoch += 1
    shuffle.nepochs += 1
    barrier.value = pickle.dumps(shuffle.epoch, protocol=5)
    barrier.nbytes = len(barrier.value)
    keep_inputs(shuffle)
    expect_of_outputs(core, shuffle)
    to_memory(core, barrier)


def _make_again(core: Core, shuffle: Shuffle) -> None:
    """Outputs that workers had from another life of the scheduler are of a cut that nobody knows
    any more: once some are to be made of this one, all are."""
    for output in shuffle.adopted:
        for holder in list(output.who_has or ()):
            output.value = None
            core.free(holder, output.id)
            lose_replica(core, output, holder)
    shuffle.adopted.clear()


def _ask_again(core: Core, shuffle: Shuffle) -> bool:
    """Have transfers run again whose shards are there, and of which it was not heard what they
    are: a worker came back with them that was out of reach as it made them."""
    unheard = [
        transfer
        for transfer in shuffle.barrier.dependencies
        if transfer not in shuffle.made or transfer.who_has is None
    ]
    for transfer in unheard:
        shuffle.asked_again[transfer] = shuffle.asked_again.get(transfer, 0) + 1
        transfer.value = None
        if transfer.who_has is None:
            lose_result(core, transfer, None)
        for holder in list(transfer.who_has or ()):
            core.free(holder, transfer.id)
            lose_replica(core, transfer, holder)
    return bool(unheard)


def _contradiction(shuffle: Shuffle) -> Exception | None:
    """Why the barrier can't be complete, if it can't."""
    barrier = shuffle.barrier
    for transfer in barrier.dependencies:
        is_given = transfer.code is None and transfer not in shuffle.made
        if is_given or shuffle.asked_again.get(transfer, 0) >= ASKED_MAX:
            what = f"{to_text(transfer.key)!r} was computed for it, and has cut nothing"
            return P2PIllegalStateError(shuffle.id, what)
    if len(barrier.dependencies) != shuffle.ninputs:
        what = f"{len(barrier.dependencies)} of {shuffle.ninputs} input partitions were submitted"
        return P2PIllegalStateError(shuffle.id, what)
    changed = next((transfer for transfer, made in shuffle.made.items() if made.has_changed), None)
    if changed is None or not _has_begun(shuffle):
        return None
    number = shuffle.made[changed].input_partition
    return P2PConsistencyError(
        shuffle.id,
        f"input partition {number} ({to_text(changed.key)!r}) gave different rows when it "
        "was computed again, and output partitions had begun with those that it gave "
        "before; make it deterministic (seed what is random, sort what comes in any order), or "
        "persist it before the shuffle",
    )


def _has_begun(shuffle: Shuffle) -> bool:
    """Whether anything was, or may yet be, made of shards of an epoch before."""
    return shuffle.njoined > 0 or any(
        unpack.state == PROCESSING and unpack.run != NO_RUN
        for unpack in shuffle.barrier.dependents or ()
    )


def _why_not(shuffle: Shuffle | None, epoch: int) -> str:
    """Why nobody can be told now where its shards are, as what follows the shuffle's name."""
    if shuffle is None:
        return "is over, or was never defined"
    if shuffle.barrier.state != MEMORY:
        return f"waits for shards that were lost after epoch {epoch}"
    if shuffle.epoch != epoch:
        return f"is in epoch {shuffle.epoch}, not in {epoch}"
    return ""


def _holder_for(core: Core, transfer: Task, asker: Worker) -> Worker:
    """Itself, or one that it can reach; of several, not the same for all who ask."""
    holders = transfer.who_has
    assert holders is not None
    if transfer in asker.has_what:
        return asker
    believed = asker.cannot_reach
    reachable = [holder for holder in holders if believed.get(holder.id, 0.0) <= core.now]
    choice = reachable or holders
    return choice[asker.id % len(choice)]


def _note_time(core: Core, shuffle: Shuffle) -> None:
    if shuffle.begun_at < 0:
        shuffle.begun_at = core.now
    shuffle.heard_at = core.now


def _has_others_located(shuffle: Shuffle) -> bool:
    """Whether those who ask are told of holders that there were, and are not any more."""
    if shuffle.located is None or shuffle.barrier.state != MEMORY:
        return False
    holders = decode(shuffle.located, type=ShardsLocated).holders
    told = {number: each.address for each in holders for number in each.transfers}
    return any(
        [told[transfer.id]] != [holder.address for holder in transfer.who_has or ()]
        for transfer in shuffle.barrier.dependencies
    )


def barriers_agree(state: SchedulerState) -> Iterator[str]:
    """A barrier is never placed; in memory it keeps all its transfers, whose shards are there."""
    for barrier, shuffle in state.barriers.items():
        if state.shuffles.get(shuffle.id) is not shuffle or shuffle.barrier is not barrier:
            yield f"{shuffle!r} is filed under {barrier!r}"
        if state.tasks.get(barrier.key) is not barrier:
            yield f"{shuffle!r} is known, and its barrier has gone"
        if barrier.state not in BARRIER_STATES or barrier.who_has is not None:
            yield f"{barrier!r} is a barrier, and nobody runs or holds it"
        if shuffle.keeps_inputs != (barrier.state == MEMORY):
            yield f"{barrier!r} {'keeps' if shuffle.keeps_inputs else 'does not keep'} its inputs"
        if _has_others_located(shuffle):
            yield f"{shuffle!r} says that shards are where they are not, or not only"
        if barrier.state == MEMORY:
            for transfer in barrier.dependencies:
                if transfer.state != MEMORY or transfer.who_has is None:
                    yield f"{barrier!r} is in memory, without the shards of {transfer!r}"
                if transfer not in shuffle.made:
                    yield f"{barrier!r} is in memory, and nobody knows what {transfer!r} cut"
    if len(state.barriers) != len(state.shuffles):
        yield f"there are {len(state.barriers)} barriers of {len(state.shuffles)} shuffles"


HANDLERS = Handlers(
    from_client={DefineShuffles: on_define_shuffles},
    from_worker={
        ShardsMade: on_shards_made,
        ShardsJoined: on_shards_joined,
        LocateShards: on_locate_shards,
    },
    invariant=barriers_agree,
)
