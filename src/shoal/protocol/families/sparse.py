"""Sparse matrices and arrays, of scipy and of the library `sparse`.

They pickle with their arrays beside the stream, so this is only for programs that ask for the
family `dask`.
"""

from __future__ import annotations

import sys
from typing import Any

from shoal.protocol.families.registry import learn
from shoal.protocol.families.wholes import from_value, to_value


def teach() -> None:
    """For the registry: the bases of what is in use."""
    scipy: Any = sys.modules.get("scipy.sparse")
    if scipy is not None:
        learn(scipy.spmatrix, from_value, to_value)
        learn(scipy.sparray, from_value, to_value)
    sparse: Any = sys.modules.get("sparse")
    if sparse is not None:
        learn(sparse.SparseArray, from_value, to_value)
