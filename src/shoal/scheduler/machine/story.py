"""The record of transitions: what is asked when a task surprises somebody, and what hooks read."""

from collections import deque
from collections.abc import Iterator, Set

from shoal.ids import Key, WorkerId
from shoal.protocol.questions import Transition

Record = tuple[float, Key, str, str, str, int, int]
"""When (s, monotonic), key, state before, state after, cause, number of the step, why placed."""

Move = tuple[float, Key, WorkerId, WorkerId]
"""When (s, monotonic), key, from whose backlog, to whom."""

MOVES_KEPT = 1_000
"""Tasks taken from one worker's backlog by another."""


class Story:
    """The latest transitions, oldest first; bounded, about 150 bytes each."""

    __slots__ = ("moves", "records")

    def __init__(self, records_max: int) -> None:
        self.records: deque[Record] = deque(maxlen=records_max)
        self.moves: deque[Move] = deque(maxlen=min(records_max, MOVES_KEPT))

    def where(self, keys: Set[Key], steps: Set[tuple[str, int]]) -> list[Transition]:
        """Those of these keys, or of these steps, by cause and number.  Cost: O(records)."""
        return [
            Transition(*record)
            for record in self.records
            if record[1] in keys or record[4:6] in steps
        ]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)
