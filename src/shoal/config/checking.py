"""Which values and names can be used: texts with units become numbers, misspelt names are told.

What a value is goes by the end of its field's name, a last `_max` aside.  A new kind of value is a
row in `KINDS`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, get_args

import msgspec

from shoal.config.base import Positive
from shoal.config.errors import SettingError
from shoal.units import to_nbytes, to_seconds


def _to_seconds_by_name(value: Any) -> dict[Any, float]:
    return {name: to_seconds(duration) for name, duration in dict(value).items()}


def _to_nbytes_by_name(value: Any) -> dict[Any, int]:
    return {name: to_nbytes(size) for name, size in dict(value).items()}


def _to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _to_event_loop(value: Any) -> Any:
    return "auto" if value == "tornado" else value  # what `distributed` calls what is there anyhow


KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "_seconds": to_seconds,
    "_bytes": to_nbytes,
    "_durations": _to_seconds_by_name,
    "_memory": _to_nbytes_by_name,
    "preload": _to_list,
    "blocked_handlers": _to_list,
    "event_loop": _to_event_loop,
}
"""End of a field's name → what makes of a value, as people write it, one of the field's type."""


def checked(full_name: str, field: str, wanted: Any, value: Any) -> Any:
    """`value` as the type `wanted`; False is None where a setting may be off, 0 where it counts.

    0 is None as well where a setting may be off, and a duration that may be set must be positive.

    Args:
        full_name: how the setting was called where it was set; for the message.
        field: the name of its field, which says the unit.

    Raises:
        SettingError: it has no such meaning.
    """
    choices = get_args(wanted)
    if value is False and type(None) in choices and bool not in choices:
        return None
    if value is False and int in (wanted, *choices):
        value = 0
    try:
        if value is not None:
            for ending, convert in KINDS.items():
                if field.removesuffix("_max").endswith(ending):
                    value = convert(value)
        if value == 0 and type(None) in choices and Annotated[float, Positive] in choices:
            return None
        return msgspec.convert(value, wanted, strict=False)
    except (ValueError, TypeError) as error:
        raise SettingError(
            full_name,
            f"it is {value!r}, and that is not valid ({error})",
            "Change it where it is set: a YAML file, the environment, or dask.config.set.",
        ) from error


def refuse_unknown(
    path: str, given: Mapping[str, Any], known: Collection[str], subsections: Collection[str]
) -> None:
    """A misspelt name would otherwise be ignored in silence, and its default used.

    Args:
        path: of the section; "" for all sections together, which are the settings then.
        given: what is set below `shoal.<path>`.
        known: the section's settings; `subsections`: first words of sections that lie inside it.

    Raises:
        SettingError: the first name that is neither, and what it may have meant.
    """
    for name in given:
        canonical = str(name).replace("_", "-")
        if canonical not in known and canonical not in subsections:
            from difflib import get_close_matches  # only here, as it is rare

            near = get_close_matches(canonical, known, n=1)
            raise SettingError(
                ".".join(filter(None, ("shoal", path, str(name)))),
                "there is no such setting",
                f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}.",
            )


def refuse_value_of_section(name: str, given: Any) -> None:
    """A value in place of a section would hide all that is set in it.

    Raises:
        SettingError: `given` is neither names and values nor nothing.
    """
    if given is not None and not isinstance(given, Mapping):
        raise SettingError(
            name,
            f"it is {given!r}, and there is a section of that name, which has settings in it",
            "Set one of them: `shoal config` shows all.",
        )
