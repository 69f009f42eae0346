"""The one path of a worker: what happened goes to its machine, and the effects are performed.

First the machine is told, then its effects are performed in order, and the scheduler hears of it
in one frame.  A machine that raises is an error in shoal: the story is logged and the worker
closes; nothing limps on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from shoal import config
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Epoch, TaskId
from shoal.observe.reasons import INTERNAL_ERROR
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import RunTask, WorkerHeartbeat, WorkerWelcome
from shoal.storage.results import Results
from shoal.worker.machine.effects import Fetch, Send, WithdrawRuns
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import Run, RunEnded
from shoal.worker.shell.context import Host
from shoal.worker.shell.deeds import Deeds
from shoal.worker.shell.lingering import Lingering
from shoal.worker.shell.link import SchedulerLink
from shoal.worker.shell.notices import NOTICES
from shoal.worker.shell.operations import OPERATIONS, Operations
from shoal.worker.shell.replicas import Held, put_all
from shoal.worker.shell.serving import ReplicaServer
from shoal.worker.shell.spilling import Spilling
from shoal.worker.shell.threads import RunThreads
from shoal.worker.shell.transfers import Transfers
from shoal.worker.shell.waits import WaitingRuns

if TYPE_CHECKING:
    from shoal.storage.spill import Spill
    from shoal.worker.shell.memory import MemoryWatch
    from shoal.worker.shell.watching import RunWatcher

logger = logging.getLogger("shoal.worker")

P = ParamSpec("P")
T = TypeVar("T")

_VALUE_THREADS: Final = 2
"""Threads that pickle and load large values, so that the loop needn't."""

_STORY_TAIL: Final = 20

_NO_EVENTS: Final = frozenset((*OPERATIONS, *NOTICES, Answer, Refusal))
"""Kinds of messages that are no business of the machine's."""


