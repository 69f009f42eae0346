"""A column as it was found, to the type that was declared for it, if that one holds as much.

Metas are often a little wrong: dask's own says that the sums of 32-bit numbers have 32 bits.  What
was found is never made narrower for that, whatever its values happen to be: it keeps its type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from shoal.shuffle.errors import SchemaMismatch

_FAMILY_BY_INFERENCE: Final = {
    "string": "text",
    "bytes": "bytes",
    "boolean": "truth",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "datetime64": "instant",
    "datetime": "instant",
    "date": "instant",
    "timedelta64": "duration",
    "timedelta": "duration",
}
_NUMERIC: Final = {"truth", "number"}
_UNITS: Final = {"instant", "duration"}
"""Families whose types differ in how much they hold, so that one can be kept for the other."""


def conform(found: Any, declared: Any, name: str, input_partition: int | None) -> Any:
    """`found`, a Series, as one of type `declared`, or as it is where that type holds less.

    Converted is what a reader of both would call equal: a partition that is empty or has missing
    values alone, narrower numbers and coarser times, texts however they are held, categories for
    values.  Numbers and times of a type that holds more, and those with missing values where the
    declared type has none, stay as they are, and so does what is no text where texts are declared.

    Args:
        input_partition: None if whatever can't be converted stays as it is.

    Raises:
        SchemaMismatch: it is another kind of thing, or not among the declared categories.

    Cost: none for the declared type itself; else a few passes.
    """
    if _is_same_type(found.dtype, declared):
        return found
    try:
        converted, why = _converted(found, declared)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        converted, why = None, f"{error}"
    if converted is not None:
        return converted
    if input_partition is None or says_nothing(declared) or _stays(found, declared):
        return found
    raise SchemaMismatch(input_partition, name, _kind_of(found), str(declared), why)


def is_open(categories: Any) -> bool:
    """Whether a declared type's categories stand for others that aren't known yet."""
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return UNKNOWN_CATEGORIES in categories


def open_categories() -> Any:
    """The type of categoricals whose categories aren't known."""
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return pd.CategoricalDtype([UNKNOWN_CATEGORIES])


def says_nothing(declared: Any) -> bool:
    """Whether it is what dask declares of columns of which it knows nothing: texts, for objects of
    any kind and for categories that it does not know."""
    return bool(_family_of_type(declared) == "text")


def _is_same_type(found: Any, declared: Any) -> bool:
    """Whether values of the one are stored as those of the other: the same codes, if any."""
    if not (isinstance(found, pd.CategoricalDtype) and isinstance(declared, pd.CategoricalDtype)):
        return bool(found == declared)
    if is_open(declared.categories):
        return True
    same = bool(found.categories.equals(declared.categories))  # which asks for the same order
    return same and bool(found.ordered == declared.ordered)


