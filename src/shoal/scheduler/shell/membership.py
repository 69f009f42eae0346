"""Who is connected: workers and clients come, go, are sent away or given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from shoal.comms import ProtocolError
from shoal.comms.exchange import ReplicaExchange
from shoal.observe.reasons import RESTARTED
from shoal.protocol.messages import RegisterClient, RegisterWorker, VouchForWorker
from shoal.protocol.streams import BeginStream, ResumeStream
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import NO_WORKER, QUEUED, WAITING, Client, Worker
from shoal.scheduler.shell.breaks import Breaks
from shoal.scheduler.shell.host import Beginning
from shoal.scheduler.shell.peers import Peer
from shoal.scheduler.shell.plugins import Plugins
from shoal.scheduler.shell.stepping import Stepping

logger = logging.getLogger("shoal.scheduler")

E = TypeVar("E", Worker, Client)


class Membership:
    """The connections of a service, and what the machine is told as they begin and end."""

    stranded_after_seconds = 2.0
    """Without a worker after the last one died, until a word about the tasks that wait: a nanny
    that starts another needs less."""

    def __init__(
        self,
        machine: SchedulerMachine,
        operations: Beginning,
        *,
        validate: bool,
        close_soon: Callable[[str], None],
        plugins: Plugins,
        breaks: Breaks,
    ) -> None:
        """Nobody is admitted before `open`; the rest is as for `Stepping`.

        Args:
            machine: stepped by our `stepping` only.
            operations: answer calls that the machine can't.
            validate: check every invariant after every step.
            close_soon: closes the service, for a reason.
            plugins: are told of who comes and goes.
            breaks: knows of those whose connection has broken.
        """
        self.operations = operations
        self._plugins = plugins
        self._breaks = breaks
        self.peer_broken, self.peer_resumed = breaks.broken, breaks.resumed
        self._machine = machine
        self._peers: dict[Worker | Client, Peer] = {}
        self._strangers: dict[Peer, None] = {}  # connected, but not registered yet
        self._stranding: asyncio.TimerHandle | None = None
        self.on_sent_away: Callable[[list[int]], None] | None = None
        """Told the process ids of workers that were sent away for others to come."""
        self.stepping = Stepping(
            machine,
            self._peers,
            validate=validate,
            give_up=self._give_up,
            part=self._part,
            close_soon=close_soon,
        )
        self.receive_from_worker = self.stepping.receive_from_worker
        self.receive_from_client = self.stepping.frames.take

    def open(self, exchange: ReplicaExchange) -> None:
        """Admit peers from now on; `exchange` has connections to workers of its own."""
        self._exchange = exchange
        self._breaks.open(exchange)
        self.stepping.open()

    def close(self) -> None:
        """Admit nobody any more, and step no more."""
        self.stepping.close()
        self._breaks.close()
        if self._stranding is not None:
            self._stranding.cancel()

    async def part_with_all(self, reason: str | None) -> None:
        """Tell every peer to go; returns when all connections have ended.

        Args:
            reason: None: tell them nothing, so that they look for another scheduler.
        """
        peers = [*self._peers.values(), *self._strangers]
        for peer in peers:
            if reason is None:
                peer.connection.abort()
            else:
                peer.send_away(reason)
        await asyncio.gather(*(peer.connection.wait_closed() for peer in peers))

    def accept(self, connection: Any) -> None:
        """Somebody who knows the token has connected."""
        if self.stepping.is_open:
            self._strangers[Peer(self, connection)] = None
        else:
            connection.abort()

    def worker_must_wait(self, peer: Peer, message: RegisterWorker) -> bool:
        """Whether a worker is registered later, as its plugins are to be set up first."""
        return self._plugins.worker_must_wait(peer, message)

    def worker_joined(self, peer: Peer, message: RegisterWorker) -> Worker:
        """A worker has said who it is.

        Raises:
            NameTaken: another has its name.
            ConnectionError: this scheduler is closing.
        """

        def join() -> None:
            before = self._machine.state.workers.get(message.address)
            worker = self._machine.worker_joined(message, self.stepping.now())
            if self._plugins.holds_newcomers:
                peer.hold()
            if before is not None:
                self._peers.pop(before).connection.close()
                replaced.append(before)
            self._welcome(peer, worker)
            joined.append(worker)

        joined: list[Worker] = []
        replaced: list[Worker] = []
        self.stepping.step(join)
        worker = _first(joined)
        for before in replaced:
            self._plugins.worker_gone(before, "it connected anew")
        self._plugins.worker_came(peer, worker)
        logger.info("Worker %s (%s) has joined", worker.name, worker.address)
        return worker

    def worker_vouched(self, message: VouchForWorker) -> None:
        """The nanny of a worker says that its process lives, though nothing is heard of it."""
        worker = self._machine.state.workers.get(message.address)
        if worker is not None and worker.pid == message.pid:
            self.stepping.step(self._machine.worker_vouched, worker, self.stepping.now())

    def client_joined(self, peer: Peer, message: RegisterClient) -> Client:
        """A client has said who it is.  Raises ConnectionError: this scheduler is closing."""

        def join() -> None:
            client = self._machine.client_joined(message, self.stepping.now())
            self._welcome(peer, client)
            joined.append(client)

        joined: list[Client] = []
        self.stepping.step(join)
        client = _first(joined)
        self._plugins.client_came(client)
        logger.info("%s has connected", client.name)
        return client

    def carry_stream(self, peer: Peer, word: BeginStream | ResumeStream) -> None:
        """A connection carries a stream: its own, or that of somebody who comes back."""
        if self._breaks.carry(peer, word):
            self._strangers.pop(peer, None)

    def peer_lost(self, peer: Peer, reason: Exception | None) -> None:
        """A connection has ended."""
        self._strangers.pop(peer, None)
        entity = peer.entity
        if entity is None or self._peers.get(entity) is not peer:
            return
        del self._peers[entity]
        if isinstance(entity, Worker):
            why = str(reason) if reason is not None else "its process ended or closed"
            self._exchange.forget(entity.address)
            self.stepping.step(self._machine.worker_lost, entity, self.stepping.now(), why)
            self._plugins.worker_gone(entity, why)
            how = "has left" if entity.is_leaving else "was lost"
            level = logging.WARNING if isinstance(reason, ProtocolError) else logging.INFO
            logger.log(level, "Worker %s (%s) %s: %s", entity.name, entity.address, how, why)
            if not entity.is_leaving:
                self._worker_died()
        else:
            if isinstance(reason, ProtocolError):
                logger.warning("%s is disconnected: %s", entity, reason)
            self.stepping.frames.leave(entity)
            self._plugins.client_gone(entity)

    def peer_of(self, worker: Worker) -> Peer:
        """The connection of a registered worker.

        Raises:
            ConnectionError: it has just gone.
        """
        try:
            return self._peers[worker]
        except KeyError:
            raise ConnectionError(f"the worker at {worker.address} has just gone") from None

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Have a worker close; what it ran is run elsewhere, and nothing is to blame."""
        peer = self._peers.pop(worker, None)
        if peer is not None:
            peer.send_away(reason)
            stepping = self.stepping
            stepping.step(self._machine.worker_lost, worker, stepping.now(), reason, True)
            self._plugins.worker_gone(worker, reason)
            logger.info("Worker %s (%s) is sent away: %s", worker.name, worker.address, reason)

    def _part(self, sent_away: dict[Worker, str]) -> None:
        """The machine has removed these and told them why; their connections end."""
        again = [worker.pid for worker, why in sent_away.items() if why.startswith(RESTARTED)]
        if again and self.on_sent_away is not None:
            self.on_sent_away(again)
        for worker, reason in sent_away.items():
            peer = self._peers.pop(worker, None)
            if peer is not None:
                peer.release()
                peer.connection.close()
            self._exchange.forget(worker.address)
            self._plugins.worker_gone(worker, reason)
            logger.info("Worker %s (%s) is sent away: %s", worker.name, worker.address, reason)
            if not worker.is_leaving:
                self._worker_died()

    def _welcome(self, peer: Peer, entity: Worker | Client) -> None:
        self._strangers.pop(peer, None)
        self._peers[entity] = peer

    def _give_up(self, silent: list[Worker]) -> None:
        """The machine has removed these, as nothing was heard of them."""
        for worker in silent:
            logger.warning(
                "Worker %s (%s, process id %s) is given up, as it was silent for %.1f s; what it "
                "ran and held is computed elsewhere. It was stopped, or a task never lets go of "
                "its interpreter, or the network is broken",
                worker.name,
                worker.address,
                worker.pid,
                self.stepping.now() - worker.heard_at,
            )
            peer = self._peers.pop(worker, None)
            if peer is not None:
                peer.connection.close()
            self._plugins.worker_gone(worker, "nothing was heard of it")
        self._worker_died()

    def _worker_died(self) -> None:
        """If it was the last one, see a little later whether another has taken its place."""
        if not self._machine.state.workers and self._stranding is None:
            loop = asyncio.get_running_loop()
            self._stranding = loop.call_later(
                self.stranded_after_seconds, self._tell_of_stranded_tasks
            )

    def _tell_of_stranded_tasks(self) -> None:
        """Whoever looks at this log can start a worker."""
        self._stranding = None
        state = self._machine.state
        nwaiting = state.ntasks[NO_WORKER] + state.ntasks[QUEUED] + state.ntasks[WAITING]
        if self.stepping.is_open and nwaiting and not state.workers:
            tasks = "1 task waits" if nwaiting == 1 else f"{nwaiting} tasks wait"
            logger.warning("%s: no worker is left", tasks)


def _first(joined: list[E]) -> E:
    """Who joined in the step before."""
    if not joined:
        raise ConnectionError("this scheduler is closing")
    return joined[0]
