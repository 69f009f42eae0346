"""The public names of `distributed`: where each lives, or what to do instead; one row a name.

A name that comes to be is one row that changes, from `Unbuilt(...)` to its home, which is
`module:name`, or `module:` for the module itself.  Every old module that shows the name follows.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Unbuilt(NamedTuple):
    """A name that this version does not have."""

    remedy: str
    """What to do instead."""


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

HOMES: Final[dict[str, str | Unbuilt]] = {
    "__git_revision__": "shoal.compat.system:__git_revision__",
    "__version__": "shoal.compat.system:__version__",
    "Actor": Unbuilt(_STATE),
    "ActorFuture": Unbuilt(_STATE),
    "Adaptive": Unbuilt(_SCALE),
    "as_completed": "shoal.client.waiting:as_completed",
    "BaseActorFuture": Unbuilt(_STATE),
    "CancelledError": "concurrent.futures:CancelledError",
    "Client": "shoal.client.client:Client",
    "CommClosedError": "shoal.comms.errors:CommClosedError",
    "CompatibleExecutor": Unbuilt("Use client.submit and client.map."),
    "CondaInstall": Unbuilt(RUN),
    "config": "dask.config:config",
    "connect": Unbuilt(RUN),
    "dask": "dask:",
    "default_client": "shoal.client.client:default_client",
    "Environ": Unbuilt(RUN),
    "Event": Unbuilt(_LOCKS),
    "fire_and_forget": Unbuilt("Keep the future as long as its task shall run, and wait for it."),
    "Future": "shoal.client.future:Future",
    "futures_of": "shoal.client.future:futures_of",
    "get_client": "shoal.client.client:get_client",
    "get_task_metadata": Unbuilt(_PAGE),
    "get_task_stream": Unbuilt(_PAGE),
    "get_worker": "shoal.worker.shell.context:get_worker",
    "InstallPlugin": Unbuilt(RUN),
    "KilledWorker": "shoal.errors:KilledWorker",
    "local_client": Unbuilt("worker_client() does the same."),
    "LocalCluster": "shoal.deploy.local:LocalCluster",
    "Lock": "shoal.client.coordination:Lock",
    "MultiLock": Unbuilt(_LOCKS),
    "Nanny": "shoal.nanny.service:Nanny",
    "NannyPlugin": "shoal.compat.plugins:NannyPlugin",
    "performance_report": Unbuilt(_PAGE),
    "PipInstall": Unbuilt(RUN),
    "print": "shoal.compat.saying:print",
    "progress": "shoal.client.progress:progress",
    "Queue": Unbuilt(f"Tasks hand each other results. {_LOCKS}"),
    "rejoin": "shoal.compat.seceding:rejoin",
    "Reschedule": Unbuilt(
        "Raise an error of your own, and let the task be tried again: submit(retries=n)."
    ),
    "rpc": Unbuilt(RUN),
    "Scheduler": "shoal.scheduler.shell.service:Scheduler",
    "SchedulerPlugin": "shoal.compat.plugins:SchedulerPlugin",
    "secede": "shoal.compat.seceding:secede",
    "Security": Unbuilt(
        "Peers prove that they hold a token, and encryption is left to the network."
    ),
    "Semaphore": Unbuilt(_LOCKS),
    "span": Unbuilt("Leave it out: what is computed does not depend on it."),
    "SpecCluster": Unbuilt(_CLUSTERS),
    "SSHCluster": Unbuilt(_CLUSTERS),
    "Status": "shoal.observe.status:Status",
    "SubprocessCluster": Unbuilt(_CLUSTERS),
    "sync": "shoal.compat.functions:sync",
    "TimeoutError": "builtins:TimeoutError",
    "UploadDirectory": Unbuilt(RUN),
    "UploadFile": Unbuilt(RUN),
    "Variable": Unbuilt(f"Tasks hand each other results. {_LOCKS}"),
    "wait": "shoal.client.waiting:wait",
    "warn": "shoal.compat.saying:warn",
    "widgets": "dask.widgets:",
    "Worker": "shoal.worker.shell.service:Worker",
    "worker_client": "shoal.client.current:worker_client",
    "WorkerPlugin": "shoal.compat.plugins:WorkerPlugin",
}
"""Name → its home; a test says that a name with a remedy is not to be had."""


def home_of(name: str) -> str:
    """Where a public name lives; a stand-in says what it lacks."""
    home = HOMES[name]
    return f"shoal.compat.unbuilt:{name}" if isinstance(home, Unbuilt) else home
