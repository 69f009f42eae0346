"""Names of `distributed` that this version does not have: they can be imported, and say what they
lack when they are called.  One table; each name becomes a class or a function at its first use."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from shoal.errors import UnsupportedOption

_PAGE: Final = "The page at client.dashboard_link shows what runs."
_LOCKS: Final = "Locks are here: Lock(name)."
_STATE: Final = "Pass state from task to task, or keep it on a worker: client.run(function)."
RUN: Final = (
    "Functions can be called instead: client.run_on_scheduler(function) in the scheduler, "
    "client.run(function) in workers."
)
_SCALE: Final = "cluster.scale(n) changes the number of workers."
_CLUSTERS: Final = (
    "LocalCluster starts workers on this machine; on others, `shoal scheduler` and `shoal worker`."
)

UNBUILT: Final[dict[str, str]] = {
    "Actor": _STATE,
    "ActorFuture": _STATE,
    "BaseActorFuture": _STATE,
    "Adaptive": _SCALE,
    "CompatibleExecutor": "Use client.submit and client.map.",
    "CondaInstall": RUN,
    "Environ": RUN,
    "Event": _LOCKS,
    "InstallPlugin": RUN,
    "MultiLock": _LOCKS,
    "PipInstall": RUN,
    "Queue": f"Tasks hand each other results. {_LOCKS}",
    "Reschedule": "Raise an error of your own, and let the task be tried again: submit(retries=n).",
    "SSHCluster": _CLUSTERS,
    "Security": "Peers prove that they hold a token, and encryption is left to the network.",
    "Semaphore": _LOCKS,
    "SpecCluster": _CLUSTERS,
    "SubprocessCluster": _CLUSTERS,
    "UploadDirectory": RUN,
    "UploadFile": RUN,
    "Variable": f"Tasks hand each other results. {_LOCKS}",
    "connect": RUN,
    "fire_and_forget": "Keep the future as long as its task shall run, and wait for it.",
    "get_task_metadata": _PAGE,
    "get_task_stream": _PAGE,
    "local_client": "worker_client() does the same.",
    "performance_report": _PAGE,
    "rpc": RUN,
    "span": "Leave it out: what is computed does not depend on it.",
}
"""Name → what to do instead.  A name that comes to be leaves this table; a test says so."""

_RAISED: Final = frozenset(("Reschedule",))
"""Names that stand in `except`, and so have to be exceptions."""


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
    return type(name, (Exception if name in _RAISED else object,), members)


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
