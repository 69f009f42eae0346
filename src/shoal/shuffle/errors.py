"""Every text of an error of shuffles: what happened, why, and what to do."""

from __future__ import annotations

from shoal.errors import Reschedule, ShoalError
from shoal.ids import TaskId
from shoal.units import format_nbytes

_OTHER_WAYS = (
    "or choose another way: dask.config.set({'dataframe.shuffle.method': 'tasks'}), "
    "rechunk(method='tasks')."
)


class NotInShuffle(ShoalError, RuntimeError):
    """A task of a shuffle runs without what it needs to know of that shuffle."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return (
            f"A task of the shuffle {self.id!r} runs outside of a cluster, or was sent without its "
            "specification: shuffle_method='p2p' requires the distributed scheduler.\n"
            "If a client has just run it again to show its error, look at that of the future: the "
            "shards that the task needs are on workers only.  Else create a Client and compute "
            f"with it, {_OTHER_WAYS}"
        )


class P2PIllegalStateError(ShoalError, RuntimeError):
    """A shuffle was asked for what it can't do in its present state."""

    def __init__(self, id: str, what: str) -> None:
        """`what`: happened, as a clause."""
        super().__init__(id, what)
        self.id, self.what = id, what

    def __str__(self) -> str:
        return (
            f"The shuffle {self.id!r} is not in a state for this: {self.what}. Compute the "
            "collection again; if that repeats, report it."
        )


class ShuffleClosedError(ShoalError, RuntimeError):
    """A shuffle is over on this worker, or the worker closes."""

    def __init__(self, id: str, worker: str = "") -> None:
        super().__init__(id, worker)
        self.id, self.worker = id, worker

    def __str__(self) -> str:
        where = f" on {self.worker}" if self.worker else ""
        return f"The shuffle {self.id!r} is closed{where}: nothing of it is kept there any more."


class P2PConsistencyError(ShoalError, RuntimeError):
    """What a shuffle has brought is not what was sent into it."""

    def __init__(self, id: str, what: str) -> None:
        """`what`: does not agree, as a sentence without its full stop."""
        super().__init__(id, what)
        self.id, self.what = id, what

    def __str__(self) -> str:
        return f"The shuffle {self.id!r} is inconsistent: {self.what}."


class P2POutOfDiskError(ShoalError, OSError):
    """Shards fit neither in memory nor on disk."""

    def __init__(self, id: str, folder: str, nbytes: int, nfree: int, why: str) -> None:
        """`nbytes`: that were to be written; `nfree`: bytes of the disk that were free."""
        super().__init__()  # an OSError would take two arguments for errno and strerror
        self.id, self.folder, self.nbytes, self.nfree, self.why = id, folder, nbytes, nfree, why

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.id, self.folder, self.nbytes, self.nfree, self.why)

    def __str__(self) -> str:
        return (
            f"The shuffle {self.id!r} is out of disk: an input partition of "
            f"{format_nbytes(self.nbytes)} was to be kept in {self.folder}, where "
            f"{format_nbytes(self.nfree)} are free ({self.why}), and memory has no room for it "
            "either, on any worker that has tried.\n"
            "Make room there, name another folder (local_directory, temporary-directory), or add "
            "workers."
        )


class ShuffleStale(Reschedule):
    """A run waits for what another epoch of its shuffle has replaced: it is to be run again."""


class RunTakenBack(Reschedule):
    """A run that waits for shards was taken back by the scheduler: it ends as if never begun."""


class DiskIsFull(Reschedule):
    """This worker has no room for shards: another worker is to make them."""


class UnsupportedDtype(ShoalError, TypeError):
    """A table has values of a type that no shuffle can send."""

    def __init__(self, column: str, dtype: str) -> None:
        super().__init__(column, dtype)
        self.column, self.dtype = column, dtype

    def __str__(self) -> str:
        sparse = "sparse " if self.dtype.startswith("Sparse") else ""
        return (
            f"p2p does not support {sparse}data of type '{self.dtype}' found in column "
            f"'{self.column}'.\n"
            "Convert that column, or use another way for this: shuffle_method='tasks'."
        )


