"""Rows of `paths.py` for what is plain: functions of `distributed.utils`, and what tests import."""

from __future__ import annotations

from typing import Final

from shoal.compat.homes import home_of, homes_of

_NAMED: Final = {
    "distributed.actor": "Actor, ActorFuture, BaseActorFuture",
    "distributed.client": "Event, Lock, Queue, Variable",
    "distributed.core": "connect, rpc",
    "distributed.deploy.adaptive": "Adaptive",
    "distributed.deploy.spec": "SpecCluster",
    "distributed.deploy.ssh": "SSHCluster",
    "distributed.diagnostics.plugin": "CondaInstall, Environ, InstallPlugin, NannyPlugin, "
    "PipInstall, SchedulerPlugin, UploadDirectory, UploadFile, WorkerPlugin",
    "distributed.diagnostics.progressbar": "progress",
    "distributed.event": "Event",
    "distributed.exceptions": "Reschedule",
    "distributed.lock": "Lock",
    "distributed.multi_lock": "MultiLock",
    "distributed.pubsub": "Pub, Sub",
    "distributed.queues": "Queue",
    "distributed.security": "Security",
    "distributed.semaphore": "Semaphore",
    "distributed.spans": "span",
    "distributed.variable": "Variable",
    "distributed.worker": "Reschedule, get_client, get_worker, print, secede, warn",
    "distributed.worker_client": "local_client",
}
"""Old module → the public names that it shows as well."""

