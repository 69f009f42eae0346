"""What dask makes graphs of shuffles with: names, the barrier's task, and the tasks' functions.

A graph may have the same shuffle twice, where dask has cloned it: then the id that its tasks say is
not the one that others know, which its exchange has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NewType, NoReturn

from dask._task_spec import Task

from shoal.shuffle.errors import BarrierWasRun
from shoal.shuffle.exchange import Exchange, exchange_of
from shoal.shuffle.merging import merge_frames
from shoal.shuffle.transferring import transfer
from shoal.shuffle.unpacking import unpack

ShuffleId = NewType("ShuffleId", str)

_BARRIER_PREFIX: Final = "shuffle-barrier-"


def barrier_key(shuffle_id: ShuffleId) -> str:
    """The key of a shuffle's barrier."""
    return _BARRIER_PREFIX + shuffle_id


def id_from_key(key: Any) -> ShuffleId | None:
    """The shuffle that a key is the barrier of; None if it is none's."""
    if not isinstance(key, str) or not key.startswith(_BARRIER_PREFIX):
        return None
    return ShuffleId(key.removeprefix(_BARRIER_PREFIX))


def p2p_barrier(id: ShuffleId, *run_ids: Any) -> NoReturn:
    """What stands in the graph for the barrier, which the scheduler completes by itself.

    Raises:
        BarrierWasRun: always.
    """
    raise BarrierWasRun(id)


class P2PBarrierTask(Task):
    """A shuffle's barrier: it needs all transfers, and whatever unpacks needs it.

    It stays what it is when a graph's tasks are fused.
    """

    spec: Exchange | None
    """How the shuffle is done; None once its tasks know."""

    __slots__ = ("spec",)

    def __init__(
        self,
        key: Any,
        func: Callable[..., Any],
        /,
        *args: Any,
        spec: Exchange | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(key, func, *args, **kwargs)
        self.spec = spec

    @property
    def block_fusion(self) -> bool:
        return True

    def copy(self) -> P2PBarrierTask:
        """Another task that is the same."""
        return P2PBarrierTask(self.key, self.func, *self.args, spec=self.spec, **self.kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _barrier_task, (self.key, self.func, self.args, self.spec, self.kwargs)

    def __repr__(self) -> str:
        return f"<P2PBarrierTask {self.key!r} of {len(self.dependencies)} transfers>"


def _barrier_task(
    key: Any,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    spec: Exchange | None,
    kwargs: dict[str, Any],
) -> P2PBarrierTask:
    return P2PBarrierTask(key, func, *args, spec=spec, **kwargs)


def shuffle_transfer(input: Any, id: ShuffleId, input_partition: int) -> Any:
    """Cut one input partition of a table; see `transfer`."""
    return transfer(input, exchange_of(id).id, input_partition)


def shuffle_unpack(id: ShuffleId, output_partition: int, barrier_run_id: int) -> Any:
    """Make one output partition of a table; see `unpack`."""
    return unpack(exchange_of(id).id, output_partition, barrier_run_id)


def merge_transfer(input: Any, id: ShuffleId, input_partition: int) -> Any:
    """Cut one input partition of a side of a merge; see `transfer`."""
    return transfer(input, exchange_of(id).id, input_partition)


def merge_unpack(
    shuffle_id_left: ShuffleId,
    shuffle_id_right: ShuffleId,
    output_partition: int,
    barrier_left: int,
    barrier_right: int,
    how: Any,
    left_on: Any,
    right_on: Any,
    result_meta: Any,
    suffixes: Any,
    left_index: bool,
    right_index: bool,
    indicator: bool = False,
) -> Any:
    """Make one output partition of a merge, from that of both sides; see `unpack`."""
    left = unpack(exchange_of(shuffle_id_left).id, output_partition, barrier_left)
    right = unpack(exchange_of(shuffle_id_right).id, output_partition, barrier_right)
    return merge_frames(
        left,
        right,
        how,
        left_on,
        right_on,
        result_meta,
        suffixes,
        left_index,
        right_index,
        indicator,
    )


def rechunk_transfer(input: Any, id: ShuffleId, input_partition: int) -> Any:
    """Cut one input block of an array; see `transfer`."""
    return transfer(input, exchange_of(id).id, input_partition)


def rechunk_unpack(id: ShuffleId, output_partition: int, barrier_run_id: int) -> Any:
    """Make one output block of an array; see `unpack`."""
    return unpack(exchange_of(id).id, output_partition, barrier_run_id)


_OUTPUT_PLACES: Final[dict[Any, int]] = {shuffle_unpack: 1, merge_unpack: 2, rechunk_unpack: 1}


def output_place(function: Any) -> int | None:
    """Which argument of an unpack's function is the output partition; None: it is no unpack's."""
    try:
        return _OUTPUT_PLACES.get(function)
    except TypeError:  # it can't be hashed, so it is none of these
        return None
