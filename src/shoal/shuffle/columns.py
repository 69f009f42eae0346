"""Columns as Arrow arrays and back, to the bit: one class for each way of holding values.

Arrow carries them, and is not asked what they mean: floats with their NaNs, instants, periods and
codes of categories travel as plain integers of the same width, so that pandas gets back exactly
what it gave.  What Arrow has a type for and pandas keeps as such, travels as that type.  Whatever
else there is, is pickled, by output partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from shoal.shuffle.conforming import is_open, open_categories, says_nothing
from shoal.shuffle.errors import CategoriesMismatch

_UNSIGNED_BY_WIDTH: Final = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}
_CODE: Final = np.dtype(np.int32)
_TEXT_NBYTES: Final = 24.0
"""Of a text in a shard, where it ends included."""
_OBJECT_FACTOR: Final = 4.5
"""Of texts as Python objects; longer ones take less, other objects more."""


_POOL: Final = pa.system_memory_pool()
"""What is freed goes back to the system; Arrow's own pool would keep it."""


class Encoded(NamedTuple):
    """Rows of a column in the order in which they are sent."""

    array: Any
    """For the record batch; of nulls, if all is in what is beside it."""
    beside: Callable[[int, int], object] | None = None
    """What a shard of the rows from a to b has besides; None for columns that have nothing."""


Taking: TypeAlias = Callable[[Any], Encoded]
"""Rows of a column, of which these are the positions, an Arrow array."""


class Column(ABC):
    """How the values of one declared column, or index level, travel."""

    join_factor = 1.1
    """Bytes that `decode` takes at its peak, for one of a shard; measured."""
    row_nbytes = 16.0
    """Of a row in a shard; what is of no fixed width is taken to be of middling size."""

    def __init__(self, name: str, dtype: Any) -> None:
        """`name` is shown in errors; `dtype` the declared one, of pandas."""
        self.name, self.dtype = name, dtype

    def carries(self, dtype: Any) -> bool:
        """Whether values of that type travel in this way."""
        return bool(dtype == self.dtype)

    @abstractmethod
    def encode(self, values: Any) -> Taking:
        """The values, a Series of a type that it carries, from which rows can be taken."""

    @abstractmethod
    def type_in(self, beside: Any) -> Any:
        """The Arrow type in a shard that has this beside its batch."""

    @abstractmethod
    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        """One after the other, as what a Series is made of; it owns its memory.

        `arrays` are of one shard each, at least one; `beside` what each shard has besides.
        """


class Fixed(Column):
    """Values of one width: numbers, instants, durations, periods, codes. Nothing is interpreted."""

    def __init__(self, name: str, dtype: Any, storage: np.dtype[Any]) -> None:
        """`storage`: numpy's type for the values."""
        super().__init__(name, dtype)
        self._storage = storage
        self.row_nbytes = storage.itemsize
        self._type = _UNSIGNED_BY_WIDTH.get(storage.itemsize) or pa.binary(storage.itemsize)

    def encode(self, values: Any) -> Taking:
        numbers = self._stored(values)
        if numbers.flags.c_contiguous:
            return _taking(self._as_arrow(numbers))
        # One of several in a row: numpy gathers such without copying the whole column first.
        return lambda order: Encoded(self._as_arrow(numbers[order.to_numpy()]))

    def _as_arrow(self, numbers: Any) -> Any:
        return pa.Array.from_buffers(self._type, len(numbers), [None, pa.py_buffer(numbers)])

    def type_in(self, beside: Any) -> Any:
        return self._type

    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        return self._restored(self._joined(arrays))

    def _joined(self, arrays: Sequence[Any]) -> Any:
        width = self._storage.itemsize
        return np.concatenate(
            [
                np.frombuffer(array.buffers()[1], self._storage, len(array), array.offset * width)
                for array in arrays
            ]
        )

    def _stored(self, values: Any) -> Any:
        return values.to_numpy()

    def _restored(self, numbers: Any) -> Any:
        return numbers