def _event(
    method: Callable[Concatenate[Feed, P], None],
) -> Callable[Concatenate[Feed, P], None]:
    """An event: performs what `method` makes the machine ask for; an error ends the worker."""

    @wraps(method)
    def fed(self: Feed, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._is_over:
            return  # whoever is told of the worker's end makes up for what is dropped here
        try:
            method(self, *args, **kwargs)
            self.perform()
            if self._watcher is not None:
                self._watcher.tell()
        except Exception as error:
            self.fail(error)

    return fed


class Feed:
    """A worker's machine, with all that performs its effects and brings it events."""

    def __init__(
        self,
        host: Host,
        machine: WorkerMachine,
        results: Results,
        keyring: Keyring,
        settings: config.Worker,
        *,
        connect_seconds: float,
        on_close: Callable[[str], None],
        on_lost: Callable[[Exception | None], None],
        families: Sequence[str] | None = None,
        make_spill: Callable[[], Spill],
        target_bytes: int = 0,
    ) -> None:
        """`on_close`: the worker shall close, and why; `on_lost`: the scheduler is gone.

        `families`: of serialisation by which results are sent; None: the usual ones.
        `make_spill`, `target_bytes`: see `Spilling`.
        """
        self.machine = machine
        self.results = results
        self.heartbeat_seconds = settings.heartbeat_seconds
        self.at_welcome: Callable[[], object] | None = None  # see `Worker`
        self.at_first_end: Callable[[], object] | None = None
        self._families = families
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._validate = settings.validate
        self._on_close = on_close
        self._after_loss = on_lost
        self.nended = 0  # runs
        self.on_waiting_changed: Callable[[], object] = lambda: None  # other runs wait than before
        self._is_over = False
        self._has_said_leaving = False
        self._came_bytes = 0  # of results, since memory was looked at for that
        self._watcher: RunWatcher | None = None  # while a plugin wants to know
        self._waiting, self._lingering = WaitingRuns(), Lingering()
        self.memory: MemoryWatch | None = None  # while there is a limit to watch over
        self._background: set[asyncio.Task[None]] = set()  # only to keep them alive
        self._executor = ThreadPoolExecutor(_VALUE_THREADS, f"shoal-worker-{host.name}-values")
        self.threads = RunThreads(host, host.nthreads, self.on_ended, settings.give_up_seconds)
        self.operations = Operations(host)
        self.spilling = Spilling(
            str(host.name), machine, results, self, make_spill, target_bytes=target_bytes
        )
        self.server = self._make_server(settings.transfers_in_max)
        self.exchange = ReplicaExchange(keyring, connect_seconds=connect_seconds)
        self._transfers = Transfers(
            host.address, self.exchange, self._executor, lambda gauged: self.link.send([gauged])
        )
        self.link = SchedulerLink(host.scheduler_address, keyring, self.on_messages, self.on_lost)
        self._deeds = Deeds(
            host.address,
            machine,
            results,
            events=self,
            link=self.link,
            threads=self.threads,
            transfers=self._transfers,
            spilling=self.spilling,
        )
        self._hearers = self._hearers_by_kind()

    def _make_server(self, transfers_max: int) -> ReplicaServer:
        return ReplicaServer(
            self._host.address,
            self._executor,
            is_in=self.is_in,
            look_up=self._look_up,
            bring=self.spilling.bring,
            put=self.on_put,
            begin=self.operations.begin,
            on_actor_call=self._host.on_actor_call,
            send_shards=self._host.send_shards,
            transfers_max=transfers_max,
            families=self._families,
        )

    def _hearers_by_kind(self) -> dict[type, Callable[[Any], object]]:
        """Kind of message → who hears it beside the machine, or in its stead."""
        return {
            **dict.fromkeys(OPERATIONS, self._begin),
            **{kind: partial(hear, self._host) for kind, hear in NOTICES.items()},
            Answer: self.link.answered,
            Refusal: self.link.answered,
            WorkerWelcome: self.on_welcomed,
        }

    async def close(self, timeout_seconds: float, reason: str) -> None:
        """Leave the cluster, then end everything, in the order in which others notice it."""
        self._is_over = True
        try:
            self.say_leaving(reason)
        finally:
            await self.link.close()
            self.operations.close()
            for task in list(self._background):
                task.cancel()
            await self._transfers.close()
            await self.server.close()
            await self.threads.close(timeout_seconds)
            self._executor.shutdown(wait=False, cancel_futures=True)
            remove_files = self.spilling.close()
            self.results.clear()
            if remove_files is not None:
                await asyncio.to_thread(remove_files)

    def say_leaving(self, reason: str) -> None:
        """Tell the scheduler that the worker is about to close, once: it sends nothing more.

        What has not begun is given back, and does not begin here while plugins are torn down.
        """
        if self._has_said_leaving:
            return
        self._has_said_leaving = True
        self.machine.leave(reason, self._loop.time())
        while effects := self.machine.take_effects():
            for effect in effects:
                if isinstance(effect, (Send, WithdrawRuns)):  # all else is in vain
                    self._deeds.perform_one(effect)

    def fail(self, error: Exception) -> None:
        """The machine, or what performs its effects, has an error: end here, and tell."""
        if self._is_over:
            return
        self._is_over = True
        tail = "\n".join(str(record) for record in list(self.machine.state.story)[-_STORY_TAIL:])
        logger.error(
            "Worker %s closes because of an error in shoal. What it did last:\n%s",
            self._host.address,
            tail,
            exc_info=error,
        )
        self._on_close(f"{INTERNAL_ERROR}: {error!r}")

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do `work` beside everything else, until the worker closes."""
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def reload_codes(self) -> None:
        """Modules were imported anew."""
        self._deeds.reload_codes()

    def watch(self, watcher: RunWatcher | None) -> None:
        """Tell of what every step has recorded; None: nobody wants to know any more."""
        self._watcher = watcher
        self.threads.on_begun = None if watcher is None else watcher.begun

    def now(self) -> float:
        """The loop's time, which is the machine's."""
        return self._loop.time()

    def close_soon(self, reason: str) -> None:
        """The worker shall close."""
        self._on_close(reason)

    def registration(self) -> Any:
        """How the worker introduces itself at this moment."""
        return self.machine.register_message(self._loop.time())

    def heartbeat(self, cpu_percent: float, memory: Mapping[str, int]) -> None:
        """Say that the worker lives, and how it fares.  `memory`: see `MemoryWatch.tell`."""
        runs, seconds = self._lingering.look(self.threads.executing(), self._loop.time())
        if self.link.is_up:
            heartbeat = WorkerHeartbeat(
                nexecuting=self.threads.nexecuting,
                nwaiting=len(self._waiting),
                cpu_percent=cpu_percent,
                runs=runs,
                run_seconds=seconds,
                **self.link.hearing(),
                **memory,
            )
            self.link.send([heartbeat])
            self._transfers.tell_rates()

    def count_waiting(self, run: Run, change: int) -> None:
        """A run waits for so many results of other tasks more, or less.

        While it waits for any, its thread has a substitute, and the scheduler is told.
        """
        nwaiting = len(self._waiting)
        self._waiting.count(run, change, is_executing=self.threads.is_executing(run))
        self._told_waiting(nwaiting)

    def do_aside(self, function: Callable[[], T]) -> Future[T]:
        """Call `function` in one of the threads for large values."""
        return self._executor.submit(function)

    # --- what happens ------------------------------------------------------------------------

    @_event
    def on_messages(self, messages: list[Any]) -> None:
        """A frame from the scheduler."""
        if self.memory is not None:
            self.memory.stir()
        hearers = self._hearers
        nheard = 0
        for message in messages:
            kind = type(message)
            if kind is not RunTask and kind in hearers:  # most are runs
                nheard += 1
                hearers[kind](message)
        if nheard:
            messages = [message for message in messages if type(message) not in _NO_EVENTS]
        self.machine.receive(messages, self._loop.time())

    def _begin(self, call: Any) -> None:
        """A call of the scheduler's, which is answered on the connection that it came on."""
        self.operations.begin(self.link.sender(), call)

    def on_welcomed(self, message: WorkerWelcome) -> None:
        """The scheduler has let the worker in; of which its machine is told as well."""
        self.heartbeat_seconds = message.heartbeat_seconds
        # Inline is what travels by the usual families; who asks for others gets nothing so.
        usual = self._families is None
        self.threads.set_inline_bytes_max(message.inline_bytes_max if usual else -1)
        self._host.is_leaving = False  # whoever comes, or comes back, is given work
        self.link.welcomed()
        if self.at_welcome is not None:
            self.at_welcome()
            self.at_welcome = None

    @_event
    def on_ended(self, ended: list[tuple[RunEnded, object]]) -> None:
        """Runs came back from the threads."""
        if self.at_first_end is not None:
            self.at_first_end()
            self.at_first_end = None
        if self._waiting.are_any and self._waiting.end([end.run for end, _ in ended]):
            self.machine.waiting(len(self._waiting))
            self.threads.substitute(len(self._waiting))
        self.nended += len(ended)
        self._host.say_topics()  # what tasks have told comes before their results
        watch = self.memory
        is_gauged = watch is not None and watch.gauge(ended)
        self.machine.runs_ended([end for end, _ in ended], self._loop.time())
        put, nbytes_before = self.results.put, self.results.nbytes
        for end, value in ended:
            if end.kept:
                message = end.run.message
                put(message.task, message.key, value, end.nbytes)
        if is_gauged and watch is not None:
            watch.settle()
        self.on_results(nbytes_before)

    @_event
    def on_pause(self, why: str, *, by_hand: bool = False) -> None:
        """Memory is short, or somebody wants it so: begin nothing."""
        self.machine.pause(why, self._loop.time(), by_hand=by_hand)

    @_event
    def on_resume(self, why: str, *, by_hand: bool = False) -> None:
        """It is not any more."""
        self.machine.resume(why, self._loop.time(), by_hand=by_hand)

    @property
    def is_paused(self) -> bool:
        """Whether it begins nothing."""
        return self.machine.state.pause is not None

    @_event
    def on_gauged(self, gauged: Sequence[tuple[Run, int]]) -> None:
        """These runs go on, and have taken so much by now."""
        self.machine.runs_gauged(gauged, self._loop.time())

    @_event
    def on_seceded(self, run: Run, seconds: float) -> None:
        """A run gave its slot to others, after so long with it."""
        if not self.threads.is_executing(run):
            return
        nwaiting = len(self._waiting)
        self._waiting.secede(run)
        self.machine.seceded(run, seconds, self._loop.time())
        self._told_waiting(nwaiting)

    @_event
    def on_rejoined(self, run: Run) -> None:
        """It has a slot again."""
        nwaiting = len(self._waiting)
        self._waiting.rejoin(run)
        self.machine.rejoined(run, self._loop.time())
        self._told_waiting(nwaiting)

    def _told_waiting(self, nbefore: int) -> None:
        """As many threads as runs that wait; and whoever sends runs knows of it, as of the rest."""
        nwaiting = len(self._waiting)
        if nwaiting != nbefore:
            self.machine.waiting(nwaiting)
            self.threads.substitute(nwaiting)
            self.on_waiting_changed()

    @_event
    def on_put(self, values: Sequence[Held]) -> None:
        """Somebody scattered values to here."""
        if self.memory is not None:
            self.memory.stir()
        self.keep(values)

    @_event
    def on_offer(self, resources: Mapping[str, float]) -> None:
        """The worker has other amounts of resources."""
        self.machine.offer(resources, self._loop.time())

    @_event
    def on_lost(self, reason: Exception | None) -> None:
        """The connection to the scheduler ended, and not by us."""
        self.machine.connection_lost(self._loop.time())
        self._after_loss(reason)

    @_event
    def on_fetched(
        self, fetch: Fetch, held: Sequence[Held], failed: Sequence[tuple[TaskId, Any]]
    ) -> None:
        """A peer has answered."""
        arrived = [(item.task, item.nbytes) for item in held]
        kept = self.machine.replicas_arrived(fetch, arrived, failed, self._loop.time())
        kept_tasks, nbytes_before = frozenset(kept), self.results.nbytes
        ours = [item for item in held if item.task in kept_tasks]
        put_all(self.results, ours, self._host.adopt_shards)
        self.on_results(nbytes_before)

    @_event
    def on_unreachable(self, fetch: Fetch, error: Exception) -> None:
        """There was no way to a peer, or it talked nonsense, which is all the same to us."""
        logger.debug("Worker %s can't fetch from %s: %s", self._host.address, fetch.peer, error)
        self.machine.peer_unreachable(fetch, self._loop.time())

    def keep(self, values: Sequence[Held]) -> None:
        """Have these values from now on, and tell the machine."""
        nbytes_before = self.results.nbytes
        put_all(self.results, values, self._host.adopt_shards)
        self.machine.replicas_put([(v.task, v.key, v.nbytes) for v in values], self._loop.time())
        self.on_results(nbytes_before)

    # --- memory and disk ---------------------------------------------------------------------

    def on_results(self, nbytes_before: int) -> None:
        """Results are in memory that were not, when they had so many bytes: is that too much?"""
        nbytes = self.results.nbytes
        self._came_bytes += nbytes - nbytes_before
        if nbytes > self.spilling.target_bytes:
            self.spilling.to_target()
        if self.memory is not None and self._came_bytes > self.memory.much_bytes:
            self._came_bytes = 0
            self.memory.room.look()
            self.memory.look()

    @_event
    def on_disk(self, act: Callable[[], object]) -> None:
        """Something has happened on the way to disk or back; `act` tells the machine."""
        act()

    @_event
    def on_looked(self, process_bytes: int | None = None) -> None:
        """The process has so much memory now; None: as much as there is."""
        if self.memory is not None:
            self.memory.room.look(process_bytes)

    def spill(self, nbytes: int, why: str) -> int:
        """Have results of about so many bytes leave memory, beside what is leaving; see `Spilling`.

        Returns how many bytes that will be.
        """
        begun = 0

        def act() -> None:
            nonlocal begun
            begun = self.spilling.spill(nbytes, why)

        self.on_disk(act)
        return begun

    def is_memory_short(self) -> bool:
        """Whether the worker is about to pause, if it goes on like this."""
        return self.memory is not None and self.memory.is_short()

    @property
    def leaving_nbytes(self) -> int:
        """Of results: of those that are written, and of those that a thread is to free."""
        return self.machine.state.writing_nbytes + self.spilling.freeing_nbytes

    @property
    def disk_trouble(self) -> str:
        """Why nothing is written to disk, with numbers; "": it is, or would be."""
        return self.spilling.disk_trouble

    # --- looks -------------------------------------------------------------------------------

    def is_in(self, epoch: Epoch) -> bool:
        """Whether numbers of that epoch mean something here."""
        state = self.machine.state
        return state.connected and epoch == state.epoch

    def _look_up(self, task: TaskId) -> Held | None:
        """A value that peers and clients may have."""
        entry = self.results.entry(task)
        if entry is None or not self.machine.holds(task):
            return None
        self.machine.value_served(task)
        return Held(task, *entry)

    # --- what to do --------------------------------------------------------------------------

    def perform(self) -> None:
        """Perform all effects, those that performing brings about included."""
        if (memory := self.memory) is None:
            self._deeds.perform()
        else:
            memory.room.perform(self._deeds.perform)
        if self._validate:
            broken = list(self.machine.broken_invariants())
            if broken:
                raise AssertionError("; ".join(broken))
