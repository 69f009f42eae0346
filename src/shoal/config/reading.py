"""Reading a section: from the arguments of a program, or from where dask's configuration has it."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import dask.config
import msgspec

from shoal.config import environment
from shoal.config.base import Settings, setting_names
from shoal.config.checking import checked, refuse_unknown, refuse_value_of_section
from shoal.config.legacy import OLD_NAMES
from shoal.config.sections import SECTIONS

S = TypeVar("S", bound=Settings)

UNSET: Final[Any] = object()
"""In place of a value."""


def read(section: type[S], **overrides: object) -> S:
    """The settings of `section` as they are now; an override that isn't None wins.

    Args:
        section: one of `SECTIONS`.
        overrides: by field name; what a program passed as an argument.

    Raises:
        SettingError: a value of the wrong type or out of range, or a name that doesn't exist.

    Cost: some microseconds per field; meant for the start of a service.
    """
    _refuse_unknown(section)
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(section):
        override = overrides.pop(field.name, None)
        full_name, value = look_up(f"{section.path}.{field.encode_name}")
        if override is not None:
            full_name, value = field.name, override
        if value is not UNSET:
            found[field.name] = checked(full_name, field.name, field.type, value)
    if overrides:
        raise TypeError(f"{section.__name__} has no setting {', '.join(overrides)}")
    return section(**found)


def full_name_of(new: str) -> str:
    """Under which name the setting `new`, without its `shoal.`, is found; ours, if it isn't."""
    full_name, value = look_up(new)
    return f"shoal.{new}" if value is UNSET else full_name


def look_up(new: str) -> tuple[str, Any]:
    """Under which name the setting `new`, without its `shoal.`, was given, and its value as it was
    written there; `UNSET` if it was not."""
    environment.renew()
    full_name = f"shoal.{new}"
    value = dask.config.get(full_name, default=UNSET)
    if value is UNSET and new in OLD_NAMES:
        full_name = f"distributed.{OLD_NAMES[new]}"
        value = dask.config.get(full_name, default=UNSET)
    return full_name, value


def _refuse_unknown(section: type[Settings]) -> None:
    environment.renew()
    given = dask.config.get(f"shoal.{section.path}", default={})
    refuse_value_of_section(f"shoal.{section.path}", given)
    if isinstance(given, Mapping):
        below = f"{section.path}."
        inside = [s.path[len(below) :] for s in SECTIONS if s.path.startswith(below)]
        refuse_unknown(
            section.path,
            given,
            list(setting_names(section).values()),
            [path.partition(".")[0] for path in inside],
        )
