"""Settings that change nothing here: what they were for, and what to do instead.

Three tables.  `UNHEEDED` has settings of `distributed` whose subject doesn't exist here, `CARRIED`
those that only programs read, and `NOT_YET` settings of ours whose subject is still to come.
Defaults are as `distributed` has them, since programs may read those, too.
"""

from typing import Any, Final, NamedTuple


class Unheeded(NamedTuple):
    """One setting of `distributed` that changes nothing."""

    default: Any
    why: str
    """What is so instead, and what to do; a sentence or two."""


_PAGE: Final = "The web page is plain, and reads no settings of Bokeh's."
_LEASES: Final = (
    "What is held is given back when its holder's connection ends, and not by time: there is "
    "nothing to refresh."
)
_ROUTES: Final = "The services' web pages are fixed."
_ROOTISH: Final = (
    "A task is kept with the scheduler until a worker has room unless it has large inputs; groups "
    "have no part in that. How much may be out is `scheduler.worker-saturation`."
)
_TICKS: Final = "Loops aren't watched yet."
_MONITOR: Final = "Nothing is recorded of the machine yet but what heartbeats say."
_COMPUTATIONS: Final = "Which code of a program submitted what isn't recorded yet."
_SHARDS: Final = (
    "Shards stay where they are made, and whoever needs them fetches them: nothing waits to be "
    "sent. What they may take of memory is `shuffle.memory-ratio`."
)
_TLS_PAGE: Final = "The web page is not served over TLS: put a proxy in front of it."

UNHEEDED: Final[dict[str, Unheeded]] = {
    "scheduler.default-data-size": Unheeded(
        "1kiB", "Every result is measured before its size matters; nothing is assumed."
    ),
    "scheduler.reuse-broadcast-comm": Unheeded(
        True, "Each peer has one connection, which is always kept."
    ),
    "scheduler.work-stealing-interval": Unheeded(
        "1s", "Work moves in the moment in which a worker has nothing to do; nothing is polled."
    ),
    "scheduler.rootish-taskgroup": Unheeded(5, _ROOTISH),
    "scheduler.rootish-taskgroup-dependencies": Unheeded(5, _ROOTISH),
    "scheduler.dashboard.status.task-stream-length": Unheeded(1000, _PAGE),
    "scheduler.dashboard.tasks.task-stream-length": Unheeded(100000, _PAGE),
    "scheduler.dashboard.tls.ca-file": Unheeded(None, _TLS_PAGE),
    "scheduler.dashboard.tls.key": Unheeded(None, _TLS_PAGE),
    "scheduler.dashboard.tls.cert": Unheeded(None, _TLS_PAGE),
    "scheduler.dashboard.bokeh-application": Unheeded(
        {
            "allow_websocket_origin": ["*"],
            "keep_alive_milliseconds": 500,
            "check_unused_sessions_milliseconds": 500,
        },
        f"{_PAGE} Names of proxies that lead to it are `shoal.dashboard.hosts`.",
    ),
    "scheduler.locks.lease-validation-interval": Unheeded("10s", _LEASES),
    "scheduler.locks.lease-timeout": Unheeded("30s", _LEASES),
    "scheduler.http.routes": Unheeded(
        [
            "distributed.http.scheduler.prometheus",
            "distributed.http.scheduler.info",
            "distributed.http.scheduler.json",
            "distributed.http.health",
            "distributed.http.proxy",
            "distributed.http.statics",
        ],
        _ROUTES,
    ),
    "scheduler.allowed-imports": Unheeded(
        ["dask", "distributed"], "Messages have types of their own; none makes anybody import."
    ),
    "worker.multiprocessing-method": Unheeded(
        "spawn", "How processes of workers start is `shoal.nanny.start-method`."
    ),
    "worker.use-file-locking": Unheeded(
        True, "Folders of workers have names of their own and need no lock files."
    ),
    "worker.profile.low-level": Unheeded(False, "No stacks are sampled yet."),
    "worker.http.routes": Unheeded(
        [
            "distributed.http.worker.prometheus",
            "distributed.http.health",
            "distributed.http.statics",
        ],
        "Workers have no web page.",
    ),
    "client.scheduler-info-interval": Unheeded(
        "2s", "`client.scheduler_info()` asks in the moment in which it is called."
    ),
    "client.security-loader": Unheeded(
        None, "Give a client what it needs to connect, by SHOAL_TOKEN_FILE or a scheduler file."
    ),
    "deploy.cluster-repr-interval": Unheeded(
        "500ms", "A cluster's picture in a notebook is drawn when it is shown."
    ),
    "comm.default-scheme": Unheeded(
        "tcp", "An address without a scheme is one of TCP: write any other into the address."
    ),
    "comm.shard": Unheeded("64MiB", "A large buffer is sent from where it lies, in one piece."),
    "comm.offload": Unheeded(
        "10MiB", "What is large is read and written by threads beside the loop, always."
    ),
    "comm.tls.min-version": Unheeded(1.2, "Connections are not encrypted yet."),
    "comm.tls.max-version": Unheeded(None, "Connections are not encrypted yet."),
    "comm.websockets.shard": Unheeded("8MiB", "There are no connections by websocket."),
    "diagnostics.nvml": Unheeded(True, "Graphics cards aren't watched yet."),
    "diagnostics.cudf": Unheeded(False, "Graphics cards aren't watched yet."),
    "diagnostics.computations.nframes": Unheeded(0, _COMPUTATIONS),
    "p2p.comm.buffer": Unheeded("1 GiB", _SHARDS),
    "p2p.comm.concurrency": Unheeded(10, _SHARDS),
    "p2p.comm.message-bytes-limit": Unheeded("2 MiB", _SHARDS),
    "p2p.comm.retry.count": Unheeded(
        10, "A task that can't have its shards is run again, once they are there again."
    ),
    "p2p.comm.retry.delay.min": Unheeded("1s", "Nothing is sent again after a time."),
    "p2p.comm.retry.delay.max": Unheeded("30s", "Nothing is sent again after a time."),
    "p2p.storage.buffer": Unheeded("100 MiB", _SHARDS),
    "p2p.threads": Unheeded(None, "Tables are cut and joined by the threads of their tasks."),
    "dashboard.export-tool": Unheeded(False, _PAGE),
    "admin.tick.interval": Unheeded("20ms", _TICKS),
    "admin.tick.limit": Unheeded("3s", _TICKS),
    "admin.tick.cycle": Unheeded("1s", _TICKS),
    "admin.max-error-length": Unheeded(
        10000, "Errors and tracebacks are kept whole up to 64 KiB of text."
    ),
    "admin.pdb-on-err": Unheeded(
        False, "A service that is wrong about its state logs the story of it, and closes."
    ),
    "admin.system-monitor.interval": Unheeded("500ms", _MONITOR),
    "admin.system-monitor.log-length": Unheeded(7200, _MONITOR),
    "admin.system-monitor.disk": Unheeded(True, _MONITOR),
    "admin.system-monitor.host-cpu": Unheeded(False, _MONITOR),
    "admin.system-monitor.gil.enabled": Unheeded(True, _MONITOR),
    "admin.system-monitor.gil.interval": Unheeded("1ms", _MONITOR),
    "rmm.pool-size": Unheeded(None, "Memory of graphics cards is for the program to set up."),
}
"""Old name below `distributed.` → its default there, and why it is not heeded."""

