"""Marks of tests that need something which is not always there."""

from importlib.util import find_spec

import pytest

from shoal.client.dask_settings import drop_in_is_ours

needs_name = pytest.mark.skipif(
    not (drop_in_is_ours() and find_spec("pyarrow")),
    reason="dask finds shuffles by the name `distributed`, and sends them by pyarrow",
)
