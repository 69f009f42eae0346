"""What clients say, in order, and none of it while the machine has thousands of tasks to forget.

A new task must not find an old one of its key, so before it looks one up the machine forgets all
that is of no use any more.  After a large graph that would be one long step, for which everybody
else had to wait.  Here it is the clients who wait: the machine is woken to forget some thousand
tasks at a time, workers are heard in between, and what clients said comes after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import CancelTasks, Message, ReleaseTasks
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client

LETTING_GO: Final = (ReleaseTasks, CancelTasks)


class ClientFrames:
    """Frames of all clients on their way to the machine."""

    def __init__(
        self,
        machine: SchedulerMachine,
        receive: Callable[[Client, Sequence[Message]], None],
        refuse: Callable[[Client, ProtocolError], None],
    ) -> None:
        """`receive`: steps the machine; `refuse`: ends the connection of a client at fault."""
        self._machine = machine
        self._receive = receive
        self._refuse = refuse
        self._waiting: deque[tuple[Client, Sequence[Message]]] = deque()

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

    def go_on(self) -> None:
        """Hand over the next of what waits, if it is due."""
        if not self.is_one_due:
            return
        client, messages = self._waiting.popleft()
        try:
            self._hand_over(client, messages)
        except ProtocolError as error:
            self._refuse(client, error)

    def _hand_over(self, client: Client, messages: Sequence[Message]) -> None:
        """Releases in a step of their own, so that what follows may wait for their end."""
        places = [place for place, said in enumerate(messages) if isinstance(said, LETTING_GO)]
        if places:
            start = places[-1] + 1
            self._receive(client, messages[:start])
            messages = messages[start:]
            if messages and self._machine.is_forgetting:
                self._waiting.appendleft((client, messages))
                return
        if messages:
            self._receive(client, messages)