class Zoned(Fixed):
    """Instants with a time zone, as instants of UTC."""

    join_factor = 2.0

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype, np.dtype(f"M8[{dtype.unit}]"))

    def _stored(self, values: Any) -> Any:
        return pd.DatetimeIndex(values).asi8

    def _restored(self, numbers: Any) -> Any:
        return pd.DatetimeIndex(numbers).tz_localize("UTC").tz_convert(self.dtype.tz).array


class Periods(Fixed):
    """Periods, as their ordinal numbers."""

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype, np.dtype(np.int64))

    def _stored(self, values: Any) -> Any:
        return pd.PeriodIndex(values).asi8

    def _restored(self, numbers: Any) -> Any:
        return pd.PeriodIndex.from_ordinals(numbers, freq=self.dtype.freq).array


class KnownCategories(Fixed):
    """Categoricals of declared categories, as their codes."""

    def __init__(self, name: str, dtype: Any) -> None:
        codes = pd.Categorical.from_codes([], dtype=dtype).codes
        super().__init__(name, dtype, codes.dtype)

    def _stored(self, values: Any) -> Any:
        return values.cat.codes.to_numpy()

    def _restored(self, numbers: Any) -> Any:
        return pd.Categorical.from_codes(numbers, dtype=self.dtype)


class OpenCategories(Fixed):
    """Categoricals whose categories aren't declared: each shard brings its own.

    A shard with fewer rows than there are categories brings those that it uses, so that it is
    never larger than its rows make it; the joined column has the categories of all shards, in the
    order in which they first come.
    """

    join_factor = 4.0

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name, dtype, _CODE)

    def carries(self, dtype: Any) -> bool:
        return isinstance(dtype, pd.CategoricalDtype)

    def encode(self, values: Any) -> Taking:
        take_codes = super().encode(values)
        categories, ordered = values.cat.categories, values.cat.ordered

        def take(order: Any) -> Encoded:
            array = take_codes(order).array
            codes = np.frombuffer(array.buffers()[1], _CODE, len(array))

            def beside(start: int, stop: int) -> object:
                if ordered or len(categories) <= stop - start:
                    return None, categories, ordered
                used = np.unique(codes[start:stop])
                used = used[used >= 0]
                return used, categories.take(used), ordered

            return Encoded(array, beside)

        return take

    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        pieces = []
        for array, (used, categories, ordered) in zip(arrays, beside, strict=True):
            codes = self._joined([array])
            if used is not None:
                codes = np.where(codes < 0, -1, np.searchsorted(used, codes))
            pieces.append((codes, categories, ordered))
        categories, ordered = _united([(piece[1], piece[2]) for piece in pieces], self.name)
        codes = np.concatenate([_recoded(codes, own, categories) for codes, own, _ in pieces])
        return pd.Categorical.from_codes(codes, categories, ordered=ordered)

    def _stored(self, values: Any) -> Any:
        return values.cat.codes.to_numpy().astype(_CODE)


class Native(Column):
    """What Arrow has a type for: texts, nullable numbers, and all of `pandas.ArrowDtype`."""

    def __init__(self, name: str, dtype: Any, type: Any) -> None:
        """`type`: of Arrow."""
        super().__init__(name, dtype)
        self._type = type
        if isinstance(dtype, pd.StringDtype):
            self.row_nbytes = _TEXT_NBYTES
            if dtype.storage == "python":
                self.join_factor = _OBJECT_FACTOR
        elif not isinstance(dtype, pd.ArrowDtype):
            self.row_nbytes = dtype.itemsize
            self.join_factor = 2.2  # pandas makes two arrays of Arrow's one

    def encode(self, values: Any) -> Taking:
        array = pa.array(values.array)
        if isinstance(array, pa.ChunkedArray):
            array = _in_one_piece(array.chunks, array.type)
        if array.type != self._type:
            array = array.cast(self._type)
        return _taking(array)

    def type_in(self, beside: Any) -> Any:
        return self._type

    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        return self.dtype.__from_arrow__(_in_one_piece(arrays, self._type))


