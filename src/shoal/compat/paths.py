"""One table: every module of `distributed` that shoal has, its names, and where each lives.

Public names have their homes in `homes.py`, and those that they share here only by name.  To add a
module, or a name of one module alone, add it here; plain functions, and what tests import, have
their rows in `plain_paths.py`, serialisation has them in `protocol_paths.py`, comms have them in
`comm_paths.py`, shuffles in `shuffle_paths.py`.  After any change run
`tools/make_drop_in.py`, which writes the modules of the drop-in.
A home is `module:name`, or `module:` for the module itself.
"""

from __future__ import annotations

from typing import Final

from shoal.compat.comm_paths import COMM_PATHS
from shoal.compat.homes import HOMES, home_of
from shoal.compat.homes import homes_of as _homes
from shoal.compat.plain_paths import PLAIN_PATHS
from shoal.compat.protocol_paths import PROTOCOL_PATHS
from shoal.compat.shuffle_paths import SHUFFLE_PATHS

PACKAGE: Final = "distributed"


WINDOW: Final = "shoal.compat.shim"
"""What makes a module of the drop-in lead here."""


def _named(names: str) -> dict[str, str]:
    """Name → home, of public names that an old module shows as well."""
    return {name: home_of(name) for name in names.split(", ")}


_CLIENT: Final = _named(
    "fire_and_forget, get_task_metadata, get_task_stream, performance_report"
) | _homes(
    ("shoal.client.client", "Client, default_client, get_client, temp_default_client"),
    (
        "shoal.client.current",
        "add_default as ensure_default_client, find_client as _get_global_client, "
        "add_default as _set_global_client, remove_default as _del_global_client",
    ),
    ("shoal.client.errors", "ClientClosed as ClosedClientError"),
    ("shoal.compat.clients", "DEFAULT_CLIENTS as _global_clients"),
    ("shoal.client.future", "Future, futures_of"),
    ("shoal.client.completing", "as_completed"),
    (
        "shoal.compat.completing",
        "first_completed as _first_completed, put_as_completed as _as_completed, "
        "wait_for_futures as _wait",
    ),
    ("shoal.client.waiting", "ALL_COMPLETED, DoneAndNotDone, FIRST_COMPLETED, wait"),
    ("shoal.client.waiting", "DoneAndNotDone as DoneAndNotDoneFutures"),
    ("shoal.compat.system", "client_logger as logger"),
    ("shoal.errors", "CancelledFuturesGroup, FutureCancelledError, FuturesCancelledError"),
    ("shoal.compat.unbuilt", "FutureState"),
    ("concurrent.futures", "CancelledError"),
    ("dask.base", "tokenize"),
)

