"""What code in the scheduler's process may have done about its workers and their memory.

It is asked of the machine as clients ask, by a client that lives in this process for one call.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shoal.errors import WithoutNanny, WorkersNotBack, WorkersNotRestarted
from shoal.observe.facts import FactsOfScheduler
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import from_failure
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks
from shoal.protocol.keys import to_canonical
from shoal.protocol.membership import Closing, RestartWorkers, RetireWorkers, SetResources
from shoal.protocol.messages import Message
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.shell.membership import Membership

PATIENCE_SECONDS = 30.0
"""Without any progress, until a worker that shall retire is kept."""


class Operating:
    """The part of the service that does what clients can ask for as well."""

    machine: SchedulerMachine
    membership: Membership

    @abstractmethod
    def identity(self, n_workers: int = -1) -> FactsOfScheduler:
        """What the scheduler and its workers are."""

    async def retire_workers(
        self,
        workers: Iterable[str] | None = None,
        *,
        names: Iterable[Any] | None = None,
        close_workers: bool = False,
        remove: bool = True,
        stimulus_id: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """See `Client.retire_workers`; what each was that has been let go, by address."""
        if names is not None and workers is not None:
            raise TypeError("names and workers are mutually exclusive")
        chosen = workers if names is None else names
        if chosen is not None and kwargs:
            raise TypeError(f"{', '.join(kwargs)} can't be used together with names or workers")
        known = None if chosen is None else [str(worker) for worker in chosen]
        there = dict(self.identity()["workers"])
        closing = None if known is not None else Closing(**kwargs)
        verdicts = await self._ask(
            lambda request: RetireWorkers(request, known, closing, remove, PATIENCE_SECONDS)
        )
        return {address: there.get(address, {}) for address, why in verdicts.items() if not why}

    async def replicate(
        self,
        keys: Iterable[Any],
        n: int | None = None,
        workers: Iterable[str] | None = None,
        branching_factor: int = 2,
        delete: bool = True,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.replicate`.  `delete`: not used; there are never more copies than asked."""
        canonical = [to_canonical(key) for key in keys]
        names = [] if workers is None else list(workers)
        await self._ask(lambda r: ReplicateTasks(r, canonical, n or 0, names, branching_factor))

    async def rebalance(
        self,
        keys: Iterable[Any] | None = None,
        workers: Iterable[str] | None = None,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.rebalance`."""
        canonical = None if keys is None else [to_canonical(key) for key in keys]
        names = None if workers is None else list(workers)
        await self._ask(lambda request: RebalanceTasks(request, canonical, names))

    async def restart(
        self,
        *,
        client: str | None = None,
        timeout: float = PATIENCE_SECONDS,
        wait_for_workers: bool = True,
        stimulus_id: str | None = None,
    ) -> None:
        """See `Client.restart`."""
        verdicts = await self._ask(
            lambda r: RestartWorkers(r, None, timeout, wait_for_workers, lets_go=True)
        )
        nlate = sum(verdict == "timed out" for verdict in verdicts.values())
        nremoved = sum(verdict == "removed" for verdict in verdicts.values())
        if wait_for_workers and nlate + nremoved:
            raise WorkersNotBack(len(verdicts), nlate, nremoved, timeout)

    async def restart_workers(
        self,
        workers: Iterable[str] | None = None,
        *,
        client: str | None = None,
        timeout: float = PATIENCE_SECONDS,
        wait_for_workers: bool = True,
        on_error: str = "raise",
        stimulus_id: str | None = None,
    ) -> dict[str, str]:
        """See `Client.restart_workers`.  `on_error`: "raise", or "return" what became of each."""
        names = None if workers is None else list(workers)
        verdicts: dict[str, str] = await self._ask(
            lambda request: RestartWorkers(request, names, timeout, wait_for_workers)
        )
        without = [address for address, verdict in verdicts.items() if verdict == "no nanny"]
        if without:
            raise WithoutNanny(without)
        late = [address for address, verdict in verdicts.items() if verdict != "OK"]
        if late and on_error == "raise":
            raise WorkersNotRestarted(late, len(verdicts), timeout)
        return verdicts

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
