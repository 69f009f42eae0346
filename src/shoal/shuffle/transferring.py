"""What a transfer does: cuts its input partition, keeps the shards, tells how much is for whom."""

from __future__ import annotations

from typing import Any, Final

from shoal.protocol.payload import nbytes_of
from shoal.protocol.shuffles import ShardsMade
from shoal.shuffle.errors import DiskIsFull, P2POutOfDiskError
from shoal.shuffle.exchange import Cut, Exchange, exchange_of
from shoal.shuffle.inside import ShuffleHost, shuffle_run
from shoal.shuffle.keeping import NoRoom, keep
from shoal.shuffle.kept import KeptShards

NOUTPUTS_TOLD_MAX: Final = 1 << 16
"""Of more output partitions it isn't told how much each gets."""

NREFUSALS_MAX: Final = 3
"""So often a worker hands an input partition on for which it has no room; each time to one that has
not refused it, as long as there is any."""


def transfer(value: Any, id: str, input_partition: int) -> KeptShards:
    """Cut one input partition for all output partitions, and keep the shards here.

    Called in a task, which was sent with its exchange.

    Raises:
        NotInShuffle: it is called elsewhere.
        DiskIsFull: there is no room for them here; another worker is to do it (a Reschedule).
        P2POutOfDiskError: there is none anywhere, as far as this worker can see.
        Exception: whatever the exchange raises, of a value that is not as was declared.

    Cost: what `Exchange.cut` takes, one copy of the bytes, and writing them if memory has no room.
    """
    run, exchange = shuffle_run(id), exchange_of(id)
    try:
        cut, kept = _kept(value, exchange, input_partition, run.host)
    except NoRoom as error:
        _hand_on(run.host, id, input_partition, error)
        raise
    run.host.accept()
    index = kept.index
    disk_nbytes = index.nbytes if kept.is_on_disk else 0
    is_told = exchange.noutputs <= NOUTPUTS_TOLD_MAX
    lanes = index.nbytes_by_output(exchange.noutputs) if is_told else b""
    run.host.counters.add(ncuts=1, cut_bytes=index.nbytes, written_bytes=disk_nbytes)
    run.host.tell(
        ShardsMade(
            run.task, run.number, id, input_partition, cut.nrows, cut.digest, index.nbytes, lanes,
            disk_nbytes,
        )
    )  # fmt: skip
    return kept


def _kept(
    value: Any, exchange: Exchange, input_partition: int, host: ShuffleHost
) -> tuple[Cut, KeptShards]:
    """In memory or on disk, whichever takes them.

    Raises:
        NoRoom: neither does.
    """
    if not (host.may_write and exchange.disk):
        cut = exchange.cut(value, input_partition)
        return cut, keep(cut, host.budget, host.files, may_write=False, must_fit=True)
    # A disk in trouble is left alone for a while, as long as there is room without it.
    is_left_alone = not host.files.may_be_tried and host.budget.has_room
    for may_write in (False, True) if is_left_alone else (True, False):
        cut = exchange.cut(value, input_partition)
        try:
            return cut, keep(cut, host.budget, host.files, may_write=may_write)
        except NoRoom:
            if not is_left_alone:
                raise
        except OSError as error:
            if not host.files.trouble:  # so it was not the disk's
                raise
            if is_left_alone or not host.budget.has_room:
                raise NoRoom(nbytes_of(value), host.files.trouble) from error
    raise NoRoom(nbytes_of(value), host.files.trouble)


def _hand_on(host: ShuffleHost, id: str, input_partition: int, error: NoRoom) -> None:
    """Always raises."""
    host.counters.add(nrefused=1)
    files = host.files
    if host.refuse(id, input_partition) >= NREFUSALS_MAX:
        raise P2POutOfDiskError(
            id, files.disk.folder_name, error.nbytes, files.nbytes_free(), error.why
        ) from None
    raise DiskIsFull(f"no room for input partition {input_partition} of {id}") from None
