"""What code in the scheduler's process may have done about its workers and their memory.

It is asked of the machine as clients ask, by a client that lives in this process for one call.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from shoal.observe.facts import FactsOfScheduler
from shoal.protocol import operations
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import from_failure
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks
from shoal.protocol.keys import to_canonical
from shoal.protocol.membership import RestartWorkers, RetireWorkers, SetResources
from shoal.protocol.messages import Message
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.shell.membership import Membership

RESTART_SECONDS: Final = 30
"""In which workers that are restarted must be back, if nothing else is said."""


class Operating:
    """The part of the service that does what clients can ask for as well."""

    machine: SchedulerMachine
    membership: Membership

    @abstractmethod
    def identity(self, n_workers: int = -1) -> FactsOfScheduler:
        """What the scheduler and its workers are."""

    async def retire_workers(
        self,
        workers: Any = None,
        *,
        names: Any = None,
        close_workers: bool = False,
        remove: bool = True,
        timeout: float = operations.RETIRE_PATIENCE_SECONDS,
        stimulus_id: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """See `Client.retire_workers`; what each was that has been let go, by address."""
        chosen, closing = operations.who_retires(workers, names, kwargs)
        there = dict(self.identity()["workers"])
        verdicts = await self._ask(
            lambda request: RetireWorkers(request, chosen, closing, remove, timeout)
        )
        return operations.retired(verdicts, there)

    async def replicate(
        self,
        keys: Iterable[Any],
        n: int | None = None,
        workers: Any = None,
        branching_factor: int = 2,
        delete: bool = True,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.replicate`.  `delete`: not used; there are never more copies than asked."""
        ncopies = operations.require_copies(n, branching_factor)
        canonical = [to_canonical(key) for key in keys]
        names = operations.worker_names(workers)
        await self._ask(lambda r: ReplicateTasks(r, canonical, ncopies, names, branching_factor))

    async def rebalance(
        self,
        keys: Iterable[Any] | None = None,
        workers: Any = None,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.rebalance`."""
        canonical = None if keys is None else [to_canonical(key) for key in keys]
        names = None if workers is None else operations.worker_names(workers)
        for name in names or ():
            if not self.machine.state.workers_named([name]):
                raise KeyError(name)
        await self._ask(lambda request: RebalanceTasks(request, canonical, names))

    async def restart(
        self,
        *,
        client: str | None = None,
        timeout: float = RESTART_SECONDS,
        wait_for_workers: bool = True,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.restart`."""
        verdicts = await self._ask(
            lambda r: RestartWorkers(r, None, timeout, wait_for_workers, lets_go=True)
        )
        if wait_for_workers:
            operations.require_back(verdicts, timeout)

    async def restart_workers(
        self,
        workers: Any = None,
        *,
        client: str | None = None,
        timeout: float = RESTART_SECONDS,
        wait_for_workers: bool = True,
        on_error: str = "raise",
        stimulus_id: str | None = None,
    ) -> dict[Any, str]:
        """See `Client.restart_workers`.

        Args:
            workers: None: all.
            on_error: "raise", or "return" what became of each.
        """
        there = self.identity()["workers"]
        found = operations.addresses_of(list(there) if workers is None else workers, there)
        addresses = list(found.values())
        verdicts: dict[str, str] = await self._ask(
            lambda request: RestartWorkers(request, addresses, timeout, wait_for_workers)
        )
        raises = on_error == "raise"
        return operations.require_restarted(found, verdicts, timeout, raises=raises)

    async def add_resources(
        self, worker: str, resources: dict[str, float] | None = None
    ) -> dict[str, float]:
        """Let a worker (address or name) have these amounts; all that it has now."""
        has: dict[str, float] = await self._ask(
            lambda request: SetResources(request, worker, dict(resources or {}))
        )
        return has

    async def _ask(self, make: Callable[[int], Message]) -> Any:
        """The machine's answer to a call.

        Args:
            make: the call, given its request number.

        Raises:
            ConnectionError: this scheduler closes.
            BaseException: what it is refused with.
        """
        stepping = self.membership.stepping
        reply: asyncio.Future[Answer | Refusal] = asyncio.get_running_loop().create_future()

        def hear(messages: Sequence[Message]) -> None:
            for message in messages:
                if isinstance(message, (Answer, Refusal)) and not reply.done():
                    reply.set_result(message)
            if not messages and not reply.done():
                reply.set_exception(ConnectionError("this scheduler closes"))

        call = make(1)
        client = stepping.join_inside(hear)
        try:
            stepping.receive_from_inside(client, call)
            said = await reply
        finally:
            stepping.leave_inside(client)
        if isinstance(said, Refusal):
            raise from_failure(said.failure)
        return answered(type(call), said)
