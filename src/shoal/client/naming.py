"""Calls under names that users chose: two that differ under one name share the first one's result.

That is what a key means, here as in dask; but nobody should have to find it out by wrong results.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from shoal.client.machine import Record
from shoal.ids import Key

REMEMBERED_MAX: Final = 10_000
HASHED_NBYTES: Final = 1 << 16
"""Of the arguments; beyond that only their size is compared."""


class TakenNames:
    """What was called under the latest of these names; one for each session."""

    def __init__(self) -> None:
        self._calls: OrderedDict[Key, tuple[int, int]] = OrderedDict()

    def is_another(
        self, record: Record, function: bytes, argument: bytes, needs: tuple[Key, ...]
    ) -> bool:
        """Whether the want of this name began with another call than this one.

        Args:
            function: its digest.
            argument: the pickled arguments.
            needs: what the futures in them stand for.

        Any thread may ask.  Cost: 1 us.
        """
        call = hash((function, len(argument), argument[:HASHED_NBYTES], needs))
        known = self._calls.get(record.key)
        if known is not None and known[0] == record.number:
            return known[1] != call
        if len(self._calls) >= REMEMBERED_MAX:
            self._calls.popitem(last=False)  # in one piece, whoever else does so now
        self._calls[record.key] = record.number, call
        return False