_OWN: Final[dict[str, dict[str, str]]] = {
    "distributed.actor": homes_of(("shoal.client.actors", "EagerActorFuture")),
    "distributed.chaos": homes_of(("shoal.testing.killing", "KillWorker")),
    "distributed._signals": homes_of(("shoal.compat.serving", "wait_for_signals")),
    "distributed.compatibility": homes_of(("shoal.compat.log_settings", "logging_names")),
    "distributed.config": homes_of(("shoal.compat.log_settings", "initialize_logging")),
    "distributed.deploy.adaptive_core": homes_of(("shoal.deploy.adaptive_core", "AdaptiveCore")),
    "distributed.core": homes_of(
        ("shoal.compat.raising", "clean_exception, coerce_to_address, error_message"),
        ("shoal.compat.servers.calling", "PooledRPCCall, pingpong, rpc, send_recv"),
        ("shoal.compat.servers.errors", "RPCClosed"),
        ("shoal.compat.servers.pool", "ConnectionPool"),
        ("shoal.compat.servers.server", "Server, logger"),
        ("shoal.observe.handling", "expects_comm as _expects_comm"),
    ),
    "distributed.threadpoolexecutor": homes_of(
        ("shoal.compat.seceding", "ThreadPoolExecutor, rejoin, secede"),
    ),
    "distributed.worker": homes_of(
        ("shoal.compat.raising", "error_message"),
        ("shoal.compat.serving", "dumps_function, fail_hard"),
        ("shoal.compat.speeds", "benchmark_disk, benchmark_memory, benchmark_network"),
    ),
    "distributed.spill": homes_of(
        ("shoal.compat.spilling", "AnyKeyFile, ManualEvictProto, SpillBuffer"),
        ("shoal.compat.serialising.errors", "CannotSpill as PickleError"),
        ("shoal.storage.results", "SpilledSize"),
    ),
    "distributed.worker_memory": homes_of(("shoal.compat.limits", "parse_memory_limit")),
    "distributed.diagnostics.progressbar": homes_of(
        ("shoal.compat.progress_bars", "ProgressBar, TextProgressBar"),
    ),
    "distributed.deploy": homes_of(("shoal.deploy.job", "ProcessInterface")),
    "distributed.deploy.subprocess": homes_of(
        ("shoal.deploy.subprocess", "SubprocessCluster, SubprocessScheduler, SubprocessWorker"),
    ),
    "distributed.deploy.spec": homes_of(
        ("shoal.deploy.job", "ProcessInterface"),
        ("shoal.deploy.spec", "close_open_clusters as close_clusters, run_spec"),
    ),
    "distributed.metrics": homes_of(
        ("shoal.compat.metering", "DelayedMetricsLedger, FineClock as _WindowsTime"),
        ("shoal.compat.metering", "MeterOutput, context_meter, meter"),
        ("time", "monotonic, thread_time, time"),
    ),
    "distributed.profile": homes_of(
        ("shoal.compat.profiling", "call_stack, create, identifier, info_frame, lock, merge"),
        ("shoal.compat.profiling", "process, repr_frame, watch"),
    ),
    "distributed.pytest_resourceleaks": homes_of(
        ("shoal.testing.leaks", "PLUGINS as pytest_plugins"),
    ),
    "distributed.utils": homes_of(
        ("shoal.comms.errors", "CommClosedError"),
        ("shoal.compat.commanding", "cli_keywords, command_has_keyword, has_keyword"),
        ("shoal.compat.error_logging", "log_errors"),
        ("shoal.compat.files", "ensure_memoryview, get_fileno_limit, import_file, nbytes"),
        ("shoal.compat.files", "read_block, seek_delimiter"),
        ("shoal.compat.functions", "Deadline, ensure_ip, get_ip, get_ip_interface, get_ipv6"),
        ("shoal.compat.functions", "get_mp_context, has_arg, import_term, is_coroutine_function"),
        ("shoal.compat.functions", "is_valid_xml, iscoroutinefunction, open_port, parse_ports"),
        ("shoal.compat.functions", "sync, tmp_text, wait_for"),
        ("shoal.compat.logs", "DequeHandler, Log, Logs, RateLimiterFilter, reset_logger_locks"),
        ("shoal.compat.logs", "silence_logging_cmgr"),
        ("shoal.compat.looping", "All, Any_ as Any, EmptyContext, LateLoopEvent, LoopRunner"),
        ("shoal.compat.looping", "NoOpAwaitable, SyncMethodMixin, empty_context, in_async_call"),
        ("shoal.compat.looping", "offload, run_in_executor_with_context, set_thread_state"),
        ("shoal.compat.texts", "TupleComparable, clean_dashboard_address, color_of"),
        ("shoal.compat.texts", "format_dashboard_link, get_traceback, is_kernel"),
        ("shoal.compat.texts", "json_load_robust, palette, recursive_to_dict"),
        ("shoal.observe.groups", "key_split_group"),
        ("shoal.compat.texts", "truncate_exception, url_escape, warn_on_duration"),
        ("shoal.observe.tables", "asciitable"),
        ("builtins", "TimeoutError"),
        ("concurrent.futures", "CancelledError"),
        ("dask.context", "thread_state"),
        ("dask.utils", "format_bytes, format_time, funcname, key_split, parse_bytes"),
        ("dask.utils", "parse_timedelta"),
    ),
    "distributed.utils_comm": homes_of(
        ("shoal.compat.packing", "WrappedKey, pack_data, retry, retry_operation, subs_multiple"),
        ("shoal.compat.packing", "unpack_remotedata"),
        ("shoal.compat.servers.gathering", "gather_from_workers"),
        ("shoal.compat.unbuilt", "scatter_to_workers"),
    ),
    "distributed.utils_test": homes_of(
        ("shoal.compat.system", "WINDOWS"),
        ("shoal.testing.bodies", "asyncinc, block_on_event, dec, div, double, identity, inc, mul"),
        ("shoal.testing.bodies", "map_varying, randominc, run_for, slowadd, slowdec, slowdouble"),
        ("shoal.testing.bodies", "slowidentity, slowinc, slowsum, throws, varying"),
        ("shoal.testing.blocking", "BlockedExecute, BlockedGatherDep, BlockedGetData"),
        ("shoal.testing.blocking", "BlockedInstantiateNanny, BlockedKillNanny"),
        ("shoal.testing.blocking", "TaskStateMetadataPlugin"),
        ("shoal.testing.blocking", "UnhashableCallable as _UnhashableCallable"),
        ("shoal.testing.certificates", "gen_tls_cluster, tls_config, tls_only_config"),
        ("shoal.testing.certificates", "get_client_ssl_context, get_server_ssl_context"),
        ("shoal.testing.certificates", "tls_only_security, tls_security, xfail_ssl_issue5601"),
        ("shoal.testing.clusters", "cluster, end_cluster, gen_cluster, gen_test, start_cluster"),
        ("shoal.testing.clusters", "config_for_cluster_tests, validate_state"),
        ("shoal.testing.comms", "BarrierGetData, BrokenComm, freeze_batched_send"),
        ("shoal.testing.comms", "LockedComm as _LockedComm, LockedCommPool as _LockedCommPool"),
        ("shoal.testing.comms", "wait_for_stimulus"),
        ("shoal.testing.freezing", "NoSchedulerDelayWorker, freeze_data_fetching"),
        ("shoal.testing.fixtures", "a, b, c, cleanup, client, client_no_amm, client_secondary"),
        ("shoal.testing.fixtures", "cluster_fixture, loop, loop_in_thread, name_of_test"),
        ("shoal.testing.fixtures", "no_time_resync, requires_default_ports, s, security"),
        ("shoal.testing.fixtures", "tls_client, tls_cluster"),
        ("shoal.testing.leaks", "check_instances, check_process_leak, check_thread_leak, clean"),
        ("shoal.testing.leaks", "original_config, reset_config, term_or_kill_active_children"),
        ("shoal.testing.leaks", "wait_active_children"),
        ("shoal.testing.reaching", "assert_can_connect, assert_can_connect_from_everywhere_4"),
        ("shoal.testing.reaching", "assert_can_connect_from_everywhere_4_6"),
        ("shoal.testing.reaching", "assert_can_connect_from_everywhere_6, assert_cannot_connect"),
        ("shoal.testing.reaching", "assert_can_connect_locally_4, assert_can_connect_locally_6"),
        ("shoal.testing.reaching", "fetch_metrics, fetch_metrics_body, fetch_metrics_sample_names"),
        ("shoal.testing.stories", "assert_story, assert_valid_story"),
        ("shoal.testing.surroundings", "SizeOf, bump_rlimit, gen_nbytes, get_cert"),
        ("shoal.testing.surroundings", "get_dashboard_port"),
        ("shoal.testing.surroundings", "has_ipv6, has_pytestmark, lock_inc, new_config_file"),
        ("shoal.testing.surroundings", "nodebug_setup_module, nodebug_teardown_module"),
        ("shoal.testing.surroundings", "padded_time, requires_ipv6, wait_for_log_line"),
        ("shoal.testing.watching", "captured_context_meter"),
        ("shoal.testing.watching", "NO_AMM, async_poll_for, captured_handler, captured_logger"),
        ("shoal.testing.watching", "ensure_no_new_clients, new_config, nodebug, poll_for, popen"),
        ("shoal.testing.watching", "raises_with_cause, relative_frame_linenumber"),
        ("shoal.testing.watching", "save_sys_modules, wait_for_state"),
        (
            "shoal.testing.worker_states",
            "worker_state as ws, worker_state_with_running_task as ws_with_running_task",
        ),
    ),
    "distributed.versions": homes_of(
        ("shoal.observe.versions", "VersionMismatchWarning, error_message, get_versions"),
    ),
}

PLAIN_PATHS: Final[dict[str, dict[str, str]]] = {
    module: {name: home_of(name) for name in _NAMED.get(module, "").split(", ") if name}
    | _OWN.get(module, {})
    for module in (*_OWN, *(module for module in _NAMED if module not in _OWN))
}
"""Old module → the names that it has → the home of each."""
