"""One path for everything that happens: step the machine, send what it says, arm the timer.

A step that raises is a bug: the service logs its story and closes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from shoal.comms import ProtocolError
from shoal.errors import NameTaken
from shoal.protocol.messages import Message, RegisterClient, Shutdown
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Worker
from shoal.scheduler.shell.collecting import Collecting
from shoal.scheduler.shell.frames import ClientFrames
from shoal.scheduler.shell.host import Asker
from shoal.scheduler.shell.idling import IdleWatch
from shoal.scheduler.shell.watching import Watcher

logger = logging.getLogger("shoal.scheduler")


INSIDE: Final = "Client-inside-scheduler"
"""The name of clients of this very process; what they are told is no topic of anybody else."""


class Writing(Protocol):
    """What writes the journal."""

    def take(self) -> None:
        """A step is over, and may have left something to be written."""


class Stepping:
    """The machine, what it says to whom, and when it is to be woken."""

    def __init__(
        self,
        machine: SchedulerMachine,
        peers: Mapping[Worker | Client, Asker],
        *,
        validate: bool,
        give_up: Callable[[list[Worker]], None],
        part: Callable[[dict[Worker, str]], None],
        close_soon: Callable[[str], None],
    ) -> None:
        """Nothing is stepped before `open`.

        Args:
            machine: nobody else steps it.
            peers: the connections of all that are registered; to be read only.
            validate: check every invariant after every step.
            give_up: ends the connections of silent workers, which the machine has removed.
            part: ends the connections of workers that the machine has sent away, and why.
            close_soon: closes the service, for a reason.
        """
        self.is_open = False
        self.frames = ClientFrames(
            machine, self._receive_from_client, self._lose_client, self._refuse
        )
        self.watcher: Watcher | None = None  # while a plugin wants to know of every step
        self.idle_watch: IdleWatch | None = None  # if it shall close when it has nothing to do
        self.journal: Writing | None = None  # if one is kept
        self._collecting = Collecting()
        self._machine = machine
        self._peers = peers
        self._validate = validate
        self._give_up = give_up
        self._part = part
        self._close_soon = close_soon
        self._inside: dict[Worker | Client, Callable[[Sequence[Message]], None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def open(self) -> None:
        """Step from now on, on this loop."""
        self._loop = asyncio.get_running_loop()
        self.is_open = True

    def close(self) -> None:
        """Nothing is said any more."""
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        if self.idle_watch is not None:
            self.idle_watch.stop()
        for hear in self._inside.values():
            hear([])

    def now(self) -> float:
        """The machine's time (s, monotonic)."""
        return self._loop.time()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function on our loop, from any thread; never, if nothing is stepped any more."""
        if self.is_open:
            self._loop.call_soon_threadsafe(function)

    def receive_from_worker(self, worker: Worker, messages: Sequence[Message]) -> None:
        """A worker has spoken."""
        if self.watcher is not None:
            self.watcher.hear_worker(worker, messages)
        try:
            self.step(self._machine.receive_from_worker, worker, messages, self._loop.time())
        except ProtocolError:
            if self.watcher is not None:
                self.watcher.unhear(worker)
            raise

    def join_inside(self, hear: Callable[[Sequence[Message]], None]) -> Client:
        """A client of this very process comes, for a while.

        Args:
            hear: called with what is said to it; with nothing once nothing will be said any more.

        Raises:
            ConnectionError: this scheduler is closing.
        """
        joined: list[Client] = []
        register = RegisterClient(INSIDE)
        self.step(lambda: joined.append(self._machine.client_joined(register, self.now())))
        if not joined:
            raise ConnectionError("this scheduler is closing")
        self._inside[joined[0]] = hear
        return joined[0]

    def leave_inside(self, client: Client) -> None:
        """It goes again."""
        del self._inside[client]
        self._lose_client(client)

    def receive_from_inside(self, client: Client, message: Message) -> None:
        """A client of this process has spoken."""
        self._receive_from_client(client, [message])

    def _receive_from_client(self, client: Client, messages: Sequence[Message]) -> None:
        if self.watcher is not None:
            messages = self.watcher.hear_client(client, messages)
        try:
            self.step(self._machine.receive_from_client, client, messages, self._loop.time())
        except ProtocolError:
            if self.watcher is not None:
                self.watcher.unhear(client)
            raise

    def _lose_client(self, client: Client) -> None:
        self.step(self._machine.client_lost, client, self._loop.time())

    def _refuse(self, client: Client, error: ProtocolError) -> None:
        """A client contradicted itself in what had to wait; its connection ends."""
        peer = self._peers.get(client)
        if peer is not None:
            logger.warning("%s is disconnected: %s", client, error)
            peer.send([Shutdown(str(error))])
            peer.connection.close()

    def validate(self) -> None:
        """Check every invariant of the state.  Cost: O(tasks + edges + replicas).

        Raises:
            AssertionError: with a sentence for each that is broken.
        """
        broken = list(check(self._machine.state))
        assert not broken, "\n".join(broken)

    def step(self, event: Any, *args: Any) -> None:
        """Step the machine and do what it says.  Nothing is said any more once we close.

        Raises:
            ProtocolError: a peer contradicts itself.
            NameTaken: a worker has the name of another.
        """
        if not self.is_open:
            return
        try:
            event(*args)
            if self._validate:
                self.validate()
        except (ProtocolError, NameTaken):
            raise  # the peer's fault: its connection ends, and nobody else's
        except Exception:
            logger.critical(
                "bug in the scheduler's machine; it closes. The last transitions:\n%s",
                "\n".join(str(record) for record in list(self._machine.story)[-50:]),
                exc_info=True,
            )
            self.is_open = False  # nothing that it decides now can be relied upon
            self._close_soon("a bug in the scheduler, see its log")
            return
        self._after_step()
        for warning in self._machine.take_warnings():
            logger.warning("%s", warning)
        sent_away = self._machine.take_sent_away()
        if sent_away:
            self._part(sent_away)

    def _after_step(self) -> None:
        """Send what is to be said, one frame for each peer, and arm the timer."""
        self.say(self._machine.take_outgoing())
        if self.journal is not None:
            self.journal.take()
        wake_at = self._machine.wake_at
        if wake_at is not None and (self._timer is None or wake_at < self._timer_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = wake_at
            self._timer = self._loop.call_at(wake_at, self._wake)
        if self.frames.is_one_due:
            self._loop.call_soon(self.frames.go_on)
        if self.watcher is not None:
            self.watcher.tell()
        if self.idle_watch is not None:
            self.idle_watch.look()
        self._collecting.note_step()

    def say(self, outgoing: Iterable[tuple[Worker | Client, Sequence[Message]]]) -> None:
        """Send what is to be said to those who are still there."""
        peers = self._peers
        for entity, messages in outgoing:
            peer = peers.get(entity)
            if peer is not None:
                peer.send(messages)
            elif entity in self._inside:
                self._inside[entity](messages)

    def _wake(self) -> None:
        self._timer = None
        silent: list[Worker] = []
        self.step(lambda: silent.extend(self._machine.wake(self._loop.time())))
        if silent:
            self._give_up(silent)
        for client in self._machine.take_silent_clients():
            peer = self._peers.get(client)
            if peer is not None:
                logger.warning(
                    "%s has been silent for %.0f s: what it wants is let go of until it comes back",
                    client.name,
                    self.now() - client.heard_at,
                )
                peer.connection.abort()
