"""How results come back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from shoal.client.computing import futures_inside, replaced
from shoal.client.future import Future, futures_of
from shoal.client.gathering import FAILED, cancelled_errors, from_where_it_was_raised
from shoal.client.lifecycle import ClientBase, finishes
from shoal.client.standins import calls_in
from shoal.comms.cancellation import is_our_cancellation


class Results(ClientBase):
    """`gather`, and which futures there are in what a user has."""

    @finishes
    def gather(
        self,
        futures: Any,
        errors: str = "raise",
        direct: bool | None = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Fetch results: `futures`, nested in containers of any kind, with each one replaced.

        Of an iterator, an iterator: each result is waited for when it is its turn.

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
            one = partial(self.face.gather, errors=errors, direct=direct, asynchronous=asynchronous)
            return map(one, futures)
        return self._gathered(futures, errors, direct)

    async def _gathered(self, futures: Any, errors: str, direct: bool | None) -> Any:
        calls = calls_in(futures)
        record_by_future = {future: self.record_of(future) for future in futures_inside(futures)}
        gathering = self.gathering(skip=errors == "skip", direct=direct)
        work = gathering.run(list(record_by_future.values()))
        outcomes: dict[Any, Any] = {}
        try:
            if calls:
                from shoal.client.actors.gathered import gather_together  # few have any

                outcomes, values = await gather_together(calls, work, skip=errors == "skip")
            else:
                values = await work
        except BaseException as error:
            if is_our_cancellation(error):
                raise
            raise from_where_it_was_raised(error)  # noqa: B904  # it is the error itself
        if not calls:
            return replaced(futures, lambda future: values[record_by_future[future]], FAILED)
        outcomes |= {future: values[record] for future, record in record_by_future.items()}
        kinds = (Future, *dict.fromkeys(type(call) for call in calls))
        return replaced(futures, lambda future: outcomes[future], FAILED, kinds)

    def futures_of(self, futures: Any) -> list[Future]:
        """Futures inside containers and collections.

        Raises:
            FuturesCancelledError: one of them was cancelled; a CancelledError.
        """
        return futures_of(futures, self)

    def refuse_cancelled(self, futures: Sequence[Future]) -> None:
        """Raise FuturesCancelledError if some of these were cancelled."""
        cancelled = cancelled_errors(future.record for future in futures)
        if cancelled is not None:
            raise cancelled