CARRIED: Final[dict[str, Any]] = {
    "version": 2,
    "comm.retry.count": 0,
    "comm.retry.delay.min": "1s",
    "comm.retry.delay.max": "20s",
    "diagnostics.computations.ignore-modules": [
        "asyncio",
        "functools",
        "threading",
        "datashader",
        "dask",
        "debugpy",
        "distributed",
        "ipykernel",
        "coiled",
        "cudf",
        "cuml",
        "matplotlib",
        "pluggy",
        "prefect",
        "rechunker",
        "xarray",
        "xgboost",
        "xdist",
        "__channelexec__",
        "execnet",
    ],
    "diagnostics.computations.ignore-files": [
        "runpy",
        r".*py\.?test.*",
        "pycharm",
        "get_output_via_markers",
    ],
}
"""Old name below `distributed.` → its default.  Programs, and functions of the drop-in that they
call (`retry_operation`), read these; nothing else does."""

NOT_YET: Final[dict[str, str]] = {
    "comm.tls.ca-file": "Connections are not encrypted yet.",
    "comm.tls.ciphers": "Connections are not encrypted yet.",
    "comm.tls.scheduler-cert": "Connections are not encrypted yet.",
    "comm.tls.scheduler-key": "Connections are not encrypted yet.",
    "comm.tls.worker-cert": "Connections are not encrypted yet.",
    "comm.tls.worker-key": "Connections are not encrypted yet.",
    "comm.tls.client-cert": "Connections are not encrypted yet.",
    "comm.tls.client-key": "Connections are not encrypted yet.",
    "worker.profile.enabled": "No stacks are sampled yet.",
    "worker.profile.interval-seconds": "No stacks are sampled yet.",
    "worker.profile.cycle-seconds": "No stacks are sampled yet.",
    "histories.computations-max": _COMPUTATIONS,
    "histories.errors-max": "Errors of forgotten tasks aren't kept yet.",
    "dashboard.prometheus-namespace": "There are no metrics for Prometheus yet.",
    "dashboard.graph-tasks-max": "Graphs aren't drawn yet.",
}
"""New name below `shoal.` → what is so until it is heeded."""
