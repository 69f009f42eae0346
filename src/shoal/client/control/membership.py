"""Which workers there are: waiting for them, letting them go, and having them replaced."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from shoal.client.control.questions import Questions
from shoal.client.errors import WorkersLate
from shoal.client.options import seconds_or
from shoal.client.prospects import prospects_of, unless_hopeless
from shoal.comms import CallTimeoutError
from shoal.protocol import membership, operations

RESTART_TIMEOUTS: Final = 4
"""How many times longer than connecting a restart may take, if nothing else is said."""

ANSWER_SECONDS: Final = 10.0
"""What an answer may take beyond the time in which it is to come."""

_logger = logging.getLogger("shoal.client")


class Retired(dict[str, dict[str, Any]]):
    """What the workers were that have been let go, by address."""

    def __init__(self, retired: Mapping[str, dict[str, Any]], kept: Mapping[str, str]) -> None:
        super().__init__(retired)
        self.kept = dict(kept)
        """Address -> why this one was not let go, and goes on working."""


class Membership(Questions):
    """`wait_for_workers`, `retire_workers`, `restart` and `restart_workers`."""

    async def wait_for_workers(self, n_workers: int, timeout: Any = None) -> None:
        """Wait until that many workers are connected.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            ValueError: `n_workers` is no number from 1 on.
            TimeoutError: they did not come in time.
            CrashLoop, ProcessDied: they can't come, as those that were started died.
        """
        if type(n_workers) is not int or n_workers < 1:
            raise ValueError(f"`n_workers` must be a positive integer. Instead got {n_workers!r}.")
        seconds = seconds_or(timeout, None)
        try:
            await unless_hopeless(
                self.session.call(
                    lambda request: membership.AwaitWorkers(request, n_workers),
                    timeout_seconds=seconds,
                ),
                prospects_of(self.cluster),
                n_workers,
            )
        except CallTimeoutError as error:
            nhere = len(await self.nthreads())
            raise WorkersLate(n_workers, nhere, seconds_or(timeout, 0)) from error

    async def retire_workers(
        self, workers: Any = None, close_workers: bool = True, **kwargs: Any
    ) -> Retired:
        """Let workers go without losing a result.

        From now on they are given nothing new; what only they hold is copied to others; then they
        close.  What they execute may end within a second; what takes longer is run elsewhere.  A
        worker whose results no other can take goes on working, and so does one from which they are
        not taken in time.

        Args:
            workers: addresses, names or hosts; None: idle ones, as long as those that are left have
                twice the memory that results take.
            close_workers: not used; whoever is let go closes.
            kwargs: `names`: instead of `workers`; `n`, `target`, `minimum`, `memory_ratio`: how
                many may go; `key="host"`: those of a host together; `remove=False`: they stay
                connected, without work; `timeout`: seconds without progress until one is kept (30).

        Returns:
            Address -> what each was that was let go.  Its `kept` says why others were not.

        Raises:
            TypeError: `names` beside `workers`, how many beside whom, or an unknown argument.
        """
        names = kwargs.pop("names", None)
        removes = kwargs.pop("remove", True)
        patience = operations.RETIRE_PATIENCE_SECONDS
        patience_seconds = seconds_or(kwargs.pop("timeout", None), patience)
        chosen, closing = operations.who_retires(workers, names, kwargs)
        there = (await self.scheduler_info())["workers"]
        verdicts: dict[str, str] = await self.session.call(
            lambda request: membership.RetireWorkers(
                request,
                chosen,
                closing,
                removes,
                patience_seconds,
            )
        )
        kept = {address: why for address, why in verdicts.items() if why}
        for address, why in kept.items():
            _logger.warning("The worker at %s was not retired: %s", address, why)
        return Retired(operations.retired(verdicts, there), kept)

    async def restart(self, timeout: Any = None, wait_for_workers: bool = True) -> None:
        """Forget all tasks of all clients, and start all workers anew.

        All futures are cancelled, whoever holds them; so is what datasets and queues keep.  Workers
        without a nanny are sent away; whatever has started them has to start others.

        Args:
            timeout: seconds in which the new workers must be there; four times what connecting may
                take, if None.
            wait_for_workers: until there are as many as there were.

        Raises:
            TimeoutError: they are not back in time.
        """
        seconds = seconds_or(timeout, RESTART_TIMEOUTS * self._timeout_seconds)
        verdicts = await self._restart(None, seconds, waits=wait_for_workers, lets_go=True)
        if wait_for_workers:
            operations.require_back(verdicts, seconds)

    async def restart_workers(
        self, workers: Any, timeout: Any = None, raise_for_error: bool = True
    ) -> dict[Any, str]:
        """Start these workers anew, in new processes; what they held is computed again.

        Args:
            workers: addresses or names.
            timeout: as for `restart`.
            raise_for_error: False: who is not back is told of in what is returned.

        Returns:
            Each of `workers` -> "OK", or "timed out".

        Raises:
            ValueError: one has no nanny, so nobody would start it.
            KeyError: there is no such worker.
            TimeoutError: one is not back in time.
        """
        there = (await self.scheduler_info())["workers"]
        found = operations.addresses_of(workers, there)
        seconds = seconds_or(timeout, RESTART_TIMEOUTS * self._timeout_seconds)
        verdicts = await self._restart(list(found.values()), seconds, waits=True, lets_go=False)
        return operations.require_restarted(found, verdicts, seconds, raises=raise_for_error)

    async def _restart(
        self, workers: list[str] | None, seconds: float, *, waits: bool, lets_go: bool
    ) -> dict[str, str]:
        verdicts: dict[str, str] = await self.session.call(
            lambda r: membership.RestartWorkers(r, workers, seconds, waits, lets_go),
            timeout_seconds=seconds + ANSWER_SECONDS,
        )
        return verdicts
