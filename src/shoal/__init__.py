"""A distributed task scheduler for Dask: the public names, each imported on first use.

`import shoal` costs little, because a name is only loaded when somebody asks for it.  To add a
name, add a row to `_HOME` and a line to the `TYPE_CHECKING` block, which is what editors read.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from shoal.version import VERSION

if TYPE_CHECKING:
    from shoal.client.client import Client as Client
    from shoal.client.client import default_client as default_client
    from shoal.client.client import get_client as get_client
    from shoal.client.coordination import Lock as Lock
    from shoal.client.current import worker_client as worker_client
    from shoal.client.future import Future as Future
    from shoal.client.future import futures_of as futures_of
    from shoal.client.progress import progress as progress
    from shoal.client.waiting import as_completed as as_completed
    from shoal.client.waiting import wait as wait
    from shoal.compat.saying import print as print
    from shoal.compat.saying import warn as warn
    from shoal.deploy.local import LocalCluster as LocalCluster
    from shoal.nanny.service import Nanny as Nanny
    from shoal.scheduler.shell.service import Scheduler as Scheduler
    from shoal.worker.shell.context import get_worker as get_worker
    from shoal.worker.shell.service import Worker as Worker

__version__ = VERSION

__all__ = ["__version__"]  # the rest is found by `__getattr__` and listed by `__dir__`

_HOME = {
    "Client": "shoal.client.client",
    "Future": "shoal.client.future",
    "LocalCluster": "shoal.deploy.local",
    "Lock": "shoal.client.coordination",
    "Nanny": "shoal.nanny.service",
    "Scheduler": "shoal.scheduler.shell.service",
    "Worker": "shoal.worker.shell.service",
    "as_completed": "shoal.client.waiting",
    "default_client": "shoal.client.client",
    "futures_of": "shoal.client.future",
    "get_client": "shoal.client.client",
    "get_worker": "shoal.worker.shell.context",
    "print": "shoal.compat.saying",
    "progress": "shoal.client.progress",
    "wait": "shoal.client.waiting",
    "warn": "shoal.compat.saying",
    "worker_client": "shoal.client.current",
}
"""Public name → the module that defines it."""

_UNBUILT = "shoal.compat.unbuilt"
"""Has stand-ins for names that programs import and that are not here yet."""


def __getattr__(name: str) -> object:
    """Load a public name where it lives, and keep it, so that the next use is a plain lookup."""
    home = _HOME.get(name)
    if home is None:
        if not name.startswith("_") and name in import_module(_UNBUILT).UNBUILT:
            return getattr(import_module(_UNBUILT), name)
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