class SchemaMismatch(ShoalError, TypeError):
    """A column of an input partition holds another kind of thing than the table's meta says."""

    def __init__(
        self, input_partition: int, column: str, found: str, declared: str, why: str
    ) -> None:
        """`found` and `declared`: types; `why` one can't become the other, as a clause."""
        super().__init__(input_partition, column, found, declared, why)
        self.input_partition, self.column = input_partition, column
        self.found, self.declared, self.why = found, declared, why

    def __str__(self) -> str:
        return (
            f"Input partition {self.input_partition}: column {self.column!r} is of type "
            f"{self.found}, but {self.declared} is declared: {self.why}.\n"
            "Give a meta that is true of every partition, or convert the column in all of them, "
            "for instance with astype, before the shuffle."
        )


class CategoriesMismatch(ShoalError, TypeError):
    """Input partitions have different categories in an order that means something."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column

    def __str__(self) -> str:
        return (
            f"Column {self.column!r} is an ordered categorical whose partitions have different "
            "categories, so that no order of all of them is known.\n"
            "Declare them, for instance with astype(pandas.CategoricalDtype(...)), before the "
            "shuffle."
        )


class ColumnsMismatch(ShoalError, ValueError):
    """An input partition has other columns than the table's meta says."""

    def __init__(self, input_partition: int, what: str) -> None:
        """`what` is wrong with them, as a clause; `input_partition` is -1 if meta itself is."""
        super().__init__(input_partition, what)
        self.input_partition, self.what = input_partition, what

    def __str__(self) -> str:
        if self.input_partition < 0:
            return (
                f"A table to be shuffled {self.what}.\nGive each column a name of its own before."
            )
        return (
            f"Input partition {self.input_partition}: {self.what}.\n"
            "Every partition must have the columns and index levels that meta declares, each once, "
            "in any order: nothing is dropped or made up in a shuffle. Correct meta, or the "
            "function that makes the partitions."
        )


class BadPartitionIds(ShoalError, ValueError):
    """Rows of an input partition say to go where no output partition is."""

    def __init__(self, column: str, npartitions: int, input_partition: int, what: str) -> None:
        """`what` is wrong with the column, as a clause."""
        super().__init__(column, npartitions, input_partition, what)
        self.column, self.npartitions = column, npartitions
        self.input_partition, self.what = input_partition, what

    def __str__(self) -> str:
        return (
            f"Input partition {self.input_partition}: column {self.column!r} is to say which of "
            f"the {self.npartitions} output partitions each row goes to, but {self.what}.\n"
            "It must hold whole numbers from 0 up to, and without, the number of partitions."
        )


class WrongBlock(ShoalError, ValueError):
    """A block of an array is not of the size that the array's chunks say."""

    def __init__(
        self, id: str, input_partition: int, found: tuple[int, ...], declared: tuple[float, ...]
    ) -> None:
        """`found` and `declared`: shapes."""
        super().__init__(id, input_partition, found, declared)
        self.id, self.input_partition = id, input_partition
        self.found, self.declared = found, declared

    def __str__(self) -> str:
        return (
            f"Rechunking {self.id!r}: input block {self.input_partition} has the shape "
            f"{self.found}, but the chunks of its array say {self.declared}.\n"
            "Give the function that makes the blocks the right `chunks=`, as in "
            "`x.map_blocks(function, chunks=...)`, or call `x.compute_chunk_sizes()` first."
        )


class BarrierWasRun(ShoalError, RuntimeError):
    """The barrier of a shuffle was run like other tasks."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return (
            f"The barrier of the shuffle {self.id!r} was run as a task, which shoal's scheduler "
            "completes by itself: shuffle_method='p2p' requires the distributed scheduler, and a "
            "graph that is sent as the Client of shoal sends it.\n"
            f"Compute with that client, {_OTHER_WAYS}"
        )


class ShardsUnavailable(Reschedule):
    """Holders could not give the shards of these transfers, which a run needs."""

    def __init__(
        self, missing: list[TaskId], *, unreachable: list[str], lacking: list[str]
    ) -> None:
        """`missing`: numbers of transfers; `unreachable`: holders that could not be reached;
        `lacking`: those that said that they don't have them."""
        super().__init__(missing, unreachable, lacking)
        self.missing, self.unreachable, self.lacking = missing, unreachable, lacking
