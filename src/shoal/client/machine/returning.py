"""What a client knows of its wants, and how it says them again to a scheduler that came back.

While it is away from any, nothing ends: what is pending stays so, and what has finished too, though
nobody knows where.  What the user does meanwhile gathers, and is said after all that lives.
"""

from collections.abc import Callable, Iterable
from typing import Final

from shoal.client.machine.lineage import Lineage
from shoal.client.machine.outgoing import Outgoing
from shoal.client.machine.record import ERROR, FINISHED, Record
from shoal.ids import ClientTaskId, Epoch, Key, TaskId
from shoal.protocol.actors import PromiseValue
from shoal.protocol.detached import DetachTasks
from shoal.protocol.holding import RetryTasks
from shoal.protocol.messages import (
    CancelTasks,
    DefineClientCode,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    WantKey,
)
from shoal.protocol.shuffles import DefineShuffles

_SAID_AGAIN: Final = frozenset(
    (
        SubmitTasks,
        WantKey,
        PromiseValue,
        DefineShuffles,
        DefineClientCode,
        ForgetClientCode,
        ReleaseTasks,
        CancelTasks,
        DetachTasks,
        RetryTasks,
    )
)
"""What follows from the wants that there are, so that nothing of it has to be kept as a message."""


class Returning(Outgoing):
    """The wants of a client, and its way back."""

    def __init__(self, functions_max: int, function_bytes_max: int) -> None:
        super().__init__(functions_max, function_bytes_max)
        self.epoch: Epoch | None = None  # None until welcomed, and after the connection was lost
        self.is_away = False  # there is no scheduler just now, and one may come back
        self.records: dict[Key, Record] = {}  # live wants by key: what a new future may share
        self.by_number: dict[ClientTaskId, Record] = {}  # wants that the scheduler may answer
        self.astray: dict[ClientTaskId, Record] = {}
        """Those that have finished, and of which nobody has said anew where they are."""
        self.unsaid: dict[ClientTaskId, Record] = {}
        """Those that have failed at a scheduler before: this one doesn't know them yet."""
        self._greeting: Callable[[], list[Message]] = list
        self._resolved: list[Record] = []

    def may_return(self, greeting: Callable[[], list[Message]]) -> None:
        """From now on, keep what is said for as long as a want may need it.

        Args:
            greeting: gives what else is to be said to a scheduler that came back, first of all.
        """
        self.lineage = Lineage()
        self._greeting = greeting

    def take_outgoing(self) -> list[Message]:
        """Everything to be sent now, in order."""
        outgoing = super().take_outgoing()
        lineage = self.lineage
        if lineage is not None and lineage.is_due(len(self.by_number)):
            lineage.sweep(self.by_number, [code for code, _ in self.functions.values()])
        return outgoing

    def scheduler_lost(self) -> list[str]:
        """There is no scheduler, for a while at least; the addresses of workers that held results.

        Cost: O(live wants).
        """
        self.epoch = None
        self.is_away = True
        self.unsaid.clear()
        self._close_batch()
        self._close_releases()
        # Who waits for the answers to calls is told that there will be none.
        self._outgoing = [said for said in self._outgoing if not hasattr(said, "request")]
        addresses: dict[str, None] = {}
        for record in self.by_number.values():
            if record.status == FINISHED and record.value is None:
                addresses.update(dict.fromkeys(record.holders))
                record.holders = []
                record.task = TaskId(-1)
                self.astray[record.number] = record
        return list(addresses)

    def _say_again(self) -> None:
        """Greet, say all that is wanted, then what else was to be said meanwhile."""
        assert self.lineage is not None
        self._close_batch()
        self._close_releases()
        self.is_away = False
        wanted: dict[ClientTaskId, object] = {}
        self.unsaid = {}
        for number, record in self.by_number.items():
            (self.unsaid if record.status == ERROR else wanted)[number] = record
        detached: dict[ClientTaskId, None] = {}
        for said in self._outgoing:
            if type(said) is DetachTasks:
                detached.update({n: None for n in said.tasks if n not in self.by_number})
        wanted.update({**self.lineage.cancelled, **detached})
        functions = {code: digest for digest, (code, _) in self.functions.items()}
        again = self.lineage.again(wanted, functions, placed=self._is_placed)
        self._know_only([said.code for said in again if isinstance(said, DefineClientCode)])
        again += {id(said): said for said in self.lineage.cancelled.values()}.values()
        if detached:
            again.append(ReleaseTasks(list(detached)))
        left = [said for said in self._outgoing if type(said) not in _SAID_AGAIN]
        self._outgoing = [*self._greeting(), *again, *left]

    def _say_unsaid(self, numbers: Iterable[ClientTaskId]) -> None:
        """Say those of these that failed before this scheduler came, as they are needed now."""
        assert self.lineage is not None
        wanted: dict[ClientTaskId, object] = {}
        for number in numbers:
            record = self.unsaid.pop(number, None)
            if record is not None:
                wanted[number] = record
        if not wanted:
            return
        self._close_batch()
        self._close_releases()
        unsaid, known = self.unsaid, self.by_number
        self._outgoing += self.lineage.again(
            wanted,
            [code for code, _ in self.functions.values()],
            placed=self._is_placed,
            is_known=lambda n: n in known and n not in unsaid and n not in wanted,
        )

    def _is_placed(self, number: ClientTaskId) -> bool:
        record = self.by_number.get(number)
        return record is None or record.status == FINISHED

    def _know_only(self, codes: Iterable[int]) -> None:
        """Of functions that were ready for further use, the scheduler has these alone."""
        ready = dict.fromkeys(codes)
        self.functions = {d: known for d, known in self.functions.items() if known[0] in ready}
        self._function_bytes = sum([nbytes for _, nbytes in self.functions.values()])

    def _find(self, record: Record) -> None:
        """It is known again where a result is, or that it is nowhere: whoever waits is told."""
        if self.astray.pop(record.number, None) is not None:
            self._resolved.append(record)

    def _strike(self, record: Record) -> None:
        """Nobody wants it any more."""
        self.astray.pop(record.number, None)
        self.unsaid.pop(record.number, None)
