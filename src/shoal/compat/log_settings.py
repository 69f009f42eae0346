"""`distributed.config`: logging as the section `logging` of the configuration wants it."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Mapping
from typing import Any, Final

import dask.config

from shoal.config import Logs, read

logging_names: Final[dict[str | int, str | int]] = {}
for _name, _number in logging.getLevelNamesMapping().items():
    logging_names[_name] = _number
    logging_names[_number] = logging.getLevelName(_number)
"""Name of a level → its number, and back."""

_SECTIONS: Final = ("logging", "logging-file-config")
_OURS: Final = {"distributed": "shoal"}


DEFAULTS: Final = {
    "distributed": "info",
    "distributed.client": "warning",
    "distributed.gc": "warning",
    "bokeh": "error",
    "tornado": "critical",
    "tornado.application": "error",
}
"""Levels of loggers that programs know by these names, unless the configuration has others."""


def initialize_logging(config: dict[Any, Any]) -> None:
    """Set logging up.

    `logging-file-config` names a file for `logging.config.fileConfig`; `logging` is what
    `dictConfig` takes if it has a `version`, else logger → level.  What is said there of
    `distributed` holds for `shoal`.

    Raises:
        RuntimeError: both are given.
    """
    merged = config.get("distributed", {}) | config
    sections, path = merged.get("logging"), merged.get("logging-file-config")
    if path and sections:
        raise RuntimeError("Config options 'logging-file-config' and 'logging' are exclusive")
    if path:
        logging.config.fileConfig(path, disable_existing_loggers=False)
    elif sections and "version" in sections:
        logging.config.dictConfig(_with_ours(sections))
    else:
        _set_levels(sections or {})


def heed_configuration() -> None:
    """Set logging up as dask's configuration says.

    If it says nothing, what is logged under the names of `distributed` goes to stderr; our own
    loggers stay as they are, and so does everything once a service's process has set it up.
    """
    settings = dask.config.config
    sections = (settings, settings.get("distributed", {}))
    is_set = any(section.get(name) for section in sections for name in _SECTIONS)
    if is_set or not logging.getLogger("distributed").handlers:
        initialize_logging(settings)


def _with_ours(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with our names beside the old ones."""
    loggers = dict(sections.get("loggers", {}))
    for name, settings in list(loggers.items()):
        loggers.setdefault(_our_name(name), settings)
    return {**sections, "version": int(sections["version"]), "loggers": loggers}


def _our_name(name: str) -> str:
    first, dot, rest = name.partition(".")
    return _OURS.get(first, first) + dot + rest


def _set_levels(levels: Mapping[str, Any]) -> None:
    """Set these and the defaults; to stderr, unless the program has set up the root logger."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(read(Logs).format))
    ours = {_our_name(name): level for name, level in levels.items()}
    for name, level in (DEFAULTS | ours | dict(levels)).items():
        number = logging_names[level.upper()] if isinstance(level, str) else level
        logger = logging.getLogger(name)
        logger.setLevel(int(number))
        if not logging.root.handlers:
            logger.handlers[:] = [handler]
            logger.propagate = False
