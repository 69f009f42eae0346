"""Where results are: copies of them, and memory that is evened out."""

from __future__ import annotations

from functools import partial
from typing import Any

from shoal.client.control.keys import keys_in
from shoal.client.future import futures_of
from shoal.client.lifecycle import ClientBase
from shoal.protocol import holding, questions
from shoal.protocol.operations import require_copies, worker_names


class Copies(ClientBase):
    """`replicate`, `rebalance` and `amm`."""

    @property
    def amm(self) -> Any:
        """The rounds that drop copies which nobody needs: `start()`, `stop()`, `run_once()` and
        `running()`.
        """
        from shoal.client.rounds import RoundsOfScheduler  # only here, as it is rare

        return RoundsOfScheduler(self.face)

    async def replicate(
        self,
        futures: Any,
        n: int | None = None,
        workers: Any = None,
        branching_factor: int = 2,
        asynchronous: bool | None = None,
    ) -> None:
        """Have copies of results on several workers, from now on and as long as they are needed.

        Where a worker that has one goes, another gets one.  Returns when the copies are there; one
        that a worker can't get for now, as it does not answer, is made later.

        Args:
            futures: of the results; they are waited for.
            n: how many copies there shall be, no more and no less; None: one on each worker, on
                those that come later too.
            workers: addresses, names or hosts among which that holds; None: all.
            branching_factor: copies made at once from each that is there.

        Raises:
            ValueError: `n` or `branching_factor` is no number from 1 on.
        """
        ncopies = require_copies(n, branching_factor)
        keys = await self._keys_in_memory(futures)
        names = worker_names(workers)
        await self.session.call(
            lambda r: holding.ReplicateTasks(r, keys, ncopies, names, branching_factor)
        )

    async def rebalance(
        self, futures: Any = None, workers: Any = None, asynchronous: bool | None = None
    ) -> None:
        """Move results from workers that are full to emptier ones, until memory is even.

        Nearly empty workers keep what they have; what has several copies is not moved.  Returns
        when all has moved.

        Args:
            futures: only these are moved, and waited for before; None: any.
            workers: addresses, names or hosts among which; None: all.

        Raises:
            KeyError: there is no worker of that name.
        """
        keys = None if futures is None else await self._keys_in_memory(futures)
        names = None if workers is None else await self._known(worker_names(workers))
        await self.session.call(lambda request: holding.RebalanceTasks(request, keys, names))

    async def _known(self, names: list[str]) -> list[str]:
        """`names`, if each means some worker."""
        for name in names:
            call = partial(questions.NThreads, workers=[name])
            if not await self.session.call(call):
                raise KeyError(name)
        return names

    async def _keys_in_memory(self, futures: Any) -> list[Any]:
        """Keys of these, once they have ended."""
        records = [self.record_of(future) for future in futures_of(futures)]
        await self.session.wait_all(records)
        return keys_in(futures)
