"""Functions called in the processes of workers and of the scheduler, beside the tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.protocol import running
from shoal.protocol.exceptions import from_failure
from shoal.protocol.operations import worker_names
from shoal.protocol.payload import dump_function, load


class Elsewhere(ClientBase):
    """`run` and `run_on_scheduler`."""

    async def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        workers: Any = None,
        wait: bool = True,
        nanny: bool = False,
        on_error: str = "raise",
        **kwargs: Any,
    ) -> Any:
        """Call a function in workers' processes, beside the tasks.

        Args:
            function: is given the worker as `dask_worker` if it takes that; may be a coroutine
                function.
            workers: addresses or names; None: all.
            wait: False: don't wait, and return None.
            nanny: call it where their nannies are, and give it the nanny as `dask_worker`.
            on_error: `raise` what it raised; `return` that instead of a result; `ignore` those
                workers.

        Returns:
            Worker -> what the function returned there.
        """
        if on_error not in ("raise", "return", "ignore"):
            raise ValueError(f"on_error must be 'raise', 'return' or 'ignore', not {on_error!r}")
        names = None if workers is None else worker_names(workers)
        payload = dump_function((function, args, kwargs))
        outcomes: dict[str, running.Outcome] = await self.session.call(
            lambda request: running.RunOnWorkers(request, payload, names, wait, nanny)
        )
        if not wait:
            return None
        results = {}
        for worker, outcome in outcomes.items():
            if outcome.failure is None:
                results[worker] = load(self.session.families.guard(outcome.value))
                continue
            if on_error == "raise":
                raise from_failure(outcome.failure)
            if on_error == "return":
                results[worker] = from_failure(outcome.failure)
        return results

    async def run_coroutine(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """As `run`, which takes coroutine functions too."""
        return await self.run(function, *args, **kwargs)

    async def run_on_scheduler(
        self, function: Callable[..., Any], *args: Any, wait: bool = True, **kwargs: Any
    ) -> Any:
        """Call a function in the scheduler's process.

        Args:
            function: is given the scheduler as `dask_scheduler` if it takes that; may be a
                coroutine function.
        """
        payload = dump_function((function, args, kwargs))
        outcome: running.Outcome = await self.session.call(
            lambda request: running.RunOnScheduler(request, payload, wait)
        )
        if outcome.failure is not None:
            raise from_failure(outcome.failure)
        return load(self.session.families.guard(outcome.value)) if wait else None
