"""How results come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.client.computing import futures_inside, replaced
from shoal.client.future import Future, futures_of
from shoal.client.gathering import FAILED, outcome_error
from shoal.client.lifecycle import ClientBase
from shoal.client.machine import CANCELLED


class Results(ClientBase):
    """`gather`, and which futures there are in what a user has."""

    async def gather(
        self,
        futures: Any,
        errors: str = "raise",
        direct: bool | None = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Fetch results: `futures`, nested in containers of any kind, with each one replaced.

        Args:
            errors: `raise` what the first failed task raised; `skip` those that failed (None, if
                not in a list at the top).
            direct: fetch from workers; False: through the scheduler.

        Raises:
            BaseException: what a task raised, with its traceback.
            CancelledError: a future was cancelled.
            ForeignFuture: one is another client's.
        """
        if errors not in ("raise", "skip"):
            raise ValueError(f"errors is 'raise' or 'skip', not {errors!r}")
        if type(futures).__name__ in ("Queue", "SimpleQueue"):
            raise TypeError("gather takes lists and the like, not a queue; make a list of it")
        if hasattr(futures, "__next__"):
            futures = list(futures)
        record_by_future = {future: self.record_of(future) for future in futures_inside(futures)}
        gathering = self.gathering(skip=errors == "skip", direct=direct)
        values = await gathering.run(list(record_by_future.values()))
        return replaced(futures, lambda future: values[record_by_future[future]], FAILED)

    def futures_of(self, futures: Any) -> list[Future]:
        """Futures inside containers and collections.

        Raises:
            CancelledError: one of them was cancelled.
        """
        return futures_of(futures, self)

    def refuse_cancelled(self, futures: Sequence[Future]) -> None:
        """Raise CancelledError if one of these was cancelled."""
        for future in futures:
            if future.record.status == CANCELLED:
                raise outcome_error(future.record)
