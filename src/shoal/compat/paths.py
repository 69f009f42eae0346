"""One table: every module of `distributed` that shoal has, its names, and where each lives.

Public names have their homes in `homes.py`, and those that they share here only by name.  To add a
module, or a name of one module alone, add it here.  After any change run `tools/make_drop_in.py`,
which writes the modules of the drop-in.
A home is `module:name`, or `module:` for the module itself.
"""

from __future__ import annotations

from typing import Final

from shoal.compat.homes import HOMES, home_of

PACKAGE: Final = "distributed"


WINDOW: Final = "shoal.compat.shim"
"""What makes a module of the drop-in lead here."""


def _homes(*rows: tuple[str, str]) -> dict[str, str]:
    """Name → home, from rows of a module and `"name, name as old_name, ..."`."""
    found = {}
    for module, names in rows:
        for entry in names.split(", "):
            name, _, old_name = entry.partition(" as ")
            found[old_name or name] = f"{module}:{name}"
    return found


def _named(names: str) -> dict[str, str]:
    """Name → home, of public names that an old module shows as well."""
    return {name: home_of(name) for name in names.split(", ")}


_CLIENT: Final = _named(
    "fire_and_forget, get_task_metadata, get_task_stream, performance_report"
) | _homes(
    ("shoal.client.client", "Client, default_client, get_client, temp_default_client"),
    (
        "shoal.client.current",
        "add_default as ensure_default_client, find_client as _get_global_client",
    ),
    ("shoal.client.errors", "ClientClosed as ClosedClientError"),
    ("shoal.client.future", "Future, futures_of"),
    ("shoal.client.waiting", "ALL_COMPLETED, DoneAndNotDone, FIRST_COMPLETED, as_completed, wait"),
    ("shoal.compat.system", "client_logger as logger"),
    ("shoal.errors", "FutureCancelledError"),
    ("concurrent.futures", "CancelledError"),
    ("dask.base", "tokenize"),
)
_ADDRESSES: Final = _homes(
    ("shoal.compat.addresses", "get_address_host, get_address_host_port, normalize_address"),
    ("shoal.compat.addresses", "parse_address, parse_host_port, resolve_address, unparse_address"),
    ("shoal.compat.addresses", "unparse_host_port"),
)

