"""Variables of the environment: `SHOAL_COMM__CONNECT_SECONDS` is `shoal.comm.connect-seconds`.

Dask reads `DASK_SHOAL__COMM__CONNECT_SECONDS` and `DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT` by
itself.  Those without the first word are put beside them here, as the first section is read; they
win over files, and whatever a program has set wins over them.
"""

import os
from collections.abc import Mapping
from typing import Final

import dask.config

PREFIX: Final = "SHOAL_"
_DASK: Final = "DASK_"
_LEVEL: Final = "__"
"""A name without it is none of a setting: SHOAL_TOKEN is no section."""


def name_of(variable: str) -> str:
    """The full name of the setting that this variable sets; "" if it is none.

    Names on the left and on the right are written alike, with dashes.
    """
    if variable.startswith(PREFIX) and _LEVEL in variable:
        variable = _DASK + "SHOAL" + _LEVEL + variable.removeprefix(PREFIX)
    if not variable.startswith(_DASK):
        return ""
    return variable.removeprefix(_DASK).lower().replace(_LEVEL, ".").replace("_", "-")


def enter(environ: Mapping[str, str] | None = None) -> None:
    """Put what the variables say into dask's configuration, where no program has set it."""
    given = {
        variable: value
        for variable, value in (os.environ if environ is None else environ).items()
        if variable.startswith(PREFIX) and _LEVEL in variable
    }
    if not given:
        return
    files = dask.config.merge(*dask.config.collect_yaml(dask.config.paths))
    for variable, text in given.items():
        name, as_dask = name_of(variable), f"{_DASK}SHOAL{_LEVEL}{variable.removeprefix(PREFIX)}"
        now, in_files = (
            dask.config.get(name, default=None, config=each) for each in (dask.config.config, files)
        )
        if now is None or now == in_files:
            value = dask.config.get(name, config=dask.config.collect_env({as_dask: text}))
            dask.config.set({name: value})
