"""What dask is told while there is a client, beside which scheduler it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import dask.config

_OUR_FRAMES: Final = re.escape(str(Path(__file__).parents[1])) + r"[\\/]"
_CHOICES: Final = ("dataframe.shuffle.method", "array.rechunk.method")


def settings_with_client() -> dict[str, Any]:
    """Settings for `dask.config.set`; what a user has set stays."""
    return {**_methods(), **_hidden_frames()}


def _methods() -> dict[str, str]:
    """Ways to shuffle that dask would else choose because there is a client, and we don't have."""
    return {name: "tasks" for name in _CHOICES if dask.config.get(name, None) is None}


def _hidden_frames() -> dict[str, list[str]]:
    """Which frames dask leaves out of tracebacks, ours too; none if a user wants them all."""
    hidden = dask.config.get("admin.traceback.shorten", None)
    if not hidden or _OUR_FRAMES in hidden:
        return {}
    return {"admin.traceback.shorten": [*hidden, _OUR_FRAMES]}