PATHS: Final[dict[str, dict[str, str]]] = {
    "distributed": {name: home_of(name) for name in HOMES},
    "distributed.cli": {},
    "distributed.cli.dask_scheduler": _homes(("shoal.cli.scheduler", "scheduler as main")),
    "distributed.cli.dask_worker": _homes(("shoal.cli.worker", "worker as main")),
    "distributed.client": _CLIENT,
    "distributed.comm": _ADDRESSES | _homes(("shoal.comms.errors", "CommClosedError")),
    "distributed.comm.addressing": _ADDRESSES,
    "distributed.comm.core": _homes(("shoal.comms.errors", "CommClosedError")),
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
    "distributed.deploy.cluster": _homes(("shoal.deploy.cluster", "Cluster")),
    "distributed.deploy.local": _homes(
        ("shoal.deploy.local", "LocalCluster"), ("shoal.deploy.sharing", "nprocesses_nthreads")
    ),
    "distributed.deploy.utils": _homes(("shoal.deploy.sharing", "nprocesses_nthreads")),
    "distributed.exceptions": _homes(
        ("shoal.client.errors", "WorkersLate as WorkerStartTimeoutError")
    ),
    "distributed.diagnostics": _homes(("shoal.compat.plugins", "SchedulerPlugin")),
    "distributed.diagnostics.plugin": _homes(
        ("shoal.compat.plugins", "SchedulerPlugin, WorkerPlugin, NannyPlugin")
    ),
    "distributed.lock": _named("Lock"),
    "distributed.metrics": _homes(("time", "monotonic, thread_time, time")),
    "distributed.nanny": _homes(
        ("shoal.compat.system", "nanny_logger as logger"),
        ("shoal.nanny.process", "ServiceProcess as WorkerProcess"),
        ("shoal.nanny.service", "Nanny"),
    ),
    "distributed.objects": _homes(("shoal.observe.facts", "FactsOfScheduler as SchedulerInfo")),
    "distributed.protocol": {"pickle": "shoal.compat.pickling:"}
    | _homes(("shoal.compat.pickling", "from_frames as loads, to_frames as dumps")),
    "distributed.protocol.pickle": _homes(
        ("shoal.compat.pickling", "HIGHEST_PROTOCOL, dumps, loads")
    ),
    "distributed.scheduler": _homes(
        ("shoal.compat.system", "scheduler_logger as logger"),
        ("shoal.errors", "KilledWorker"),
        ("shoal.observe.views", "TaskView as TaskState, WorkerView as WorkerState"),
        ("shoal.scheduler.shell.service", "Scheduler"),
    ),
    "distributed.sizeof": _homes(
        ("dask.sizeof", "sizeof"), ("shoal.protocol.payload", "nbytes_of as safe_sizeof")
    ),
    "distributed.system": _homes(
        ("shoal.compat.system", "MEMORY_LIMIT, memory_limit"), ("dask.system", "CPU_COUNT")
    ),
    "distributed.utils": _homes(
        ("shoal.comms.errors", "CommClosedError"),
        (
            "shoal.compat.functions",
            "Deadline, ensure_ip, get_ip, get_ipv6, get_mp_context, has_arg",
        ),
        ("shoal.compat.functions", "has_keyword, import_term, is_coroutine_function, is_valid_xml"),
        (
            "shoal.compat.functions",
            "iscoroutinefunction, log_errors, nbytes, open_port, parse_ports",
        ),
        ("shoal.compat.functions", "sync, tmp_text, wait_for"),
        ("builtins", "TimeoutError"),
        ("concurrent.futures", "CancelledError"),
        ("dask.context", "thread_state"),
        ("dask.utils", "format_bytes, format_time, key_split, parse_bytes, parse_timedelta"),
    ),
    "distributed.utils_test": _homes(
        ("shoal.testing.bodies", "asyncinc, block_on_event, dec, div, double, identity, inc, mul"),
        ("shoal.testing.bodies", "map_varying, randominc, run_for, slowadd, slowdec, slowdouble"),
        ("shoal.testing.bodies", "slowidentity, slowinc, slowsum, throws, varying"),
        ("shoal.testing.clusters", "cluster, end_cluster, gen_cluster, gen_test, start_cluster"),
        ("shoal.testing.clusters", "config_for_cluster_tests, validate_state"),
        (
            "shoal.testing.fixtures",
            "a, b, c, cleanup, client, client_secondary, cluster_fixture, loop",
        ),
        ("shoal.testing.fixtures", "loop_in_thread, s"),
        ("shoal.testing.watching", "NO_AMM, async_poll_for, captured_handler, captured_logger"),
        ("shoal.testing.watching", "clean"),
        ("shoal.testing.watching", "ensure_no_new_clients, new_config, nodebug, poll_for, popen"),
        (
            "shoal.testing.watching",
            "raises_with_cause, relative_frame_linenumber, save_sys_modules",
        ),
        ("shoal.testing.watching", "wait_for_state"),
    ),
    "distributed.worker": _homes(
        ("shoal.client.client", "get_client"),
        ("shoal.compat.system", "worker_logger as logger"),
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
    "distributed.worker_memory": _homes(
        ("shoal.observe.limits", "memory_limit_bytes as parse_memory_limit")
    ),
}
"""Old module → the names that it has → the home of each."""


def public_names(module: str) -> list[str]:
    """What a star import of the old module brings."""
    return sorted(name for name in PATHS[module] if not name.startswith("_"))


def is_package(module: str) -> bool:
    """Whether the old module has modules below it."""
    return any(other.startswith(module + ".") for other in PATHS)
