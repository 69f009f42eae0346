"""Names of `distributed` that this version does not have: they can be imported, and say what they
lack when they are called.  Each name becomes a class or a function at its first use."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from shoal.compat.homes import HOMES, PAGE, Unbuilt
from shoal.errors import UnsupportedOption

_SHUFFLES: Final = "How far shuffles are is shown by scheduler.extensions['shuffle']."
_RECHUNKS: Final = "Use array.rechunk(chunks, method='p2p')."

UNBUILT: Final[dict[str, str]] = {
    name: home.remedy for name, home in HOMES.items() if isinstance(home, Unbuilt)
} | {
    "GraphLayout": PAGE,
    "FutureState": "A future's state is future.status.",
    "SchedulerState": "What a scheduler knows is shown by scheduler.tasks and scheduler.workers, "
    "in client.run_on_scheduler(function), whose argument is `dask_scheduler`.",
    "ArrayRechunkRun": _SHUFFLES,
    "ResourceLimiter": "What a worker keeps in memory for shuffles is bounded by its memory limit.",
    "ShuffleRun": _SHUFFLES,
    "ShuffleWorkerPlugin": f"Workers decide nothing in shuffles.  {_SHUFFLES}",
    "Split": _RECHUNKS,
    "_calculate_prechunking": _RECHUNKS,
    "split_axes": _RECHUNKS,
    "scatter_to_workers": "Use client.scatter(values, workers=[...]).",
}
"""Name → what to do instead.  A name that comes to be has a home in `homes.py` instead.
Those of one old module alone come last."""

_A_PLUGIN: Final = (
    "What is added to a worker is a plugin: client.register_plugin(plugin), with a WorkerPlugin."
)
TABLES: Final[dict[str, str]] = {
    "DEFAULT_METRICS": _A_PLUGIN,
    "DEFAULT_STARTUP_INFORMATION": _A_PLUGIN,
}
"""Tables that programs may add to, and nobody reads → what to do instead."""


def __getattr__(name: str) -> Any:
    """Make the stand-in for a name, and keep it, so that there is one."""
    if name in TABLES:
        return globals().setdefault(name, _Table(name))
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


class _Table(dict[str, Any]):
    """An empty table that takes no entries."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedOption(f"An entry of {self._name}", TABLES[self._name])

    __setitem__ = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> str:
        return self._name


def _lack(name: str) -> str:
    return f"Raises UnsupportedOption: this version has no {name}."
