"""What a worker does for shuffles: finds shards, fetches them, serves its own, and counts.

Tasks call it from their threads, and wait there; what is said to others is said on the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from shoal import config
from shoal.comms import CommClosedError, ConnectError, Connection, connect
from shoal.comms.cancellation import is_our_cancellation
from shoal.ids import Epoch, TaskId
from shoal.protocol.answers import Refusal
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import FromWorkerToPeer
from shoal.protocol.exceptions import from_failure
from shoal.protocol.handshake import WORKER
from shoal.protocol.messages import Message
from shoal.protocol.shuffles import (
    FetchShards,
    LocateShards,
    ShardHolder,
    ShardsFetched,
    ShardsLocated,
)
from shoal.shuffle.budget import ShardBudget
from shoal.shuffle.counters import ShuffleCounters
from shoal.shuffle.disk import ShardFiles
from shoal.shuffle.errors import (
    P2PConsistencyError,
    RunTakenBack,
    ShardsUnavailable,
    ShuffleClosedError,
)
from shoal.shuffle.exchange import Buffer
from shoal.shuffle.inside import Fetched
from shoal.storage.disk import Disk
from shoal.units import MIB
from shoal.worker.model.entities import Run
from shoal.worker.shell.context import current_run
from shoal.worker.shell.held_shards import HeldShards
from shoal.worker.shell.shard_server import ShardServer

if TYPE_CHECKING:
    from shoal.worker.shell.feed import Feed

PATIENCE_SECONDS: Final = 10.0
"""See `Shuffles.patience_seconds`."""

SIGN_SECONDS: Final = 5.0
"""How long it may take to let us in, for that; a frozen one never does."""

ANSWER_SECONDS_MAX: Final = 600.0
"""A holder that is there, and does not answer for so long, is as good as gone."""

NLOCATED_MAX: Final = 64
"""Shuffles of which it is remembered where their shards are."""

UNLIMITED_SHARDS_BYTES: Final = 512 * MIB
"""Of shards in memory, on a worker that has no limit."""

T = TypeVar("T")


class _Found(NamedTuple):
    """What was kept for one output partition, by one transfer."""

    input_partition: int
    nrows: int
    content: Buffer


class Shuffles:
    """All that one worker does for shuffles."""

    def __init__(self, worker: Any) -> None:
        """From any thread, with the first task of a shuffle, or the first peer that asks."""
        settings = config.read(config.Shuffle)
        limit = worker.memory_limit
        most = max(int(limit * settings.memory_ratio), settings.memory_bytes_min)
        hard = max(most, int(limit * settings.memory_hard_ratio))
        if not limit:
            most = hard = max(most, UNLIMITED_SHARDS_BYTES)
        self.may_write = settings.disk
        self.budget = ShardBudget(most, hard)
        self.files = ShardFiles(worker._folder.storage, worker.disk_type or Disk)
        self.counters = ShuffleCounters()
        self._worker = worker
        self._loop: asyncio.AbstractEventLoop = worker.loop
        self._refused: dict[tuple[str, int], int] = {}
        self._located: dict[tuple[str, int, Epoch], Future[ShardsLocated]] = {}
        self._locating = threading.Lock()
        self.patience_seconds = PATIENCE_SECONDS
        """A holder that has not answered for so long is asked whether it is there at all."""
        self._waiting: dict[Run, Future[None]] = {}  # done as soon as the run is taken back
        self.held = HeldShards(
            worker, self.budget, self.files, self.counters, may_write=self.may_write
        )
        self._server = ShardServer(worker, self.held, self.counters, settings.serving_bytes_max)
        self._work: set[asyncio.Task[None]] = set()
        self._is_closed = False
        worker.feed.threads.on_taken_back = self._on_taken_back
        worker.feed.spilling.on_shards = self.held.move_to_disk

    @property
    def address(self) -> str:
        """Of the worker."""
        address: str = self._worker.address
        return address

    @property
    def _feed(self) -> Feed:
        feed: Feed = self._worker.feed
        return feed

    async def close(self) -> None:
        """Fetch and send nothing more, and remove all files."""
        self._is_closed = True
        for work in list(self._work):
            work.cancel()
        self._server.close()
        self.held.close()
        await asyncio.to_thread(self.files.close)

    # --- what transfers ask ------------------------------------------------------------------

    def refuse(self, id: str, input_partition: int) -> int:
        """There is no room for this input partition; how often that was so before."""
        ntimes = self._refused.get((id, input_partition), 0)
        self._refused[id, input_partition] = ntimes + 1
        return ntimes

    def accept(self) -> None:
        """There is room: refusals of before mean nothing any more."""
        if self._refused:
            self._refused.clear()

    def tell(self, message: Message) -> None:
        """Tell the scheduler, before it hears that the run has ended."""
        self._worker.tell_scheduler(message)

    # --- what unpacks ask --------------------------------------------------------------------

    def fetch(self, id: str, output: int, epoch: int) -> Fetched:
        """The shards of an output partition, from wherever they are; waits for them.

        Raises:
            ShuffleStale: they are not to be had any more as of this epoch.
            ShardsUnavailable: some holders could not give theirs.
            RunTakenBack: the run that calls is of no use any more.
            P2PConsistencyError: what has come is not what was asked for.
        """
        running = current_run.get()
        if running is None:
            return self._fetch(id, output, epoch, Future())
        taken_back: Future[None] = Future()
        self._waiting[running.run] = taken_back
        try:
            return self._fetch(id, output, epoch, taken_back)
        finally:
            del self._waiting[running.run]

    def _on_taken_back(self, runs: Sequence[Run]) -> None:
        """The scheduler wants these no more, at least not from here; those that wait stop."""
        for run in runs:
            taken_back = self._waiting.get(run)
            if taken_back is not None and not taken_back.done():
                taken_back.set_result(None)

    def _fetch(self, id: str, output: int, epoch: int, taken_back: Future[None]) -> Fetched:
        life = self._life
        located = self._locate(id, epoch, life, taken_back)
        coming: list[Future[list[_Found]]] = []
        here: list[ShardHolder] = []
        for holder in located.holders:
            if holder.address == self.address:
                here.append(holder)
            else:
                coming.append(self._begin(id, self._ask(id, output, holder, life)))
        found: list[_Found] = []
        missing: list[TaskId] = []
        unreachable: list[str] = []
        lacking: list[str] = []
        for holder in here:
            found += self._read_here(holder, output, missing)
        if missing:
            lacking.append(self.address)
        self.counters.add(fetched_from_here_bytes=_nbytes_of(found))
        for answer in coming:
            try:
                found += _first(answer, taken_back, id)
            except ShardsUnavailable as error:
                missing += error.missing
                unreachable += error.unreachable
                lacking += error.lacking
        if missing:
            self._forget(id, epoch, life)
            raise ShardsUnavailable(missing, unreachable=unreachable, lacking=lacking)
        return self._fetched(id, located, found)

    def _fetched(self, id: str, located: ShardsLocated, found: list[_Found]) -> Fetched:
        """Check that every input partition has said what it has, and bring them in order."""
        found.sort(key=lambda one: one.input_partition)
        partitions = [one.input_partition for one in found]
        if partitions != sorted(dict.fromkeys(partitions)) or len(found) != located.ninputs:
            raise P2PConsistencyError(
                id,
                f"{len(found)} input partitions were found of {located.ninputs}, or some twice",
            )
        self.counters.add(njoins=1, fetched_bytes=_nbytes_of(found))
        buffers = [one.content for one in found if memoryview(one.content).nbytes]
        return Fetched(buffers, sum([one.nrows for one in found]))

    @property
    def _life(self) -> Epoch:
        """Of the scheduler: another one counts tasks, and epochs of shuffles, from the start."""
        return self._feed.machine.state.epoch

    def _locate(self, id: str, epoch: int, life: Epoch, taken_back: Future[None]) -> ShardsLocated:
        """Where the shards are; asked once, however many threads want to know."""
        with self._locating:
            locating = self._located.get((id, epoch, life))
            if locating is None:
                locating = self._begin(id, self._ask_scheduler(id, epoch))
                self._located[id, epoch, life] = locating
                while len(self._located) > NLOCATED_MAX:
                    del self._located[next(iter(self._located))]
        try:
            found: ShardsLocated = _first(locating, taken_back, id)
            return found
        except RunTakenBack:
            raise  # others may wait for the answer
        except BaseException:
            self._forget(id, epoch, life)
            raise

    def _forget(self, id: str, epoch: int, life: Epoch) -> None:
        """It is to be asked anew."""
        with self._locating:
            self._located.pop((id, epoch, life), None)

    async def _ask_scheduler(self, id: str, epoch: int) -> ShardsLocated:
        link = self._feed.link
        located: ShardsLocated = await link.call(lambda request: LocateShards(request, id, epoch))
        return located

    async def _ask(self, id: str, output: int, holder: ShardHolder, life: Epoch) -> list[_Found]:
        """What another worker has for an output partition.

        `life`: of the scheduler, in which its transfers have these numbers.

        Raises:
            ShardsUnavailable: it lacks some of it, or can't be reached.
        """

        def make(request: int) -> FetchShards:
            return FetchShards(request, id, holder.transfers, output, life, holder.digests)

        try:
            answer, buffers = await self._ask_patiently(holder.address, make)
        except OSError:
            raise ShardsUnavailable(
                list(holder.transfers), unreachable=[holder.address], lacking=[]
            ) from None
        if isinstance(answer, Refusal):
            raise from_failure(answer.failure)
        if answer.missing:
            raise ShardsUnavailable(list(answer.missing), unreachable=[], lacking=[holder.address])
        return _paired(id, holder, answer, buffers)

    async def _ask_patiently(
        self, address: str, make: Callable[[int], Message]
    ) -> tuple[Any, list[Any]]:
        """Slow is not dead: wait for the answer as long as the holder lets anybody in.

        Raises:
            OSError: it can't be reached, or gives no sign of life.
        """
        asking = asyncio.create_task(self._ask_twice(address, make))
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                while not (await asyncio.wait([asking], timeout=self.patience_seconds))[0]:
                    await self._see(address)
            return asking.result()
        finally:
            asking.cancel()

    async def _see(self, address: str) -> None:
        """Make sure that a holder is there: by a new way, as an answer may fill the old one.

        Raises:
            OSError: it is not, or as good as; what else was asked of it fails as well.
        """
        decoder = Decoder(FromWorkerToPeer)
        keyring = self._worker.keyring
        try:
            way = await connect(address, keyring, WORKER, decoder, timeout_seconds=SIGN_SECONDS)
        except OSError:
            self._feed.exchange.forget(address)
            raise
        way.abort()

    async def _ask_twice(
        self, address: str, make: Callable[[int], Message]
    ) -> tuple[Any, list[Any]]:
        exchange = self._feed.exchange
        try:
            return await exchange.ask(address, make)
        except ConnectError:
            raise
        except CommClosedError:
            # The connection may have been dead for long, the peer replaced at its address.
            return await exchange.ask(address, make)

    def _begin(self, id: str, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do it on the loop, until the worker closes; from a task's thread.

        Raises, here or in the future:
            ShuffleClosedError: the worker closes.
        """
        done: Future[T] = Future()

        async def settle() -> None:
            try:
                done.set_result(await work)
            except BaseException as error:
                if is_our_cancellation(error):
                    done.set_exception(ShuffleClosedError(id, self.address))
                    raise
                done.set_exception(error)

        def start() -> None:
            if self._is_closed:
                work.close()
                done.set_exception(ShuffleClosedError(id, self.address))
                return
            task = self._loop.create_task(settle())
            self._work.add(task)
            task.add_done_callback(self._work.discard)

        try:
            self._loop.call_soon_threadsafe(start)
        except RuntimeError:  # the loop was closed under a task that was left behind
            work.close()
            raise ShuffleClosedError(id, self.address) from None
        return done

    # --- what is here ------------------------------------------------------------------------

    def _read_here(self, holder: ShardHolder, output: int, missing: list[TaskId]) -> list[_Found]:
        """In a task's thread; `missing`: gets those that are not here any more."""
        found: list[_Found] = []
        asked = zip(holder.transfers, holder.input_partitions, holder.digests, strict=True)
        for task, partition, digest in asked:
            shard = self.held.read(task, output, digest)
            if shard is None:
                missing.append(task)
            else:
                found.append(_Found(partition, *shard))
        return found

    async def serve(self, connection: Connection, call: FetchShards) -> None:
        """Answer a peer; waits while much is read and not sent.  On the loop."""
        await self._server.on_fetch_shards(connection, call)