class Objects(Column):
    """Python objects: as Arrow's texts or bytes if all of them are, with one kind of missing
    values; else pickled."""

    join_factor = _OBJECT_FACTOR
    row_nbytes = _TEXT_NBYTES
    _TYPES: Final = {"string": pa.large_string(), "bytes": pa.large_binary()}

    def encode(self, values: Any) -> Taking:
        objects = values.to_numpy()
        inferred = pd.api.types.infer_dtype(objects, skipna=True)
        missing = _kind_missing(objects) if inferred in self._TYPES else None
        if missing is not None:
            try:
                array = pa.array(objects, self._TYPES[inferred], from_pandas=True)
            except (UnicodeEncodeError, pa.ArrowException):
                missing = None  # texts that aren't Unicode; such as half a surrogate pair
            else:
                told = (inferred, missing, None)
                return lambda order: Encoded(_taken(array, order), lambda start, stop: told)

        def take(order: Any) -> Encoded:
            taken = objects.take(order.to_numpy())
            return Encoded(pa.nulls(len(taken)), lambda start, stop: ("", "", taken[start:stop]))

        return take

    def type_in(self, beside: Any) -> Any:
        return self._TYPES.get(beside[0], pa.null())

    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        pieces = []
        for array, (inferred, missing, objects) in zip(arrays, beside, strict=True):
            pieces.append(_as_objects(array, missing) if inferred else objects)
        return np.concatenate(pieces)


