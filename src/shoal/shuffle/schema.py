"""What a table is declared to be, made from its meta once: its columns, its index, their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from shoal.shuffle.columns import (
    Column,
    Other,
    Taking,
    column_for,
    decode_mixed,
    encode_other,
    has_own_type,
)
from shoal.shuffle.conforming import conform
from shoal.shuffle.errors import ColumnsMismatch, UnsupportedDtype

_SHOWN_MAX: Final = 5


class TableSchema:
    """The columns of a table and the levels of its index, in the order in which they travel."""

    def __init__(self, meta: Any, without: object = None) -> None:
        """`meta`: an empty frame; `without`: a column of it that does not travel.

        Raises:
            ColumnsMismatch: two columns have the same name.
            UnsupportedDtype: a type that can't be sent.
        """
        if not meta.columns.is_unique:
            twice = meta.columns[meta.columns.duplicated()].unique()
            raise ColumnsMismatch(-1, f"has several columns named {_shown(twice)}")
        places = [place for place, name in enumerate(meta.columns) if name != without]
        self._meta = meta.iloc[:, places]
        self._names = self._meta.columns
        self._columns = [column_for(str(name), dtype) for name, dtype in self._meta.dtypes.items()]
        index = self._meta.index
        self._levels = [
            column_for(_level_name(index, place), index.get_level_values(place).dtype)
            for place in range(index.nlevels)
        ]
        for column in self.columns:
            _check(column.dtype, column.name)
        self._plain: Any = None

    @property
    def columns(self) -> list[Column]:
        """Those of the frame, then the levels of its index."""
        return self._columns + self._levels

    def series_of(self, frame: Any, ignored: object, input_partition: int) -> list[Any]:
        """The frame's columns and index levels, each a Series; `ignored` is left out.

        Raises:
            ColumnsMismatch: a column is missing, there twice, or not declared.
            SchemaMismatch: the values of one are of another kind than is declared.
        """
        places = self._places(frame, ignored, input_partition)
        found = [frame.iloc[:, place] for place in places]
        index = frame.index
        if index.nlevels != len(self._levels):
            raise ColumnsMismatch(
                input_partition,
                f"its index has {index.nlevels} levels, and {len(self._levels)} are declared",
            )
        made = [
            conform(series, column.dtype, column.name, input_partition)
            for series, column in zip(found, self._columns, strict=True)
        ]
        for level, column in enumerate(self._levels):  # which functions seldom declare
            series = pd.Series(index.get_level_values(level))
            made.append(conform(series, column.dtype, column.name, None))
        return made

    def takings(self, series: list[Any]) -> list[Taking]:
        """From which rows of these can be taken; the list is emptied, as some were converted and
        are needed no longer."""
        takings = []
        for place, column in enumerate(self.columns):
            values = series[place]
            series[place] = None
            if column.carries(values.dtype):
                takings.append(column.encode(values))
            else:
                takings.append(encode_other(column.name, values))
        return takings

    def _places(self, frame: Any, ignored: object, input_partition: int) -> Sequence[int]:
        """Where each declared column is in the frame."""
        names = frame.columns
        if not names.is_unique:
            twice = names[names.duplicated()].unique()
            raise ColumnsMismatch(input_partition, f"it has several columns named {_shown(twice)}")
        places: Sequence[int] = names.get_indexer(self._names).tolist()
        absent = [name for name, place in zip(self._names, places, strict=True) if place < 0]
        if absent:
            raise ColumnsMismatch(
                input_partition, f"it lacks the declared columns {_shown(absent)}"
            )
        if len(names) > len(places) + (ignored in names and ignored not in self._names):
            extra = [name for name in names if name not in self._names and name != ignored]
            raise ColumnsMismatch(
                input_partition, f"it has columns that are not declared, {_shown(extra)}"
            )
        return places

    def arrow_schema(self, beside: Sequence[Any] | None) -> Any:
        """Arrow's schema of a shard's record batch, by what the shard has beside it, by column."""
        if beside is not None:
            return self._schema(beside)
        if self._plain is None:
            self._plain = self._schema([None] * len(self.columns))
        return self._plain

    def _schema(self, beside: Sequence[Any]) -> Any:
        types = []
        for place, (column, told) in enumerate(zip(self.columns, beside, strict=True)):
            if isinstance(told, Other):
                type = column_for(column.name, told.dtype).type_in(told.beside)
            else:
                type = column.type_in(told)
            types.append((str(place), type))
        return pa.schema(types)

    def decode(self, batches: Sequence[Any], beside: Sequence[Sequence[Any] | None]) -> Any:
        """A frame of record batches, and of what each has beside it."""
        values = []
        told: list[Any] = [None] * len(beside)
        brings = any(each is not None for each in beside)
        for place, column in enumerate(self.columns):
            arrays = [batch.column(place) for batch in batches]
            if brings:
                told = [each and each[place] for each in beside]
            if brings and Other in map(type, told):
                values.append(decode_mixed(column, arrays, told))
            else:
                values.append(column.decode(arrays, told))
        return self._frame_of(values)

    def _frame_of(self, values: Sequence[Any]) -> Any:
        """A frame of the decoded columns and levels."""
        ncolumns = len(self._columns)
        levels = [
            pd.Index(level, dtype=None if has_own_type(level) else object, copy=False)
            for level in values[ncolumns:]
        ]
        index = self._index_of(levels)
        columns = {
            place: value if has_own_type(value) else pd.Series(value, index, dtype=object)
            for place, value in enumerate(values[:ncolumns])
        }
        frame = pd.DataFrame(columns, index=index, copy=False)
        frame.columns = self._names
        return self._finished(frame)

    def empty(self) -> Any:
        """A frame without rows."""
        return self._meta.iloc[:0].copy()

    def _index_of(self, levels: list[Any]) -> Any:
        names = self._meta.index.names
        if isinstance(self._meta.index, pd.MultiIndex):
            return pd.MultiIndex.from_arrays(levels, names=names)
        return levels[0].rename(names[0])

    def _finished(self, frame: Any) -> Any:
        """The frame, of the class and with the attributes that meta has."""
        meta = self._meta
        if type(meta) is not pd.DataFrame:
            frame = meta._constructor(frame)  # what pandas asks of subclasses
        return frame.__finalize__(meta)


def check_dtype_support(meta: Any) -> None:
    """See whether a frame, or a Series, can be shuffled at all.

    Raises:
        UnsupportedDtype: it has complex or sparse values, or such as pandas can't put in order.
    """
    if meta.ndim == 1:
        _check(meta.dtype, str(meta.name))
        return
    for place, dtype in enumerate(meta.dtypes):
        _check(dtype, str(meta.columns[place]))
    index = meta.index
    for level in range(index.nlevels):
        _check(index.get_level_values(level).dtype, _level_name(index, level))


def _check(dtype: Any, name: str) -> None:
    of_numpy = isinstance(dtype, np.dtype) and dtype.kind in "cV"  # complex numbers, structures
    of_arrow = isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).endswith("_view")
    if of_numpy or of_arrow or isinstance(dtype, pd.SparseDtype):
        raise UnsupportedDtype(name, str(dtype))


def _level_name(index: Any, place: int) -> str:
    name = index.names[place]
    return "index" if name is None else str(name)


def _shown(names: Any) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:_SHOWN_MAX])
    return shown + (f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else "")