def _converted(found: Any, declared: Any) -> tuple[Any, str]:
    """The Series converted, or None and why not."""
    if len(found) == 0:
        return pd.Series([], dtype=_known(declared)), ""
    missing = found.isna()
    if missing.all():
        return _missing_values(found, declared)
    if isinstance(declared, pd.CategoricalDtype):
        return _categorised(found, declared)
    if not _holds(declared, found, has_missing=missing.any()):
        return None, ""  # it stays as it is, and nobody asks why
    if isinstance(found.dtype, pd.CategoricalDtype):
        found = found.astype(found.cat.categories.dtype)
    if _is_object(declared):
        return found.astype(object), ""
    family, wanted = _family_of(found), _family_of_type(declared)
    if family != wanted and (family, wanted) != ("truth", "number"):
        return None, f"it holds {family or 'what has no common type'}"
    if isinstance(declared, pd.ArrowDtype):
        array = pa.array(found, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return pd.Series(pd.array(array.cast(declared.pyarrow_dtype), dtype=declared)), ""
    if wanted == "instant":
        return _instants(found, declared)
    converted = found.astype(declared)
    return (converted, "") if _is_same(found, converted) else (None, "some values would change")


def _known(declared: Any) -> Any:
    """The type, without categories that only stand for others."""
    if isinstance(declared, pd.CategoricalDtype) and is_open(declared.categories):
        return pd.CategoricalDtype(declared.categories[:0], declared.ordered)
    return declared


def _missing_values(found: Any, declared: Any) -> tuple[Any, str]:
    if _is_object(declared):
        return found.astype(object), ""
    if not _can_miss(declared):
        if not isinstance(found.dtype, np.dtype) and _stays(found, declared):
            return found, ""  # whole numbers beside it would be floats
        # As pandas does when it aligns or merges.
        declared = np.dtype(object if declared.kind == "b" else np.float64)
        if _is_same_type(found.dtype, declared):
            return found, ""
    one = pd.Series([None], dtype=_known(declared))
    return one.take(np.zeros(len(found), np.intp)), ""


def _stays(found: Any, declared: Any) -> bool:
    """Whether both hold things of one kind, of which types have more and less: numbers, times."""
    families = {_family_of(found), _family_of_type(declared)}
    return families <= _NUMERIC or (len(families) == 1 and families <= _UNITS)


def _holds(declared: Any, found: Any, *, has_missing: bool) -> bool:
    """Whether the declared type has every value that the type of `found` can have, if types tell;
    where they don't, its values do."""
    if not _stays(found, declared):
        return True
    if has_missing and not _can_miss(declared):
        return False
    wide, narrow = _as_numpy(declared), _as_numpy(found.dtype)
    if wide is None or narrow is None:
        return True
    return bool(np.result_type(wide, narrow) == wide)


def _as_numpy(dtype: Any) -> Any:
    """Numpy's type for the values of a type, missing ones aside; None if it has none."""
    if isinstance(dtype, np.dtype):
        return None if _is_object(dtype) else dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return np.dtype(f"M8[{dtype.unit}]")
    made = getattr(dtype, "numpy_dtype", None)
    return None if made is None or _is_object(made) else made


def _can_miss(declared: Any) -> bool:
    return not (isinstance(declared, np.dtype) and declared.kind in "biu")


def _categorised(found: Any, declared: Any) -> tuple[Any, str]:
    """Other categories, or values, as the declared categories."""
    if is_open(declared.categories):
        return found.astype(pd.CategoricalDtype(ordered=declared.ordered)), ""
    values = found.cat.remove_unused_categories() if hasattr(found, "cat") else found
    present = values.cat.categories if hasattr(values, "cat") else pd.Index(values.dropna())
    if found.dtype == "category" and found.cat.ordered and declared.ordered:
        places = declared.categories.get_indexer(present)
        if not (np.diff(places[places >= 0]) > 0).all():
            return None, "its categories are in another order"
    strange = present.unique().difference(declared.categories, sort=False)
    if len(strange):
        shown = ", ".join(repr(value) for value in strange[:3].tolist())
        return None, f"{len(strange)} of its values are no declared categories, such as {shown}"
    if hasattr(values, "cat"):
        return values.cat.set_categories(declared.categories, ordered=declared.ordered), ""
    return values.astype(declared), ""


def _instants(found: Any, declared: Any) -> tuple[Any, str]:
    """Points in time to another unit or zone: the same points, to the last digit."""
    instants = pd.Series(pd.to_datetime(found)) if _is_object(found.dtype) else found
    zone, has_zone = getattr(declared, "tz", None), getattr(instants.dtype, "tz", None)
    if (zone is None) != (has_zone is None):
        return None, "one has a time zone, the other has none"
    converted = instants.astype(declared)
    same = instants.astype(object).equals(converted.astype(object))
    return (converted, "") if same else (None, "it is more precise")


def _is_same(found: Any, converted: Any) -> bool:
    """Whether nothing was lost: the way back leads to the same, and they compare equal."""
    if _family_of_type(converted.dtype) == "text":
        return True  # the same texts, held in another way
    present = (~found.isna()).to_numpy()
    left, right = found[present].reset_index(drop=True), converted[present].reset_index(drop=True)
    numbers = _family_of_type(converted.dtype) in _NUMERIC
    if numbers and not _is_object(found.dtype) and not np.equal(left, right).all():
        return False
    return bool(left.equals(right.astype(found.dtype)))


def _family_of(found: Any) -> str:
    if _is_object(found.dtype):
        return _FAMILY_BY_INFERENCE.get(pd.api.types.infer_dtype(found, skipna=True), "")
    return _family_of_type(found.dtype)


def _family_of_type(dtype: Any) -> str:
    """What kind of thing a type holds, in a word; "" if there is no such word."""
    types = pd.api.types
    if _is_object(dtype):
        return ""
    for family, is_of in (
        ("complex", types.is_complex_dtype),
        ("truth", types.is_bool_dtype),
        ("number", types.is_numeric_dtype),
        ("instant", types.is_datetime64_any_dtype),
        ("duration", types.is_timedelta64_dtype),
        ("text", types.is_string_dtype),
    ):
        if is_of(dtype):
            return family
    return str(dtype).split("[", maxsplit=1)[0]


def _is_object(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _kind_of(found: Any) -> str:
    """A column's type, and where that says nothing, what its values are."""
    if _is_object(found.dtype):
        return f"object ({pd.api.types.infer_dtype(found, skipna=True)})"
    return str(found.dtype)
