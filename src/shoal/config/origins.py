"""Where the value of a setting comes from: a file, a variable, a program, or nowhere."""

import os
from collections.abc import Mapping
from typing import Any, Final

import dask.config

from shoal.config.environment import name_of
from shoal.config.legacy import OLD_NAMES

DEFAULT: Final = "the default"
_BY_PROGRAM: Final = "dask.config.set"
_UNSET: Final[Any] = object()


class Origins:
    """What files and variables say now; made once, for many questions.

    Cost: reads every file of dask's configuration.
    """

    def __init__(self) -> None:
        found = dask.config.collect_yaml(dask.config.paths, return_paths=True)
        self._files: list[tuple[str, Any]] = [(str(path), content) for path, content in found]
        self._variables: dict[str, str] = {name: name_of(name) for name in os.environ}

    def of(self, new: str) -> str:
        """Where `shoal.<new>` was set, and as what if that is its name in `distributed`.

        A variable comes before a file, and the last of several files is the one that counts.
        """
        for name in names_of(new):
            source = self._source(name)
            if source:
                return source if name.startswith("shoal.") else f"{source}, as {name}"
        return DEFAULT

    def _source(self, name: str) -> str:
        """Where this very name was set; "" if it was not."""
        value = dask.config.get(name, default=_UNSET)
        if value is _UNSET:
            return ""
        given_up = [old for old, new in dask.config.deprecations.items() if new == name]
        names = [name, *given_up]
        for variable, found in self._variables.items():
            if found in names or found.startswith(f"{name}."):
                return variable
        paths = [
            path
            for path, content in self._files
            if any(_get(each, content) is not _UNSET for each in names)
        ]
        if paths:
            return paths[-1]
        for entered in reversed(dask.config.defaults):  # those that the drop-in has brought
            if _get(name, entered) is not _UNSET:
                is_untouched: bool = _get(name, entered) == value
                return "" if is_untouched else _BY_PROGRAM
        return _BY_PROGRAM


def names_of(new: str) -> list[str]:
    """The full names under which the setting is looked for; the first that is set counts."""
    return [f"shoal.{new}", *([f"distributed.{OLD_NAMES[new]}"] if new in OLD_NAMES else [])]


def _get(name: str, config: Mapping[str, Any]) -> Any:
    return dask.config.get(name, default=_UNSET, config=dict(config))
