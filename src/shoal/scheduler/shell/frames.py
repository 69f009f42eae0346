"""What clients say, in order, and none of it while the machine has thousands of tasks to forget.

A new task must not find an old one of its key, so before it looks one up the machine forgets all
that is of no use any more.  After a large graph that would be one long step, for which everybody
else had to wait.  Here it is the clients who wait: the machine is woken to forget some thousand
tasks at a time, workers are heard in between, and what clients said comes after that.  Whoever
submits or lets go of many tasks at once, or goes and leaves them, is heard a part at a time for the
same reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from shoal.protocol.detached import CancelKeys, DetachTasks
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import CancelTasks, Message, ReleaseTasks, SubmitTasks
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client

T = TypeVar("T")

LETTING_GO: Final = (ReleaseTasks, CancelTasks, CancelKeys)

_COLUMNS: Final[dict[type[Message], str]] = {
    ReleaseTasks: "tasks",
    CancelTasks: "tasks",
    CancelKeys: "keys",
    DetachTasks: "tasks",
}
"""Messages that may be cut, and the part of them that names tasks."""

TASKS_MAX: Final = 2_000
"""Tasks made or let go of in one step, some milliseconds of work; one message more may be cut no
further, and makes at most some thousand."""


class ClientFrames:
    """Frames of all clients on their way to the machine."""

    def __init__(
        self,
        machine: SchedulerMachine,
        receive: Callable[[Client, Sequence[Message]], None],
        lose: Callable[[Client], None],
        refuse: Callable[[Client, ProtocolError], None],
    ) -> None:
        """Where to.

        Args:
            machine: to be read only.
            receive: steps the machine with what a client says.
            lose: steps the machine without the client.
            refuse: ends the connection of a client at fault.
        """
        self._machine = machine
        self._receive = receive
        self._lose = lose
        self._refuse = refuse
        self._waiting: deque[tuple[Client, Sequence[Message] | None]] = deque()  # None: it has gone

    @property
    def is_one_due(self) -> bool:
        """Whether there is something to go on with."""
        return bool(self._waiting) and not self._machine.is_forgetting

    def take(self, client: Client, messages: Sequence[Message]) -> None:
        """Hand over what `client` says: at once, if nothing is in the way.

        Raises:
            ProtocolError: it contradicts itself, and nothing was in the way.
        """
        if self._waiting or self._machine.is_forgetting:
            self._waiting.append((client, messages))
        else:
            self._hand_over(client, messages)

    def leave(self, client: Client) -> None:
        """`client` has gone: what it said and was not heard is dropped, and so is what it wants."""
        if any(speaker is client for speaker, _ in self._waiting):
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not client)
        if len(client.tasks) <= TASKS_MAX:
            self._lose(client)
            return
        for some in _cut(list(client.tasks)):
            self._waiting.append((client, [ReleaseTasks(some)]))
        self._waiting.append((client, None))
        self.go_on()

    def go_on(self) -> None:
        """Hand over the next of what waits, if it is due."""
        if not self.is_one_due:
            return
        client, messages = self._waiting.popleft()
        if messages is None:
            self._lose(client)
            return
        try:
            self._hand_over(client, messages)
        except ProtocolError as error:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not client)
            self._refuse(client, error)

    def _hand_over(self, client: Client, messages: Sequence[Message]) -> None:
        """The first part; what follows it too, unless there is much, or much to forget before."""
        first, *others = _parts(messages)
        if len(others) > 1:
            self._waiting.extendleft((client, part) for part in reversed(others))
            others = []
        self._receive(client, first)
        for other in others:
            if self._machine.is_forgetting:
                self._waiting.appendleft((client, other))
            else:
                self._receive(client, other)


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """What is heard in one step each: so much at once, and what follows the last release apart."""
    parts: list[Sequence[Message]] = []
    part: list[Message] = []
    ntasks = 0
    nreleases = sum(isinstance(said, LETTING_GO) for said in messages)
    for said in messages:
        for piece in _pieces(said):
            part.append(piece)
            ntasks += _ntasks(piece)
            if ntasks >= TASKS_MAX:
                parts.append(part)
                part, ntasks = [], 0
        if isinstance(said, LETTING_GO):
            nreleases -= 1
            if nreleases == 0 and part:
                parts.append(part)
                part, ntasks = [], 0
    if part:
        parts.append(part)
    return parts


def _ntasks(said: Message) -> int:
    """How many tasks it takes to be looked at."""
    if isinstance(said, SubmitTasks):
        return len(said.keys)
    column = _COLUMNS.get(type(said))
    return 0 if column is None else len(getattr(said, column))


def _pieces(said: Message) -> Iterable[Message]:
    """The same in several messages, if it names many tasks."""
    column = _COLUMNS.get(type(said))
    if column is None or len(getattr(said, column)) <= TASKS_MAX:
        return (said,)
    return (replace(said, **{column: part}) for part in _cut(getattr(said, column)))


def _cut(column: list[T]) -> list[list[T]]:
    starts = range(0, len(column), TASKS_MAX)
    return [column[start : start + TASKS_MAX] for start in starts]