_HERE: Final[dict[str, dict[str, str]]] = {
    "distributed": {name: home_of(name) for name in HOMES},
    "distributed.active_memory_manager": _homes(
        (
            "shoal.compat.active_memory",
            "ActiveMemoryManagerPolicy, ReduceReplicas, RetireWorker, Suggestion",
        ),
        ("shoal.compat.active_memory", "SuggestionGenerator"),
        ("shoal.client.rounds", "RoundsOfScheduler as AMMClientProxy"),
        ("shoal.scheduler.shell.rounds", "Rounds as ActiveMemoryManagerExtension"),
    ),
    "distributed.cfexecutor": _homes(("shoal.client.executor", "ClientExecutor")),
    "distributed.cli": {},
    "distributed.cli.dask_scheduler": _homes(("shoal.cli.scheduler", "scheduler as main")),
    "distributed.cli.dask_spec": _homes(("shoal.cli.spec", "spec as main")),
    "distributed.cli.dask_ssh": _homes(("shoal.cli.ssh", "ssh as main")),
    "distributed.cli.dask_worker": _homes(
        ("shoal.cli.worker", "worker as main"),
        ("shoal.compat.ports", "apportion_ports as _apportion_ports"),
    ),
    "distributed.client": _CLIENT,
    "distributed.cluster_dump": _homes(
        ("shoal.observe.dumps", "DumpArtefact, load_dump as load_cluster_dump"),
        ("shoal.observe.dumps", "plain as _tuple_to_list, write_state"),
    ),
    "distributed.compatibility": _homes(
        ("shoal.compat.functions", "asyncio_run"),
        ("shoal.compat.system", "LINUX, MACOS, WINDOWS"),
    ),
    "distributed.config": _homes(("shoal.compat.functions", "get_loop_factory"))
    | {"config": "dask.config:config"},
    "distributed.core": _homes(
        ("shoal.comms.errors", "CommClosedError"), ("shoal.observe.status", "Status")
    ),
    "distributed.deploy": _named("Adaptive, SpecCluster, SSHCluster, SubprocessCluster")
    | _homes(("shoal.deploy.cluster", "Cluster"), ("shoal.deploy.local", "LocalCluster")),
    "distributed.deploy.cluster": _homes(
        ("shoal.compat.functions", "exponential_backoff as _exponential_backoff"),
        ("shoal.deploy.cluster", "Cluster"),
    ),
    "distributed.deploy.local": _homes(
        ("shoal.deploy.local", "LocalCluster"), ("shoal.deploy.sharing", "nprocesses_nthreads")
    ),
    "distributed.deploy.utils": _homes(("shoal.deploy.sharing", "nprocesses_nthreads")),
    "distributed.exceptions": _homes(
        ("shoal.client.errors", "WorkersLate as WorkerStartTimeoutError")
    ),
    "distributed.diagnostics": _homes(
        ("shoal.client.sampling", "MemorySampler"),
        ("shoal.compat.unbuilt", "GraphLayout"),
        ("shoal.observe.hooks", "SchedulerPlugin"),
    ),
    "distributed.diagnostics.memory_sampler": _homes(("shoal.client.sampling", "MemorySampler")),
    "distributed.diagnostics.cluster_dump": _homes(
        ("shoal.observe.dumps", "DumpArtefact"),
        ("shoal.observe.plugins.dumping", "ClusterDump"),
    ),
    "distributed.diagnostics.plugin": {"subprocess": "subprocess:"}
    | _homes(
        ("shoal.observe.hooks", "SchedulerPlugin, WorkerPlugin, NannyPlugin"),
        ("shoal.observe.plugins.forwarding", "ForwardLoggingPlugin, ForwardOutput"),
        ("shoal.observe.plugins.installing", "logger"),
        ("shoal.observe.plugins.sending", "SchedulerUploadFile"),
    ),
    "distributed.preloading": _homes(
        ("shoal.observe.preloading", "Preload, Preloads as PreloadManager, is_webaddress, logger"),
        ("shoal.observe.preloading", "process_preloads, validate_preload_argv"),
    ),
    "distributed.lock": _named("Lock"),
    "distributed.nanny": _homes(
        ("shoal.compat.system", "nanny_logger as logger"),
        ("shoal.nanny.process", "ServiceProcess as WorkerProcess"),
        ("shoal.nanny.service", "Nanny"),
    ),
    "distributed.publish": _homes(("shoal.client.control.published", "Datasets")),
    "distributed.objects": _homes(
        ("shoal.observe.facts", "FactsOfScheduler as SchedulerInfo, HasWhat, WhoHas")
    ),
    "distributed.scheduler": _homes(
        ("shoal.compat.system", "scheduler_logger as logger"),
        ("shoal.errors", "KilledWorker, NoValidWorkerError, NoWorkerError"),
        ("shoal.observe.groups", "TaskGroup"),
        ("shoal.observe.memory", "MemoryState"),
        ("shoal.observe.overview", "ErredTask"),
        ("shoal.observe.plugins.collecting", "CollectTaskMetaDataPlugin"),
        ("shoal.compat.unbuilt", "SchedulerState"),
        ("shoal.observe.views", "TaskView as TaskState, WorkerView as WorkerState"),
        ("shoal.scheduler.shell.service", "Scheduler"),
    ),
    "distributed.system": _homes(
        ("shoal.compat.system", "MEMORY_LIMIT, memory_limit"), ("dask.system", "CPU_COUNT")
    ),
    "distributed.worker": _homes(
        ("shoal.client.client", "get_client"),
        ("shoal.compat.system", "worker_logger as logger"),
        ("shoal.compat.unbuilt", "DEFAULT_METRICS, DEFAULT_STARTUP_INFORMATION"),
        ("shoal.observe.status", "Status"),
        ("shoal.worker.shell.context", "get_worker"),
        ("shoal.worker.shell.service", "Worker"),
        ("dask.context", "thread_state"),
    ),
    "distributed.worker_client": _homes(
        ("shoal.client.client", "get_client"),
        ("shoal.client.current", "worker_client"),
        ("shoal.worker.shell.context", "get_worker"),
    ),
}

_TABLES: Final = (_HERE, PLAIN_PATHS, PROTOCOL_PATHS, COMM_PATHS, SHUFFLE_PATHS)

PATHS: Final[dict[str, dict[str, str]]] = {
    module: {name: home for table in _TABLES for name, home in table.get(module, {}).items()}
    for module in sorted({module for table in _TABLES for module in table})
}
"""Old module → the names that it has → the home of each."""


def public_names(module: str) -> list[str]:
    """What a star import of the old module brings."""
    return sorted(name for name in PATHS[module] if not name.startswith("_"))


def is_package(module: str) -> bool:
    """Whether the old module has modules below it."""
    return any(other.startswith(module + ".") for other in PATHS)
