"""Rows of `paths.py` for comms as programs make them, and the worker's machine by its old names."""

from __future__ import annotations

from typing import Final

from shoal.compat.homes import homes_of

_ADDRESSES: Final = homes_of(
    ("shoal.compat.addresses", "get_address_host, get_address_host_port, get_local_address_for"),
    ("shoal.compat.addresses", "normalize_address, parse_address, parse_host_port"),
    ("shoal.compat.addresses", "resolve_address, unparse_address, unparse_host_port"),
)
_CORE: Final = homes_of(
    ("shoal.comms.errors", "CommClosedError"),
    ("shoal.compat.comm.core", "Comm, connect, listen"),
)

COMM_PATHS: Final[dict[str, dict[str, str]]] = {
    "distributed.batched": homes_of(
        ("shoal.comms.errors", "CommClosedError"),
        ("shoal.compat.comm.batched", "BatchedSend, logger"),
    ),
    "distributed.comm": _ADDRESSES
    | _CORE
    | homes_of(
        ("shoal.compat.addresses", "get_tcp_server_address, get_tcp_server_addresses"),
        ("shoal.compat.comm.registry", "backends"),
    ),
    "distributed.comm.addressing": _ADDRESSES
    | homes_of(
        ("shoal.compat.addresses", "address_from_user_args, addresses_from_user_args"),
        ("shoal.compat.addresses", "uri_from_host_port"),
    ),
    "distributed.comm.core": _CORE
    | homes_of(
        ("shoal.compat.comm.core", "BaseListener, Connector, Listener"),
        ("shoal.compat.comm.errors", "FatalCommClosedError"),
    ),
    "distributed.comm.inproc": homes_of(
        ("shoal.compat.comm.inproc", "InProc, InProcBackend, InProcConnector, InProcListener"),
        ("shoal.compat.comm.inproc", "Names as Manager, global_manager, new_address"),
    ),
    "distributed.comm.registry": homes_of(
        ("shoal.compat.comm.backend", "Backend"),
        ("shoal.compat.comm.registry", "backends, get_backend"),
    ),
    "distributed.comm.tcp": homes_of(
        ("shoal.compat.comm.carried", "CarriedConnector as BaseTCPConnector"),
        ("shoal.compat.comm.tcp", "BaseTCPBackend, TCP, TCPBackend, TCPConnector, TCPListener"),
        ("shoal.compat.comm.mailbox", "WINDOW_NBYTES as MAX_BUFFER_SIZE"),
        ("shoal.compat.comm.tcp", "convert_stream_closed_error, get_stream_address"),
        ("shoal.compat.comm.tls", "TLS, TLSBackend, TLSConnector, TLSListener"),
    ),
    "distributed.comm.utils": homes_of(
        ("shoal.compat.addresses", "ensure_concrete_host, get_tcp_server_address"),
        ("shoal.compat.addresses", "get_tcp_server_addresses"),
    ),
    "distributed.core": homes_of(
        ("shoal.compat.addresses", "get_address_host_port, normalize_address"),
        ("shoal.compat.comm.core", "Comm, connect, listen"),
    ),
    "distributed.worker_state_machine": homes_of(
        ("shoal.compat.worker_states.errors", "InvalidTaskState, InvalidTransition"),
        ("shoal.compat.worker_states.errors", "RecommendationsConflict"),
        ("shoal.compat.worker_states.errors", "TransitionCounterMaxExceeded"),
        ("shoal.compat.worker_states.instructions", "AddKeysMsg, Execute, GatherDep, Instruction"),
        ("shoal.compat.worker_states.instructions", "LongRunningMsg, ReleaseWorkerDataMsg"),
        ("shoal.compat.worker_states.instructions", "RequestRefreshWhoHasMsg, RescheduleMsg"),
        ("shoal.compat.worker_states.instructions", "RetryBusyWorkerLater, StealResponseMsg"),
        ("shoal.compat.worker_states.instructions", "SendMessageToScheduler, TaskErredMsg"),
        ("shoal.compat.worker_states.instructions", "TaskFinishedMsg"),
        ("shoal.compat.worker_states.state", "WorkerState"),
        ("shoal.compat.worker_states.stimuli", "AcquireReplicasEvent, CancelComputeEvent"),
        ("shoal.compat.worker_states.stimuli", "ComputeTaskEvent, ExecuteDoneEvent"),
        ("shoal.compat.worker_states.stimuli", "ExecuteFailureEvent, ExecuteSuccessEvent"),
        ("shoal.compat.worker_states.stimuli", "FindMissingEvent, FreeKeysEvent"),
        ("shoal.compat.worker_states.stimuli", "GatherDepBusyEvent, GatherDepDoneEvent"),
        ("shoal.compat.worker_states.stimuli", "GatherDepFailureEvent, GatherDepSuccessEvent"),
        ("shoal.compat.worker_states.stimuli", "GatherDepNetworkFailureEvent, PauseEvent"),
        ("shoal.compat.worker_states.stimuli", "RefreshWhoHasEvent, RemoveReplicasEvent"),
        ("shoal.compat.worker_states.stimuli", "RemoveWorkerEvent, RescheduleEvent"),
        ("shoal.compat.worker_states.stimuli", "RetryBusyWorkerEvent, SecedeEvent"),
        ("shoal.compat.worker_states.stimuli", "StateMachineEvent, StealRequestEvent"),
        ("shoal.compat.worker_states.stimuli", "UnpauseEvent, UpdateDataEvent"),
        ("shoal.compat.worker_states.tasks", "PROCESSING, READY, RUN_ID_SENTINEL, TaskState"),
        ("shoal.compat.worker_states.tasks", "WAITING_FOR_DATA, merge_recs_instructions"),
    ),
}
"""Old module → the names that it has → the home of each."""
