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


PAGE: Final = "The page at client.dashboard_link shows what runs."
RUN: Final = (
    "Functions can be called instead: client.run_on_scheduler(function) in the scheduler, "
    "client.run(function) in workers."
)

HOMES: Final[dict[str, str | Unbuilt]] = {
    "__git_revision__": "shoal.compat.system:__git_revision__",
    "__version__": "shoal.compat.system:__version__",
    "Actor": "shoal.client.actors:Actor",
    "ActorFuture": "shoal.client.actors:ActorFuture",
    "Adaptive": "shoal.deploy.adaptive:Adaptive",
    "as_completed": "shoal.client.completing:as_completed",
    "BaseActorFuture": "shoal.client.actors:BaseActorFuture",
    "CancelledError": "concurrent.futures:CancelledError",
    "Client": "shoal.client.client:Client",
    "CommClosedError": "shoal.comms.errors:CommClosedError",
    "CompatibleExecutor": Unbuilt("Use client.submit and client.map."),
    "CondaInstall": "shoal.observe.plugins.installing:CondaInstall",
    "config": "dask.config:config",
    "connect": "shoal.compat.comm.core:connect",
    "dask": "dask:",
    "default_client": "shoal.client.client:default_client",
    "Environ": "shoal.observe.plugins.surroundings:Environ",
    "Event": "shoal.client.coordination:Event",
    "fire_and_forget": "shoal.client.detaching:fire_and_forget",
    "Future": "shoal.client.future:Future",
    "futures_of": "shoal.client.future:futures_of",
    "get_client": "shoal.client.client:get_client",
    "get_task_metadata": "shoal.client.ended_tasks:get_task_metadata",
    "get_task_stream": Unbuilt(PAGE),
    "get_worker": "shoal.worker.shell.context:get_worker",
    "InstallPlugin": "shoal.observe.plugins.installing:InstallPlugin",
    "KilledWorker": "shoal.errors:KilledWorker",
    "local_client": "shoal.client.current:local_client",
    "LocalCluster": "shoal.deploy.local:LocalCluster",
    "Lock": "shoal.client.coordination:Lock",
    "MultiLock": "shoal.client.coordination:MultiLock",
    "Nanny": "shoal.nanny.service:Nanny",
    "NannyPlugin": "shoal.observe.hooks:NannyPlugin",
    "performance_report": Unbuilt(PAGE),
    "PipInstall": "shoal.observe.plugins.installing:PipInstall",
    "print": "shoal.observe.saying:print",
    "progress": "shoal.client.progress:progress",
    "Pub": "shoal.client.coordination:Pub",
    "Queue": "shoal.client.coordination:Queue",
    "rejoin": "shoal.observe.inside:rejoin",
    "Reschedule": "shoal.errors:Reschedule",
    "rpc": "shoal.compat.servers.calling:rpc",
    "Scheduler": "shoal.scheduler.shell.service:Scheduler",
    "SchedulerPlugin": "shoal.observe.hooks:SchedulerPlugin",
    "secede": "shoal.observe.inside:secede",
    "Security": "shoal.compat.security:Security",
    "Semaphore": "shoal.client.coordination:Semaphore",
    "span": Unbuilt("Leave it out: what is computed does not depend on it."),
    "SpecCluster": "shoal.deploy.spec:SpecCluster",
    "SSHCluster": "shoal.deploy.ssh:SSHCluster",
    "Status": "shoal.observe.status:Status",
    "Sub": "shoal.client.coordination:Sub",
    "SubprocessCluster": "shoal.deploy.subprocess:SubprocessCluster",
    "sync": "shoal.compat.functions:sync",
    "TimeoutError": "builtins:TimeoutError",
    "UploadDirectory": "shoal.observe.plugins.sending:UploadDirectory",
    "UploadFile": "shoal.observe.plugins.sending:UploadFile",
    "Variable": "shoal.client.coordination:Variable",
    "wait": "shoal.client.waiting:wait",
    "warn": "shoal.observe.saying:warn",
    "widgets": "dask.widgets:",
    "Worker": "shoal.worker.shell.service:Worker",
    "worker_client": "shoal.client.current:worker_client",
    "WorkerPlugin": "shoal.observe.hooks:WorkerPlugin",
}
"""Name → its home; a test says that a name with a remedy is not to be had."""


def home_of(name: str) -> str:
    """Where a public name lives; a stand-in says what it lacks."""
    home = HOMES[name]
    return f"shoal.compat.unbuilt:{name}" if isinstance(home, Unbuilt) else home


def homes_of(*rows: tuple[str, str]) -> dict[str, str]:
    """Name → home, from rows of a module and `"name, name as old_name, ..."`."""
    found = {}
    for module, names in rows:
        for entry in names.split(", "):
            name, _, old_name = entry.partition(" as ")
            found[old_name or name] = f"{module}:{name}"
    return found
