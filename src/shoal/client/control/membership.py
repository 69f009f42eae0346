"""Which workers there are: waiting for them, and letting them go."""

from __future__ import annotations

from typing import Any

from shoal.client.control.questions import Questions
from shoal.client.errors import WorkersLate
from shoal.client.options import seconds_or, worker_names
from shoal.client.prospects import prospects_of, unless_hopeless
from shoal.comms import CallTimeoutError
from shoal.protocol import membership


class Membership(Questions):
    """`wait_for_workers` and `retire_workers`."""

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
    ) -> list[str]:
        """Let workers go; what they ran is run elsewhere.  Returns their addresses."""
        names = list(await self.nthreads()) if workers is None else worker_names(workers)
        gone: list[str] = await self.session.call(lambda r: membership.CloseWorkers(r, names))
        return gone