class Pickled(Column):
    """Types of pandas or of others that travel as they pickle, in slices."""

    join_factor = 9.0

    def encode(self, values: Any) -> Taking:
        array = values.array

        def take(order: Any) -> Encoded:
            taken = array.take(order.to_numpy())
            return Encoded(pa.nulls(len(taken)), lambda start, stop: taken[start:stop])

        return take

    def type_in(self, beside: Any) -> Any:
        return pa.null()

    def decode(self, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
        if len(beside) == 1:
            return beside[0]
        return pd.concat([pd.Series(piece) for piece in beside], ignore_index=True).array


class Other(NamedTuple):
    """What a shard has beside its batch of a column that is not of the declared type there."""

    dtype: Any
    """Of categoricals, without their categories, which are in `beside`."""
    beside: object
    """As the way in which that type travels has it."""


def encode_other(name: str, values: Any) -> Taking:
    """Rows of a Series that keeps its own type: each shard tells it."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):  # else each shard would bring all categories
        dtype = open_categories()
    take_own = column_for(name, dtype).encode(values)

    def take(order: Any) -> Encoded:
        array, beside = take_own(order)
        return Encoded(array, lambda start, stop: Other(dtype, beside and beside(start, stop)))

    return take


def decode_mixed(column: Column, arrays: Sequence[Any], beside: Sequence[Any]) -> Any:
    """What `column.decode` gives, where some shards are of another type than the declared one: of
    the type that pandas has for all of them together.

    Missing values alone have no say in that where the declared type says nothing: they may have
    been of any type.

    Cost: that of `column.decode` if all are of one type; else another copy.
    """
    pieces: list[Any] = []
    without: list[int] = []
    for (_, dtype), run in groupby(zip(arrays, beside, strict=True), key=_own_type):
        its_arrays, told = zip(*run, strict=True)
        if dtype is None:
            values = column.decode(its_arrays, told)
        else:
            values = column_for(column.name, dtype).decode(its_arrays, [own for _, own in told])
        piece = pd.Series(values, dtype=None if has_own_type(values) else object, copy=False)
        if dtype is None and says_nothing(column.dtype) and piece.isna().all():
            without.append(len(pieces))
        pieces.append(piece)
    if len(pieces) == 1:
        return values
    other = next(piece for place, piece in enumerate(pieces) if place not in without)
    for place in without:
        pieces[place] = other.iloc[:0].reindex(range(len(pieces[place])))
    joined = pd.concat(pieces, ignore_index=True)
    if not isinstance(joined.dtype, np.dtype):
        return joined.array
    values = joined.to_numpy()
    values.flags.writeable = True  # pandas protects it for the Series, which nobody else has
    return values


def _own_type(shard: tuple[Any, Any]) -> tuple[Any, Any]:
    """What is equal for shards of one type; (None, None) for the declared one."""
    told = shard[1]
    # Types of different libraries aren't asked whether they are equal.
    return (type(told.dtype), told.dtype) if isinstance(told, Other) else (None, None)


def has_own_type(values: Any) -> bool:
    """Whether pandas won't infer another type for these values."""
    return not (isinstance(values, np.ndarray) and values.dtype == object)


def column_for(name: str, dtype: Any) -> Column:
    """The way in which values of this declared type travel."""
    if isinstance(dtype, pd.CategoricalDtype):
        return (OpenCategories if is_open(dtype.categories) else KnownCategories)(name, dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Zoned(name, dtype)
    if isinstance(dtype, pd.PeriodDtype):
        return Periods(name, dtype)
    if isinstance(dtype, pd.StringDtype):
        return Native(name, dtype, pa.large_string())
    if isinstance(dtype, pd.ArrowDtype):
        plain = _is_plain(dtype.pyarrow_dtype)
        return Native(name, dtype, dtype.pyarrow_dtype) if plain else Pickled(name, dtype)
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return Objects(name, dtype)
        return Fixed(name, dtype, dtype)
    masked = getattr(dtype, "numpy_dtype", None)
    if masked is not None and type(dtype).__module__.split(".")[0] == "pandas":
        return Native(name, dtype, pa.from_numpy_dtype(masked))
    return Pickled(name, dtype)


def _in_one_piece(arrays: Sequence[Any], type: Any) -> Any:
    return pa.concat_arrays(arrays, _POOL) if len(arrays) else pa.array([], type)


def _taking(array: Any) -> Taking:
    return lambda order: Encoded(_taken(array, order))


def _taken(array: Any, order: Any) -> Any:
    # `order` is made of the array's positions.
    return pc.take(array, order, boundscheck=False, memory_pool=_POOL)


def _is_plain(type: Any) -> bool:
    """Whether arrays of the type are complete without a dictionary, and shorter when sliced."""
    waiting = [type]
    while waiting:
        one = waiting.pop()
        if pa.types.is_nested(one) and not pa.types.is_union(one):
            waiting += [one.field(place).type for place in range(one.num_fields)]
        elif (
            pa.types.is_dictionary(one)
            or pa.types.is_union(one)
            or isinstance(one, pa.BaseExtensionType)
            or str(one).endswith("_view")
            or str(one).startswith("run_end_encoded")
        ):
            return False
    return True


def _kind_missing(objects: Any) -> str | None:
    """What all missing values are: "none" (also if there are none), "nan", or None: several."""
    missing = objects[pd.isna(objects)]
    if all(value is None for value in missing):
        return "none"
    return "nan" if all(type(value) is float for value in missing) else None


def _as_objects(array: Any, missing: str) -> Any:
    objects = array.to_numpy(zero_copy_only=False)
    if missing == "nan" and array.null_count:
        objects[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return objects


def _united(pieces: Sequence[tuple[Any, bool]], name: str) -> tuple[Any, bool]:
    """All categories in the order in which they first come, and whether that order means
    something."""
    first, ordered = pieces[0]
    if all(own is first or (own.dtype == first.dtype and own.equals(first)) for own, _ in pieces):
        return first, ordered
    some = [piece for piece in pieces if len(piece[0])] or pieces[:1]
    if any(ordered for _, ordered in some):
        raise CategoriesMismatch(name)
    kinds = {str(own.dtype): own.dtype for own, _ in some}
    dtype = next(iter(kinds.values())) if len(kinds) == 1 else object
    values = [own.astype(dtype) for own, _ in some]
    return values[0].append(values[1:]).unique(), False


def _recoded(codes: Any, own: Any, categories: Any) -> Any:
    """Codes of some categories as codes of others, among which those are."""
    if own is categories or len(own) == 0:
        return codes
    place = categories.get_indexer(own.astype(categories.dtype))
    return np.where(codes < 0, -1, place[codes])