def _first(coming: Future[Any], taken_back: Future[None], id: str) -> Any:
    """What comes, unless the run that waits for it is taken back before."""
    wait([coming, taken_back], return_when=FIRST_COMPLETED)
    if not coming.done():
        raise RunTakenBack(f"a run of the shuffle {id!r} waits no more")
    return coming.result()


def _nbytes_of(found: Sequence[_Found]) -> int:
    return sum([memoryview(one.content).nbytes for one in found])


def _paired(
    id: str, holder: ShardHolder, answer: ShardsFetched, buffers: Sequence[Any]
) -> list[_Found]:
    """What a holder has sent, by input partition.

    Raises:
        P2PConsistencyError: that is not what it says it is.
    """
    partitions = holder.input_partitions
    nsent = sum([length > 0 for length in answer.lengths])
    if not len(partitions) == len(answer.lengths) == len(answer.rows) or nsent != len(buffers):
        raise P2PConsistencyError(
            id,
            f"{holder.address} sent {len(buffers)} shards of {len(answer.lengths)} transfers, and "
            f"was asked for {len(partitions)}",
        )
    found: list[_Found] = []
    coming = iter(buffers)
    for partition, nrows, length in zip(partitions, answer.rows, answer.lengths, strict=True):
        content: Buffer = next(coming) if length else b""
        if memoryview(content).nbytes != length:
            raise P2PConsistencyError(
                id,
                f"{holder.address} sent {memoryview(content).nbytes:,} bytes of input partition "
                f"{partition}, and said that they are {length:,}",
            )
        found.append(_Found(partition, nrows, content))
    return found
