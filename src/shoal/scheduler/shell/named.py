"""What a scheduler answers to by name, what it asks of workers by name, and calls of its own.

`scheduler.handlers` is a dict, made when somebody first looks at it: what is documented, and what
programs add.  Clients call these as `client.scheduler.<name>()`, and `broadcast` calls those that
workers have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final, cast

from shoal import config
from shoal.comms.functions import call_function
from shoal.observe.handling import Caller, packed, report_of, sealed, value_of
from shoal.observe.named import CONVERSATION, LATER, CalledByName
from shoal.observe.views import WorkerView
from shoal.protocol import operations
from shoal.protocol.answers import Refusal
from shoal.protocol.datasets import UnpublishDatasets
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import to_failure
from shoal.protocol.handshake import Keyring
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.named import CallNamed
from shoal.protocol.payload import dump_function, load
from shoal.protocol.running import Outcome
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.policies.retirement import workers_to_close
from shoal.scheduler.policies.scaling import deserved, target_of
from shoal.scheduler.shell.by_hand import ByHand
from shoal.scheduler.shell.host import Host
from shoal.scheduler.shell.looks_by_name import LooksByName
from shoal.scheduler.shell.reaching import ask_nanny
from shoal.scheduler.shell.settings import are_plain
from shoal.units import to_seconds

THE_SCHEDULER: Final = "the scheduler"

ON_ERROR: Final = ("raise", "return", "return_pickle", "ignore")

BY_NAME: Final[Mapping[str, str]] = {
    "adaptive_target": "adaptive_target",
    "amm_handler": "steer_rounds",
    "benchmark_hardware": "benchmark_hardware",
    "broadcast": "pass_on_broadcast",
    "call_stack": "get_call_stack",
    "check_idle": "check_idle",
    "dump_cluster_state_to_url": "dump_cluster_state_to_url",
    "echo": "echo",
    "events": "get_events",
    "feed": "feed",
    "get_cluster_state": "get_cluster_state",
    "get_logs": "get_logs",
    "get_metadata": "get_metadata",
    "get_story": "get_story",
    "get_task_prefix_states": "get_task_prefix_states",
    "get_task_status": "look_at_task_status",
    "has_what": "look_at_has_what",
    "identity": "identity",
    "log_event": "log_event",
    "logs": "get_logs",
    "nbytes": "look_at_nbytes",
    "ncores": "get_ncores",
    "ncores_running": "get_ncores_running",
    "processing": "look_at_processing",
    "proxy": "pass_on_proxy",
    "publish_delete": "unpublish",
    "publish_list": "published_names",
    "rebalance": "rebalance",
    "register_nanny_plugin": "register_nanny_plugin",
    "register_scheduler_plugin": "register_scheduler_plugin",
    "register_worker_plugin": "register_worker_plugin",
    "replicate": "replicate",
    "restart": "restart",
    "restart_workers": "restart_workers",
    "retire_workers": "retire_workers",
    "run_function": "run_function",
    "set_metadata": "set_metadata",
    "set_resources": "add_resources",
    "subscribe_worker_status": "subscribe_worker_status",
    "terminate": "end_soon",
    "unregister_nanny_plugin": "unregister_nanny_plugin",
    "unregister_scheduler_plugin": "unregister_scheduler_plugin",
    "unregister_worker_plugin": "unregister_worker_plugin",
    "versions": "versions",
    "who_has": "look_at_who_has",
    "worker_logs": "get_worker_logs",
    "workers_to_close": "workers_to_close",
}
"""Operation -> the method that answers to it."""

REFUSED: Final[Mapping[str, str]] = {
    "add_keys": CONVERSATION,
    "gather": "client.gather fetches results from those who hold them.",
    "get_task_stream": LATER,
    "get_task_stream_index": LATER,
    "heartbeat_worker": CONVERSATION,
    "performance_report": LATER,
    "profile": LATER,
    "register-client": CONVERSATION,
    "register-worker": CONVERSATION,
    "register_nanny": CONVERSATION,
    "retry": "client.retry tries failed tasks again.",
    "scatter": "client.scatter gives values to workers.",
    "set_restrictions": "submit(workers=...) says where a task may run.",
    "start_task_metadata": "get_task_metadata() is a block of code by itself.",
    "stop_task_metadata": "get_task_metadata() is a block of code by itself.",
    "unregister": CONVERSATION,
    "update_data": CONVERSATION,
}
"""Operations that upstream's has and this one has not -> why, or what to do instead."""


