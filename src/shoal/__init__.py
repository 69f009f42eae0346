"""A distributed task scheduler for Dask: the public names, each imported on first use.

`import shoal` costs little, because a name is only loaded when somebody asks for it.  To add a
name, add a row to `_HOME` and a line to the `TYPE_CHECKING` block, which is what editors read.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from shoal.version import VERSION

if TYPE_CHECKING:
    from shoal.client.actors import Actor as Actor
    from shoal.client.actors import ActorFuture as ActorFuture
    from shoal.client.actors import BaseActorFuture as BaseActorFuture
    from shoal.client.client import Client as Client
    from shoal.client.client import default_client as default_client
    from shoal.client.client import get_client as get_client
    from shoal.client.completing import as_completed as as_completed
    from shoal.client.coordination import Event as Event
    from shoal.client.coordination import Lock as Lock
    from shoal.client.coordination import MultiLock as MultiLock
    from shoal.client.coordination import Pub as Pub
    from shoal.client.coordination import Queue as Queue
    from shoal.client.coordination import Semaphore as Semaphore
    from shoal.client.coordination import Sub as Sub
    from shoal.client.coordination import Variable as Variable
    from shoal.client.current import local_client as local_client
    from shoal.client.current import worker_client as worker_client
    from shoal.client.detaching import fire_and_forget as fire_and_forget
    from shoal.client.ended_tasks import get_task_metadata as get_task_metadata
    from shoal.client.future import Future as Future
    from shoal.client.future import futures_of as futures_of
    from shoal.client.progress import progress as progress
    from shoal.client.waiting import wait as wait
    from shoal.compat.security import Security as Security
    from shoal.deploy.adaptive import Adaptive as Adaptive
    from shoal.deploy.local import LocalCluster as LocalCluster
    from shoal.deploy.spec import SpecCluster as SpecCluster
    from shoal.deploy.ssh import SSHCluster as SSHCluster
    from shoal.errors import Reschedule as Reschedule
    from shoal.nanny.service import Nanny as Nanny
    from shoal.observe.errors import RunInterrupted as RunInterrupted
    from shoal.observe.errors import TaskTimeout as TaskTimeout
    from shoal.observe.hooks import NannyPlugin as NannyPlugin
    from shoal.observe.hooks import SchedulerPlugin as SchedulerPlugin
    from shoal.observe.hooks import WorkerPlugin as WorkerPlugin
    from shoal.observe.inside import rejoin as rejoin
    from shoal.observe.inside import secede as secede
    from shoal.observe.plugins.forwarding import ForwardOutput as ForwardOutput
    from shoal.observe.plugins.installing import CondaInstall as CondaInstall
    from shoal.observe.plugins.installing import InstallPlugin as InstallPlugin
    from shoal.observe.plugins.installing import PipInstall as PipInstall
    from shoal.observe.plugins.sending import UploadDirectory as UploadDirectory
    from shoal.observe.plugins.sending import UploadFile as UploadFile
    from shoal.observe.plugins.surroundings import Environ as Environ
    from shoal.observe.saying import print as print
    from shoal.observe.saying import warn as warn
    from shoal.protocol.families.registry import dask_deserialize as dask_deserialize
    from shoal.protocol.families.registry import dask_serialize as dask_serialize
    from shoal.protocol.families.registry import register_serialization as register_serialization
    from shoal.protocol.families.registry import (
        register_serialization_family as register_serialization_family,
    )
    from shoal.scheduler.shell.service import Scheduler as Scheduler
    from shoal.worker.shell.context import get_worker as get_worker
    from shoal.worker.shell.service import Worker as Worker

__version__ = VERSION

__all__ = ["__version__"]  # the rest is found by `__getattr__` and listed by `__dir__`

_HOME = {
    "Actor": "shoal.client.actors",
    "ActorFuture": "shoal.client.actors",
    "Adaptive": "shoal.deploy.adaptive",
    "BaseActorFuture": "shoal.client.actors",
    "Client": "shoal.client.client",
    "CondaInstall": "shoal.observe.plugins.installing",
    "Environ": "shoal.observe.plugins.surroundings",
    "Event": "shoal.client.coordination",
    "ForwardOutput": "shoal.observe.plugins.forwarding",
    "Future": "shoal.client.future",
    "InstallPlugin": "shoal.observe.plugins.installing",
    "LocalCluster": "shoal.deploy.local",
    "Lock": "shoal.client.coordination",
    "MultiLock": "shoal.client.coordination",
    "Nanny": "shoal.nanny.service",
    "NannyPlugin": "shoal.observe.hooks",
    "PipInstall": "shoal.observe.plugins.installing",
    "Pub": "shoal.client.coordination",
    "Queue": "shoal.client.coordination",
    "Reschedule": "shoal.errors",
    "RunInterrupted": "shoal.observe.errors",
    "SSHCluster": "shoal.deploy.ssh",
    "Scheduler": "shoal.scheduler.shell.service",
    "SchedulerPlugin": "shoal.observe.hooks",
    "Security": "shoal.compat.security",
    "Semaphore": "shoal.client.coordination",
    "Sub": "shoal.client.coordination",
    "TaskTimeout": "shoal.observe.errors",
    "UploadDirectory": "shoal.observe.plugins.sending",
    "UploadFile": "shoal.observe.plugins.sending",
    "SpecCluster": "shoal.deploy.spec",
    "Variable": "shoal.client.coordination",
    "Worker": "shoal.worker.shell.service",
    "WorkerPlugin": "shoal.observe.hooks",
    "as_completed": "shoal.client.completing",
    "dask_deserialize": "shoal.protocol.families.registry",
    "dask_serialize": "shoal.protocol.families.registry",
    "default_client": "shoal.client.client",
    "fire_and_forget": "shoal.client.detaching",
    "futures_of": "shoal.client.future",
    "get_client": "shoal.client.client",
    "get_task_metadata": "shoal.client.ended_tasks",
    "get_worker": "shoal.worker.shell.context",
    "local_client": "shoal.client.current",
    "print": "shoal.observe.saying",
    "progress": "shoal.client.progress",
    "register_serialization": "shoal.protocol.families.registry",
    "register_serialization_family": "shoal.protocol.families.registry",
    "rejoin": "shoal.observe.inside",
    "secede": "shoal.observe.inside",
    "wait": "shoal.client.waiting",
    "warn": "shoal.observe.saying",
    "worker_client": "shoal.client.current",
}
"""Public name → the module that defines it."""

_MODULES = ("config",)
"""Those of our modules that are imported from here: no names to be looked for elsewhere."""

_UNBUILT = "shoal.compat.unbuilt"
"""Has stand-ins for names that programs import and that are not here yet."""


def __getattr__(name: str) -> object:
    """Load a public name where it lives, and keep it, so that the next use is a plain lookup."""
    home = _HOME.get(name)
    if home is None:
        is_public = not name.startswith("_") and name not in _MODULES
        if is_public and name in import_module(_UNBUILT).UNBUILT:
            return getattr(import_module(_UNBUILT), name)
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
