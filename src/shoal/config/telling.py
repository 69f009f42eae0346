"""Settings that were set and change nothing are told of, once in a process.

Those that are known (`unheeded.py`), and names that are none (`misspelt.py`).
"""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, Final

import dask.config

from shoal.config import environment
from shoal.config.base import setting_names
from shoal.config.checking import checked, refuse_unknown, refuse_value_of_section
from shoal.config.errors import SettingError
from shoal.config.misspelt import misspelt
from shoal.config.reading import UNSET, look_up
from shoal.config.sections import SECTIONS
from shoal.config.unheeded import NOT_YET, UNHEEDED
from shoal.units import to_nbytes, to_seconds

logger = logging.getLogger("shoal.config")

_told: Final[dict[str, None]] = {}


def tell_of_unheeded() -> None:
    """Log a warning for each setting that is away from its default and changes nothing, and for
    each name below `distributed.` that is no setting.

    For whoever has the user's ear: a client, a cluster, a command.  The services that these start
    say nothing, as they would all say the same.

    Raises:
        SettingError: one that can't be let go unheeded: encryption is insisted on, or there is no
            such section.

    Cost: some 0.2 ms, if anything is set at all, as it is where the drop-in is installed.
    """
    environment.renew()
    if not dask.config.config.get("distributed") and not dask.config.config.get("shoal"):
        return
    refuse_unknown_sections()
    name, value = look_up("comm.require-encryption")
    if value is not UNSET and checked(name, "require_encryption", bool | None, value):
        raise SettingError(
            name,
            "connections are not encrypted yet, and it insists on that",
            "Leave it out where the network may be trusted: nobody is let in without the token.",
        )
    if dask.config.get("distributed.scheduler.pickle", default=True) is False:
        raise SettingError(
            "distributed.scheduler.pickle",
            "it is False, and what clients have the scheduler run is pickled all the same",
            "Leave it out: nobody is let in without the token.",
        )
    for name, said in chain(unheeded(), unknown()):
        if name not in _told:
            _told[name] = None
            logger.warning("%s", said)


def unknown() -> Iterator[tuple[str, str]]:
    """The full name of what is set below `distributed.` and is no setting, and a sentence."""
    for name, near in misspelt(dask.config.config.get("distributed")):
        advice = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else "`shoal config` shows all that there are."
        )
        yield name, f"There is no setting {name}: what is set there changes nothing. {advice}"


def refuse_unknown_sections() -> None:
    """Raise SettingError where something is set below `shoal.` that is no section."""
    environment.renew()
    given = dask.config.config.get("shoal")
    refuse_value_of_section("shoal", given)
    if isinstance(given, Mapping):
        refuse_unknown("", given, [section.path.partition(".")[0] for section in SECTIONS], ())


def unheeded() -> Iterator[tuple[str, str]]:
    """The full name of each setting that changes nothing though it was set, and a sentence."""
    given = dask.config.config.get("distributed")
    if isinstance(given, Mapping):
        for old, entry in UNHEEDED.items():
            value = dask.config.get(old, default=entry.default, config=dict(given))
            if not is_same(value, entry.default):
                yield f"distributed.{old}", _said(f"distributed.{old}", value, entry.why)
    for new, default in _defaults().items():
        name, value = look_up(new)
        if value is not UNSET and not is_same(value, default):
            yield name, _said(name, value, NOT_YET[new])


@cache
def _defaults() -> dict[str, Any]:
    """The default of each setting of `NOT_YET`."""
    found = {
        f"{section.path}.{last}": getattr(section(), field)
        for section in SECTIONS
        for field, last in setting_names(section).items()
    }
    return {new: found[new] for new in NOT_YET}


def is_same(value: Any, default: Any) -> bool:
    """Whether `value` means the default, however it is written: "1 s" is "1000ms"."""
    if value == default or (not value and not default):
        return True
    if not all(isinstance(each, str | float | int) for each in (value, default)):
        return False
    for convert in (to_seconds, to_nbytes):
        try:
            return convert(value) == convert(default)
        except (ValueError, TypeError):
            continue
    return False


def _said(name: str, value: Any, why: str) -> str:
    return f"The setting {name} is {value!r}, and that changes nothing. {why}"