class Named(ByHand, LooksByName, CalledByName):
    """The part of the service that is called by name, and calls others so."""

    by_name = BY_NAME
    reasons = REFUSED

    blocked_handlers: Collection[str] = ()
    """Names that it refuses to answer to."""

    @property
    def _called(self) -> str:
        return THE_SCHEDULER

    @property
    def _proofs(self) -> Keyring:
        return Keyring.from_token(self._service.token)

    @cached_property
    def extensions(self) -> dict[str, Any]:
        """What programs keep beside the scheduler, by name, and what is shown of its own parts."""
        from shoal.observe.extensions import extensions_of

        return extensions_of(cast(Host, self).machine.state) | {"amm": self.rounds}

    @cached_property
    def rounds(self) -> Any:
        """What drops copies of results that nobody needs; made when somebody looks, or sets it.

        Until then the machine does so by itself.
        """
        from shoal.scheduler.shell.rounds import plain_rounds  # only here, as it is rare

        return plain_rounds(self)

    def _begin_rounds(self) -> None:
        """Have policies run that the settings name, if the machine does not do all they ask for.

        Raises:
            Exception: one can't be imported or made.
        """
        if not are_plain(config.read(config.Replicas).policies):
            from shoal.scheduler.shell.rounds import Rounds

            Rounds(self)

    async def _end_named(self) -> None:
        if "rounds" in self.__dict__:
            self.rounds.close()
        await super()._end_named()

    # --- workers, by name --------------------------------------------------------------------

    async def broadcast(
        self,
        *,
        msg: Mapping[str, Any],
        workers: Collection[str] | str | None = None,
        hosts: Collection[str] | None = None,
        nanny: bool = False,
        serializers: Any = None,
        on_error: str = "raise",
    ) -> dict[str, Any]:
        """Call an operation of many workers at once; address -> what it returned there.

        Args:
            msg: `{"op": name, argument: value, ...}`.
            workers: addresses or names; None: all, unless `hosts` are named.
            hosts: all workers of these as well.
            nanny: call it where their nannies are; those without one are left out.
            serializers: not used.
            on_error: `raise` what the first raised; `return` it, or its pickle (`return_pickle`),
                in place of a result; `ignore` those workers.

        Raises:
            NotForThisCall: `msg` names no operation (a ValueError).
            KeyError: there is no such worker.
        """
        return await self._broadcast(value_of, msg, workers, hosts, nanny, on_error)

    async def proxy(self, msg: Mapping[str, Any], worker: str, serializers: Any = None) -> Any:
        """Call an operation of one worker; what it returned.  Raises as `broadcast`."""
        answers = await self.broadcast(msg=msg, workers=[worker])
        return next(iter(answers.values()))

    async def pass_on_broadcast(
        self,
        comm: Any,
        *,
        msg: Mapping[str, Any],
        workers: Collection[str] | str | None = None,
        hosts: Collection[str] | None = None,
        nanny: bool = False,
        serializers: Any = None,
        on_error: str = "raise",
    ) -> dict[str, Any]:
        """As `broadcast`; what is for a client is not unpickled here.

        Args:
            comm: who asks; who does so by a comm gets the values themselves.
        """
        opened = sealed if isinstance(comm, Caller) else value_of
        return await self._broadcast(opened, msg, workers, hosts, nanny, on_error)

    async def pass_on_proxy(
        self, comm: Any, *, msg: Mapping[str, Any], worker: str, serializers: Any = None
    ) -> Any:
        """As `proxy`; what is for a client is not unpickled here."""
        answers = await self.pass_on_broadcast(comm, msg=msg, workers=[worker])
        return next(iter(answers.values()))

    async def _broadcast(
        self,
        opened: Callable[[Outcome, str], Iterator[Any]],
        message: Mapping[str, Any],
        workers: Collection[str] | str | None,
        hosts: Collection[str] | None,
        nanny: bool,
        on_error: str,
    ) -> dict[str, Any]:
        """See `broadcast`; `opened`: what is made of each outcome."""
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
        name, arguments = packed(message)
        chosen = self._chosen(workers, hosts)
        if nanny:
            chosen = [worker for worker in chosen if worker.has_nanny]
        call = _call_beside if nanny else _call_on
        outcomes = await asyncio.gather(
            *(call(cast(Host, self), worker, name, arguments) for worker in chosen)
        )
        return {
            worker.address: value
            for worker, outcome in zip(chosen, outcomes, strict=True)
            for value in opened(outcome, on_error)
        }

    def _chosen(
        self, workers: Collection[str] | str | bool | None, hosts: Collection[str] | None
    ) -> list[Worker]:
        state = cast(Host, self).machine.state
        if workers is True or (workers is None and hosts is None):
            return list(state.workers.values())
        names = operations.worker_names(workers or []) + operations.worker_names(hosts)
        for name in names:
            if name not in state.workers_by_alias:
                raise KeyError(name)
        return list(state.workers_named(names))

    def workers_list(self, workers: Collection[str] | None) -> list[str]:
        """Addresses of those that any of these means (addresses, names, hosts); None: of all."""
        state = cast(Host, self).machine.state
        if workers is None:
            return list(state.workers)
        return [worker.address for worker in state.workers_named(operations.worker_names(workers))]

    def workers_to_close(
        self,
        memory_ratio: float | None = None,
        n: int | None = None,
        key: Any = None,
        minimum: int | None = None,
        target: int | None = None,
        attribute: str = "address",
    ) -> list[Any]:
        """Which workers `retire_workers` would let go, by the same arguments; none goes.

        Args:
            key: a function too (or its pickle): workers for which it gives the same go or stay
                together.
            attribute: what of each is returned: `address`, `name` or `host`.
        """
        if isinstance(key, bytes):
            key = load(key)
        group_of = (lambda worker: key(WorkerView(worker))) if callable(key) else None
        limits = {
            "memory_ratio": memory_ratio,
            "n": n,
            "key": None if callable(key) else key,
            "minimum": minimum,
            "target": target,
        }
        _, closing = operations.who_retires(None, None, limits)
        assert closing is not None
        there = list(cast(Host, self).machine.state.workers.values())
        chosen = workers_to_close(there, closing, group_of)
        return [getattr(worker, attribute) for worker in chosen]

    def adaptive_target(self, target_duration: Any = None) -> int:
        """How many workers the load deserves; none that is busy, or full, is one too many.

        Args:
            target_duration: what the work at hand may take, such as 5 or "1 minute"; None: as is
                set for clusters that adapt.
        """
        if target_duration is None:
            seconds = config.read(config.Adaptive).target_seconds
        else:
            seconds = to_seconds(target_duration)
        return target_of(deserved(cast(Host, self).machine.state, seconds))

    def steer_rounds(self, method: str) -> bool | None:
        """Start, stop, have once or ask after the rounds that drop copies nobody needs.

        Raises:
            ValueError: `method` is none of `start`, `stop`, `run_once` and `running`.
        """
        found: bool | None = self.rounds.amm_handler(method)
        return found

    def end_soon(self) -> str:
        """Close, once this is answered."""
        cast(Host, self).close_soon("it was asked for by name")
        return "OK"

    # --- looks -------------------------------------------------------------------------------

    def get_ncores_running(self, workers: Iterable[str] | None = None) -> dict[str, int]:
        """Threads of each worker that is not about to go; of all of those if none is named."""
        there = cast(Host, self).machine.state.workers
        asked = list(there) if workers is None else list(workers)
        return {w: there[w].nthreads for w in asked if w in there and not there[w].is_leaving}

    def get_task_prefix_states(self) -> dict[str, dict[str, int]]:
        """Name of a function -> state -> how many of its tasks are in it, of those that are any."""
        prefixes = cast(Host, self).machine.state.prefixes
        counts = {
            name: {state: n for state, n in prefix.ntasks.items() if n}
            for name, prefix in prefixes.items()
        }
        return {name: states for name, states in counts.items() if states}

    async def get_story(self, keys_or_stimuli: Iterable[Any]) -> list[Any]:
        """As `story`, of keys or stimuli in a list."""
        view: Any = self
        return list(view.story(*keys_or_stimuli))

    def published_names(self) -> tuple[Any, ...]:
        """Names of the values that are published."""
        return tuple(map(from_canonical, cast(Host, self).machine.state.datasets))

    async def unpublish(self, name: Any) -> None:
        """Let go of a published value.  Raises KeyError: there is none of that name."""
        asking: Any = self
        if not await asking._ask(lambda n: UnpublishDatasets(n, [to_canonical(name)])):
            raise KeyError(name)

    async def subscribe_worker_status(self, comm: Any) -> Any:
        """Tell over `comm` who is there, and who comes and goes, for as long as it lasts."""
        watching = import_module("shoal.compat.servers.membership")  # old names stand on us
        return await watching.subscribe_worker_status(self, comm)

    # --- functions ---------------------------------------------------------------------------

    async def run_function(
        self,
        comm: Any,
        function: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> dict[str, Any]:
        """Call a function here: `{"status": "OK", "result": ...}`, or `error` and the exception.

        Args:
            function: it, or its pickle; `dask_scheduler=` is given if it takes that.
            args: a tuple, or its pickle; so with `kwargs`.
        """
        call = call_function
        return await report_of(call, function, args, kwargs, {"dask_scheduler": self}, wait=wait)


async def _call_on(host: Host, worker: Worker, name: str, arguments: bytes) -> Outcome:
    """What a worker makes of it; ends with its connection."""
    try:
        peer = host.peer_of(worker)
        _, said = await peer.calls.ask(
            lambda request: CallNamed(request, name, arguments), lambda call: peer.send([call])
        )
    except OSError as error:
        return Outcome(failure=to_failure(error, worker=worker.address))
    if isinstance(said, Refusal):
        return Outcome(failure=said.failure)
    outcome: Outcome = answered(CallNamed, said)
    return outcome


async def _call_beside(host: Host, worker: Worker, name: str, arguments: bytes) -> Outcome:
    """What a worker's nanny makes of it."""
    try:
        packed = dump_function((name, arguments))
        return await ask_nanny(host.peer_of(worker), "call", packed)
    except OSError as error:
        return Outcome(failure=to_failure(error, worker=worker.address))
