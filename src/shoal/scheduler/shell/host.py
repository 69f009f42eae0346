"""What peers and operations ask of the service that they belong to.

They are told apart from it by these protocols, so that each can be read, and tested, by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from shoal.comms import Connection, PendingCalls
from shoal.comms.exchange import ReplicaExchange
from shoal.comms.resumable import AcceptedStream
from shoal.observe.logs import RecentLogs
from shoal.protocol.messages import Message, RegisterClient, RegisterWorker, VouchForWorker
from shoal.protocol.plugins import Plugin
from shoal.protocol.questions import Identity
from shoal.protocol.running import Outcome
from shoal.protocol.streams import BeginStream, ResumeStream
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Worker


class Asker(Protocol):
    """Whoever made a call, and will be answered."""

    connection: Connection
    calls: PendingCalls

    def send(self, messages: Sequence[Message]) -> None:
        """Send one frame, unless the connection has ended."""

    def send_with_buffers(self, message: Message, buffers: Sequence[Any]) -> None:
        """Send one message with out-of-band buffers, unless the connection has ended."""


class Host(Protocol):
    """The service, as operations see it."""

    machine: SchedulerMachine
    exchange: ReplicaExchange
    before_shutdown: list[Callable[[], object]]
    recent_logs: RecentLogs
    address: str
    scaled_by: Callable[[Mapping[str, Any]], Awaitable[str]] | None

    @property
    def blocked_handlers(self) -> Collection[str]:
        """Operations that are refused, by their historical names."""

    def describe(self, nworkers: int = -1) -> Identity:
        """What the scheduler and its workers are; so many of them, -1: all."""

    def peer_of(self, worker: Worker) -> Asker:
        """The connection of a registered worker.  Raises ConnectionError: it has just gone."""

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Have a worker close; what it ran is run elsewhere, and nothing is to blame."""

    async def register_plugin_of(self, kind: str, plugin: Plugin) -> dict[str, Outcome]:
        """Have a plugin live where `kind` says; what comes of it at each worker."""

    async def unregister_plugin_of(self, kind: str, name: str) -> dict[str, Outcome]:
        """Remove a plugin again."""

    @property
    def guests(self) -> Any:
        """Connections of programs that call operations by name."""

    async def answer_by_name(self, name: str, arguments: bytes) -> Outcome:
        """Call what is there under a name; whatever is raised is the outcome."""

    @property
    def rounds(self) -> Any:
        """What drops copies of results that nobody needs."""

    def close_soon(self, reason: str) -> None:
        """Close in a task of its own."""


Operation = Callable[[Host, Any], Awaitable[Message | tuple[Message, list[Any]]]]
"""Answers one kind of call: by a message, or by one with buffers out of band."""

Operations = Mapping[type[Message], Operation]


class Beginning(Protocol):
    """What answers calls that the machine can't."""

    def begin(self, peer: Any, call: Any) -> None:
        """Start to answer `call`, whose answer or refusal goes to `peer`."""

    def welcome(self, connection: Any) -> None:
        """A program calls operations by name, on a connection of its own."""


class Hearing(Protocol):
    """The service, as peers see it."""

    @property
    def operations(self) -> Beginning:
        """Calls that the machine can't answer."""

    @property
    def receive_from_worker(self) -> Callable[[Worker, Sequence[Message]], None]:
        """A worker has spoken."""

    @property
    def receive_from_client(self) -> Callable[[Client, Sequence[Message]], None]:
        """A client has spoken."""

    def worker_must_wait(self, peer: Any, message: RegisterWorker) -> bool:
        """Whether it is registered later; `peer.admit` is called then."""

    def worker_joined(self, peer: Any, message: RegisterWorker) -> Worker:
        """A worker has said who it is.  Raises NameTaken."""

    def worker_vouched(self, message: VouchForWorker) -> None:
        """Somebody says that a worker lives which can't say so itself."""

    def client_joined(self, peer: Any, message: RegisterClient) -> Client:
        """A client has said who it is."""

    def carry_stream(self, peer: Any, word: BeginStream | ResumeStream) -> None:
        """A connection begins by saying that it carries a stream."""

    def peer_broken(self, peer: Any, stream: AcceptedStream) -> None:
        """The connection beneath a peer's stream has broken, and may be replaced."""

    def peer_resumed(self, peer: Any) -> None:
        """It has been replaced."""

    def peer_lost(self, peer: Any, reason: Exception | None) -> None:
        """A connection has ended."""
