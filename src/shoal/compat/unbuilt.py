"""Names of `distributed` that this version does not have: they can be imported, and say what they
lack when they are called.  Each name becomes a class or a function at its first use."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from shoal.compat.homes import HOMES, PAGE, Unbuilt
from shoal.errors import UnsupportedOption

UNBUILT: Final[dict[str, str]] = {
    name: home.remedy for name, home in HOMES.items() if isinstance(home, Unbuilt)
} | {"GraphLayout": PAGE}
"""Name → what to do instead.  A name that comes to be has a home in `homes.py` instead.
Those of one old module alone come last."""


def __getattr__(name: str) -> Any:
    """Make the stand-in for a name, and keep it, so that there is one."""
    if name not in UNBUILT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    stand_in = _class(name) if name[0].isupper() else _function(name)
    return globals().setdefault(name, stand_in)


def _class(name: str) -> type:
    """A class of that name that can be derived from, and has no instances."""

    def refuse(cls: type, /, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedOption(name, UNBUILT[name])

    members = {"__new__": refuse, "__module__": __name__, "__doc__": _lack(name)}
    return type(name, (object,), members)


def _function(name: str) -> Any:
    """A function of that name that raises."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedOption(f"{name}()", UNBUILT[name])

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = __name__
    refuse.__doc__ = _lack(name)
    return refuse


def _lack(name: str) -> str:
    return f"Raises UnsupportedOption: this version has no {name}."
