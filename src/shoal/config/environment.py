"""Variables of the environment: `SHOAL_COMM__CONNECT_SECONDS` is `shoal.comm.connect-seconds`.

Dask reads `DASK_SHOAL__COMM__CONNECT_SECONDS` and `DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT` by
itself.  Those without the first word are put beside them here, as the first section is read; they
win over files, and whatever a program has set wins over them.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

import dask.config

from shoal.config.errors import SettingError

PREFIX: Final = "SHOAL_"
_DASK: Final = "DASK_"
_LEVEL: Final = "__"
"""A name without it is none of a setting: SHOAL_TOKEN is no section."""

_NOTHING: Final = object()
_entered: Final[dict[str, Any]] = {}
"""The section `shoal` of dask's configuration as it was when the variables were entered; dask makes
another one when it reads its files anew, and forgets what it did not find itself."""


def name_of(variable: str) -> str:
    """The full name of the setting that this variable sets; "" if it is none.

    Names on the left and on the right are written alike, with dashes.
    """
    if variable.startswith(PREFIX) and _LEVEL in variable:
        variable = _DASK + "SHOAL" + _LEVEL + variable.removeprefix(PREFIX)
    if not variable.startswith(_DASK):
        return ""
    return variable.removeprefix(_DASK).lower().replace(_LEVEL, ".").replace("_", "-")


def renew() -> None:
    """Enter what the variables say if dask's configuration was read anew, or never had it.

    Cost: 0.1 us if it has it.
    """
    if dask.config.config.get("shoal", _NOTHING) is not _entered.get("shoal"):
        enter()
        _entered["shoal"] = dask.config.config.get("shoal", _NOTHING)


def enter(environ: Mapping[str, str] | None = None) -> None:
    """Put what the variables say into dask's configuration, where no program has set it.

    Raises:
        SettingError: one is of a setting in a section that another gives a value itself.
    """
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
        _refuse_hidden(variable, name)
        now, in_files = (
            dask.config.get(name, default=None, config=each) for each in (dask.config.config, files)
        )
        if now is None or now == in_files:
            value = dask.config.get(name, config=dask.config.collect_env({as_dask: text}))
            dask.config.set({name: value})


def _refuse_hidden(variable: str, name: str) -> None:
    """Raise SettingError if a section in which the setting `name` lies is a value itself."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        section = ".".join(parts[:depth])
        value = dask.config.get(section, default=None)
        if value is not None and not isinstance(value, Mapping):
            setters = [each for each in os.environ if name_of(each) == section]
            where = " and ".join(setters) or "a file, or a program"
            raise SettingError(
                section,
                f"{where} sets it to {value!r}, and {variable} sets {name}, which lies in it",
                f"Leave out {where}, or {variable}.",
            )
