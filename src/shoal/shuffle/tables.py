"""Tables: an input partition cut by output partition, and shards joined to an output partition.

A shard is an Arrow record batch (its message, without the schema, which is declared), then what
its columns have beside it, pickled, then a footer that tells the sizes of both.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from shoal.protocol.payload import dump_function
from shoal.shuffle.exchange import Buffer, Cut, Exchange, Shard

if TYPE_CHECKING:
    from shoal.shuffle.columns import Encoded
    from shoal.shuffle.partitioning import Grouping
    from shoal.shuffle.schema import TableSchema

_FOOTER: Final = struct.Struct("<QQ")
_ALIGNMENT: Final = 8  # of shards one after the other in a file: Arrow asks it of a message
_NBYTES_AT_ONCE: Final = 1 << 22
"""Rows are put in order in stretches of about so many bytes: what a cut takes beside its input."""


@dataclass(eq=False)
class TableExchange(Exchange):
    """How a dataframe is shuffled by a column that holds the numbers of output partitions.

    Any number of rows may go anywhere. A row arrives as it was, and rows of an output partition
    are in the order of input partitions, then in their own.
    """

    id: str
    disk: bool
    npartitions: int
    """How many output partitions there are."""
    column: str
    """Holds the output partition of each row."""
    meta: Any
    """An empty frame with the columns, index and types of every input partition."""
    parts_out: int | Sequence[int] | None
    """Output partitions that are wanted; rows of others are dropped. A number or None: all are."""
    drop_column: bool
    """Whether output partitions are without `column`."""

    @property
    def noutputs(self) -> int:
        return self.npartitions

    def cut(self, value: Any, input_partition: int) -> Cut:
        """Divide a frame by output partition.

        Raises:
            BadPartitionIds: `column` holds what is no output partition.
            ColumnsMismatch: the frame has other columns than meta.
            SchemaMismatch: values of a column are of another kind than is declared.

        Cost: one sort of small integers, and copies of a few output partitions at a time, or of
        one that is large. `nrows` is of the rows that are sent.
        """
        from shoal.shuffle.partitioning import digest_of, grouped, ids_from

        if self.column not in value.columns:
            from shoal.shuffle.errors import ColumnsMismatch

            raise ColumnsMismatch(input_partition, f"it lacks the column {self.column!r}")
        ignored = self.column if self.drop_column else None
        series = self._schema.series_of(value, ignored, input_partition)
        ids = ids_from(value[self.column], self.column, self.npartitions, input_partition)
        grouping = grouped(ids, self.npartitions, self._kept)
        return Cut(len(grouping.order), digest_of(ids), self._shards(series, grouping))

    def _shards(self, series: list[Any], grouping: Grouping) -> Iterator[Shard]:
        import pyarrow as pa

        nrows = max(1, len(series[0]))
        nbytes = sum([each.memory_usage(index=False) for each in series])
        takings = self._schema.takings(series)
        nrows_at_once = max(1, nrows * _NBYTES_AT_ONCE // max(1, nbytes))
        for spans in grouping.stretches(nrows_at_once):
            order = pa.array(grouping.order[spans[0][1] : spans[-1][2]])
            yield from self._shards_of(spans, [take(order) for take in takings])

    def _shards_of(
        self, spans: Sequence[tuple[int, int, int]], encoded: Sequence[Encoded]
    ) -> Iterator[Shard]:
        """Those of some output partitions, whose rows are one after the other in `encoded`."""
        import pyarrow as pa

        names = [str(place) for place in range(len(encoded))]
        batch = pa.RecordBatch.from_arrays([column.array for column in encoded], names)
        pool = pa.system_memory_pool()  # Arrow's own would keep what is freed
        brings = any(column.beside for column in encoded)
        first = spans[0][1]
        for output, begin, end in spans:
            start, stop = begin - first, end - first
            message = batch.slice(start, stop - start).serialize(pool)
            beside = b""
            if brings:
                told = [column.beside and column.beside(start, stop) for column in encoded]
                beside = dump_function(told)
                beside += bytes(-len(beside) % _ALIGNMENT)
            footer = _FOOTER.pack(message.size, len(beside))
            yield Shard(output, stop - start, [memoryview(message), beside, footer])

    def join(self, output: int, shards: Sequence[Buffer]) -> Any:
        """An output partition of its shards: what pandas gives for these rows one after the other.

        Cost: one copy; more for Python objects.
        """
        import pyarrow as pa

        schema = self._schema
        if not shards:
            return schema.empty()
        if len(shards) == 1:
            shards = [bytes(shards[0])]  # Arrow would go on using the memory of a single piece
        batches, all_beside = [], []
        for shard in shards:
            view = memoryview(shard).cast("B")
            nmessage, nbeside = _FOOTER.unpack(view[-_FOOTER.size :])
            beside = pickle.loads(view[nmessage : nmessage + nbeside]) if nbeside else None
            message = pa.py_buffer(view[:nmessage])
            batches.append(pa.ipc.read_record_batch(message, schema.arrow_schema(beside)))
            all_beside.append(beside)
        return schema.decode(batches, all_beside)

    def output_bytes(self, nbytes: int) -> int:
        """What `join` takes at its peak for shards of so many bytes, those not counted.

        It is not known yet how they are divided among columns: as widths of their types are.
        """
        columns = self._schema.columns
        taken = sum([column.row_nbytes * column.join_factor for column in columns])
        return int(nbytes * taken / sum([column.row_nbytes for column in columns]))

    @cached_property
    def _schema(self) -> TableSchema:
        from shoal.shuffle.schema import TableSchema

        return TableSchema(self.meta, self.column if self.drop_column else None)

    @cached_property
    def _kept(self) -> Any:
        """By output partition, whether its rows are wanted; None: all are."""
        import numpy as np

        if self.parts_out is None or isinstance(self.parts_out, int):
            return None
        kept = np.zeros(self.npartitions, bool)
        kept[list(self.parts_out)] = True
        return None if kept.all() else kept

    def __getstate__(self) -> dict[str, Any]:
        made = {"_schema", "_kept"}  # again, where they are needed
        return {name: value for name, value in vars(self).items() if name not in made}


DataFrameShuffleSpec = TableExchange
"""As dask calls it."""
