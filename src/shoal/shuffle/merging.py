"""Two output partitions of the same number, merged as dask merges partitions."""

from __future__ import annotations

from typing import Any


def merge_frames(
    left: Any,
    right: Any,
    how: str,
    left_on: Any,
    right_on: Any,
    meta: Any,
    suffixes: tuple[str, str],
    left_index: bool,
    right_index: bool,
    indicator: bool = False,
) -> Any:
    """Rows of both frames that belong together; arguments are those of `pandas.merge`.

    Args:
        meta: an empty frame like the result.
    """
    from dask.dataframe import multi

    merge_chunk: Any = multi.merge_chunk  # dask declares no types for it
    return merge_chunk(
        left,
        right,
        how=how,
        left_on=left_on,
        right_on=right_on,
        left_index=left_index,
        right_index=right_index,
        suffixes=suffixes,
        indicator=indicator,
        result_meta=meta,
    )
