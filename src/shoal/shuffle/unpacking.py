"""What an unpack does: fetches the shards of its output partition from their holders, and joins."""

from __future__ import annotations

from typing import Any

from shoal.protocol.shuffles import ShardsJoined
from shoal.shuffle.errors import P2PConsistencyError
from shoal.shuffle.exchange import exchange_of
from shoal.shuffle.inside import shuffle_run


def unpack(id: str, output: int, epoch: int) -> Any:
    """Make output partition `output` of a shuffle.

    Called in a task, which was sent with its exchange.

    Args:
        epoch: the value of the shuffle's barrier.

    Raises:
        NotInShuffle: it is called elsewhere.
        ShuffleStale, ShardsUnavailable: some shards are not where they were; the scheduler sees to
            it that they are made again (a Reschedule).
        P2PConsistencyError: what has come is not what was kept, or not all of it was joined.

    Cost: the transfer of the shards that are elsewhere, and what `Exchange.join` takes.
    """
    run, exchange = shuffle_run(id), exchange_of(id)
    fetched = run.host.fetch(id, output, epoch)
    nbytes = sum([memoryview(buffer).nbytes for buffer in fetched.buffers])
    value = exchange.join(output, fetched.buffers)
    nrows = exchange.nrows_of(value)
    if nrows != fetched.nrows:
        raise P2PConsistencyError(
            id,
            f"output partition {output} has {nrows:,} rows or elements, and its shards have "
            f"{fetched.nrows:,}",
        )
    run.host.tell(ShardsJoined(run.task, run.number, id, output, epoch, nrows, nbytes))
    return value
