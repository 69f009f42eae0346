"""A service in a process of its own: how it is started, watched and ended.

Nothing is guarded by the user's `__main__`, because it is never imported.  What a process shall be
goes to it on its standard input, a socket whose end it takes for the end of the cluster; nothing
secret stands in a command line or an environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shoal.comms import forks
from shoal.config import Memory, Nanny, read
from shoal.nanny.bootstrap import to_bytes
from shoal.nanny.channel import Channel
from shoal.nanny.children import Child, Ending
from shoal.nanny.death import Death, KillsBySystem
from shoal.nanny.document import nthreads_of
from shoal.nanny.errors import ProcessDied, ProcessLate
from shoal.nanny.questions import PREPARE
from shoal.nanny.starting import Wish, duplicate, start_process
from shoal.nanny.surroundings import surroundings
from shoal.observe.limits import nkilled_by_system
from shoal.observe.status import Status
from shoal.storage.scratch import remove_scratch_of, scratch_parent

LINGER_SECONDS_MAX: Final = 10.0
"""What a process may take to end once it has said that it left."""
TERMINATE_SECONDS: Final = 1.0
"""After SIGTERM, and again after SIGKILL."""

ENTRY: Final = "shoal.deploy.child"
"""The module whose `main` runs what a document describes; no import, as it is above us."""

START_SECONDS_MAX: Final = 60.0
"""For an interpreter to start, and to import what is forked from then on."""

_kills: Final = KillsBySystem(nkilled_by_system)


class ServiceProcess:
    """One process, a scheduler or a worker; belongs to the loop that starts it."""

    def __init__(
        self,
        what: str,
        document: dict[str, Any],
        *,
        environ: Mapping[str, str] | None = None,
        memory_limit_nbytes: int = 0,
        on_end: Callable[[ServiceProcess], None] | None = None,
        entry: str = ENTRY,
    ) -> None:
        """Describe it; `start` starts it.

        Args:
            what: for people, such as "worker 0".
            document: what it shall be; see `document.document_of`.
            environ: all of its environment; None: ours.
            memory_limit_nbytes: it is killed when it comes too near (`worker.memory.terminate`);
                0: never.
            on_end: called if it ends by itself, once it was ready; `death` says how.
            entry: the module whose `main` is called with the document.
        """
        self.what = what
        self.status = Status.created
        self.address = ""
        self.started_at = time.time()  # for display only
        self.words: dict[str, Any] = {}  # what it said of itself as it was ready
        self.death: Death | None = None
        """How it ended; None as long as it runs, or was never started."""
        self.farewell: dict[str, Any] | None = None
        """What it said as it closed in good order: why it has `left`; None: it did not."""
        self.is_leaving = False
        """Whether it said that it is about to close, because a client has asked for that."""
        self.has_worked = False
        """Whether it said that it has finished a task."""
        self.has_to_prepare = False
        """Whether it said that it has something to do before others end; see `prepare`."""
        self.on_sent_away: Callable[[Sequence[int]], None] | None = None
        """Told the process ids of those that it has sent away, for others to come."""
        self.on_beat: Callable[[ServiceProcess, float], None] | None = None
        """Told of each sign of life, and in how many seconds there will be another."""
        self.on_ask: Callable[[ServiceProcess, dict[str, Any]], None] | None = None
        """Told of what the process asks its nanny; see `questions.py`."""
        self.memory_limit_nbytes = memory_limit_nbytes
        settings, given = document.get("config"), document.get("options", {}).get("local_directory")
        self._scratch_parents = dict.fromkeys(
            [scratch_parent(settings, given or None), scratch_parent(settings)]
        )
        self._patience: asyncio.Timeout | None = None  # of whoever waits until it serves
        self._is_prepared = False  # for however long: plugins take their time
        self._removing = threading.Lock()
        self._nkilled_before = 0
        self._is_disowned = False  # it belongs to the process that ours is a fork of
        self._document = document
        self._environ = environ
        self._on_end, self._entry = on_end, entry
        self._child: Child | None = None
        self._channel: Channel | None = None
        self._ready: asyncio.Future[dict[str, Any]] | None = None
        self._prepared: asyncio.Future[None] | None = None
        self._lingering: asyncio.TimerHandle | None = None  # it has said that it left
        self._life: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<process of {self.what} at {self.address or 'no address'}, {self.status}>"

    @property
    def pid(self) -> int | None:
        """Of the process; None if it was never started."""
        return None if self._child is None else self._child.pid

    @property
    def exit_code(self) -> int | None:
        """Negative: minus the signal that ended it.  None: it runs, or nobody was told."""
        ending = None if self._child is None else self._child.poll()
        return None if ending is None else ending.exit_code

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._child is not None and self._child.poll() is None

    async def start(self, inherited: Sequence[int] = ()) -> None:
        """Start the process, and tell it what it shall be.  Does not wait until it is that.

        Args:
            inherited: descriptors, under numbers that stand in the document.  They may be closed
                when this returns.

        Raises:
            OSError: the system has no process for us.
            CannotFork: `nanny.start-method` is "fork", and there is nothing to fork from.
            ProcessLate: the system is too slow, or stands still.
        """
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self.status = Status.starting
        started = loop.create_future()
        life = self._live(started, inherited)
        self._life = asyncio.create_task(life, name=f"process of {self.what}")
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await asyncio.shield(started)
        except asyncio.CancelledError:
            self.let_go()
            raise
        except TimeoutError as error:
            self._life.cancel()
            raise ProcessLate(self.what, START_SECONDS_MAX, "") from error

    async def ready(self, timeout_seconds: float) -> dict[str, Any]:
        """Wait until it serves; what it says of itself.

        Once it says that it waits for what plugins have to do, it may take however long.

        Raises:
            ProcessDied: it ended first.
            ProcessLate: it was not ready in time.
        """
        assert self._ready is not None
        try:
            seconds = None if self._is_prepared else timeout_seconds
            async with asyncio.timeout(seconds) as self._patience:
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            raise ProcessLate(self.what, timeout_seconds, self._last_lines()) from error
        finally:
            self._patience = None

    async def go(self, words: Mapping[str, Any]) -> None:
        """Tell it that what it waits for is there."""
        if self._channel is not None:
            await self._channel.say(json.dumps(words).encode() + b"\n")

    async def answer(self, words: Mapping[str, Any]) -> None:
        """Answer what it has asked; nothing happens if it is gone."""
        await self.go(words)

    async def prepare(self, timeout_seconds: float) -> None:
        """Have it do what it has to do while others are still there, if it has; then it is closed.

        Returns when it has done that, or has ended, or after `timeout_seconds`.
        """
        if not self.has_to_prepare or self.status is not Status.running or self._life is None:
            return
        self._prepared = asyncio.get_running_loop().create_future()
        await self.go({PREPARE: True})
        await asyncio.wait(
            (self._prepared, self._life),
            timeout=timeout_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )

    async def finished(self) -> None:
        """Wait until it has ended, however it does."""
        if self._life is not None:
            await asyncio.wait((self._life,))

    async def close(self, timeout_seconds: float) -> None:
        """Have it close and end; SIGTERM, then SIGKILL, if it does not in time.

        If this is cancelled it is killed, since nobody would see to it any more; within a second.
        """
        self.let_go()
        if self._life is None:
            return
        wait_seconds = timeout_seconds
        for end in (self.terminate, self.kill, None):
            try:
                done, _ = await asyncio.wait((self._life,), timeout=wait_seconds)
            except asyncio.CancelledError:
                self.kill()
                await asyncio.wait((self._life,), timeout=TERMINATE_SECONDS)
                await asyncio.to_thread(self.remove_files)
                raise
            if done or end is None:
                return
            if self._child is None:  # what starts it stands still
                self._life.cancel()
            end()
            wait_seconds = TERMINATE_SECONDS

    def let_go(self) -> None:
        """Say that it shall close.  From any thread; does not wait."""
        if self.status in (Status.starting, Status.running):
            self.status = Status.closing
        if self._channel is not None:
            self._channel.let_go()

    def close_now(self, deadline: float) -> None:
        """As `close`, without a loop; until `deadline`, on the monotonic clock."""
        self.let_go()
        if self._child is None:
            return
        for end in (self.terminate, self.kill, None):
            if self._child.wait(deadline) or end is None:
                break
            end()
            deadline = time.monotonic() + TERMINATE_SECONDS
        if self._life is None or self._life.done():  # its loop has gone, and left this to us
            self._release()

    def terminate(self) -> None:
        """SIGTERM."""
        if self._child is not None:
            self._child.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: it ends at once, without a word to anybody."""
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)

    @property
    def left_files(self) -> bool:
        """Whether others must remove what it had on disk, as it has ended without a farewell."""
        return bool(self.pid) and self.farewell is None and not self._is_disowned

    def remove_files(self) -> None:
        """Remove its scratch folders if it `left_files`.  From any thread.

        Cost: one look at a folder; then as long as it takes to remove what is there.
        """
        with self._removing:  # a second call returns when there is nothing left, too
            if self.pid and self.left_files:
                for parent in self._scratch_parents:
                    remove_scratch_of(self.pid, parent)

    def disown(self) -> None:
        """See `forks.Disowned`."""
        self._is_disowned = True
        self._removing = threading.Lock()
        self._on_end = None
        self._close_channel()

    # --- its life ----------------------------------------------------------------------------

    async def _live(self, started: asyncio.Future[None], inherited: Sequence[int]) -> None:
        """From its birth to its end."""
        child: Child | None = None
        try:
            child = await self._begin(started, inherited)
            if child is None:
                return
            assert self._channel is not None
            bounded = nthreads_of(self._document, read(Nanny).threads_max)
            tasks = [
                asyncio.create_task(part)
                for part in (
                    self._say_document(),
                    self._channel.listen(self._hear),
                    self._channel.read_errors(self._is_running),
                    child.keep_within(bounded),
                )
            ]
            ending = await self._end_of(child, tasks[1])
            await asyncio.wait(tasks, timeout=TERMINATE_SECONDS)
            for task in tasks:  # a process that it has started holds them open, perhaps
                task.cancel()
        finally:
            if self._lingering is not None:
                self._lingering.cancel()
            # Else the loop ends before the process does: see `close_now`.
            if child is None or child.poll() is not None:
                self._release()
        self._ended(child.pid, ending)

    async def _begin(self, started: asyncio.Future[None], inherited: Sequence[int]) -> Child | None:
        """Start it; None if that failed, which whoever waits for `started` is told."""
        channel = self._channel = Channel()
        forks.belongs_to_this_process(self)
        standard_error = duplicate(2)
        environ = dict(os.environ if self._environ is None else self._environ)
        try:
            memory, method = read(Memory), read(Nanny).start_method
            self._nkilled_before = _kills.nunexplained
            wish = Wish(
                what=self.what,
                entry=self._entry,
                environ=environ,
                channel=channel.their_words.fileno(),
                errors=channel.their_errors.fileno(),
                inherited=(standard_error, *inherited),
                kill_above_nbytes=int(self.memory_limit_nbytes * (memory.terminate_ratio or 0)),
                interval_seconds=memory.monitor_seconds,
            )
            self._document |= {
                "entry": self._entry,
                "stderr": standard_error,
                "descriptors": [standard_error, *inherited],
                "surroundings": surroundings(environ),
            }
            self._child = await start_process(wish, method)
        except Exception as error:
            self.status = Status.failed
            started.set_exception(error)
            started.exception()  # whoever started it is told, if still there
            return None
        finally:
            channel.close_theirs()
            os.close(standard_error)
        started.set_result(None)
        return self._child

    async def _end_of(self, child: Child, listening: asyncio.Task[None]) -> Ending:
        """Wait for it.  A process that lives, but can't be spoken to, is killed."""
        ending = asyncio.ensure_future(child.ended())
        try:
            await asyncio.wait((ending, listening), return_when=asyncio.FIRST_COMPLETED)
            if not self._is_closing():
                await asyncio.wait((ending,), timeout=TERMINATE_SECONDS)
                if not ending.done() and not self._is_closing():
                    child.send_signal(signal.SIGKILL)
            return await ending
        finally:
            ending.cancel()

    def _is_closing(self) -> bool:
        """Whether somebody has asked it to end, who then sees to it."""
        return self.status is Status.closing

    def _ended(self, pid: int, ending: Ending) -> None:
        """Tell whoever wants to know."""
        was, self.status = self.status, Status.closed
        death = self.death = self._death_of(pid, ending)
        assert self._ready is not None
        if not self._ready.done():
            if was is Status.starting:
                self._ready.set_exception(ProcessDied(self.what, death))
                self._ready.exception()  # whoever waits is told; nobody need wait
            else:
                self._ready.cancel()
        elif was is Status.running:
            if not death.is_clean:
                self.status = Status.failed
            if self._on_end is not None:
                self._on_end(self)

    def _death_of(self, pid: int, ending: Ending) -> Death:
        exit_code = ending.exit_code
        if exit_code is None and self.farewell is not None:
            exit_code = 0  # nobody was told, but it was about to
        return Death(
            pid=pid,
            exit_code=exit_code,
            signal=_name_of_signal(exit_code),
            memory_nbytes=ending.memory_nbytes,
            memory_peak_nbytes=ending.memory_peak_nbytes,
            memory_limit_nbytes=self.memory_limit_nbytes,
            by_memory_limit=ending.by_memory_limit,
            by_system=exit_code == -signal.SIGKILL
            and not ending.by_memory_limit
            and _kills.explains(self._nkilled_before),
            last_lines=self._last_lines(),
        )

    async def _say_document(self) -> None:
        document, self._document = self._document, {}  # the token need not stay
        assert self._channel is not None
        await self._channel.say(to_bytes(document))

    def _hear(self, words: dict[str, Any]) -> None:
        """One message of the process: the first word that is known says what it is."""
        for word in words:
            if word in WORDS:
                WORDS[word](self, words)
                return

    def _hear_left(self, words: dict[str, Any]) -> None:
        """It has closed; if something of a user's keeps the process, it is ended."""
        self.farewell = words
        loop = asyncio.get_running_loop()
        self._lingering = loop.call_later(LINGER_SECONDS_MAX, self.kill)

    def _hear_prepares(self, words: dict[str, Any]) -> None:
        self.has_to_prepare = words["prepares"]

    def _hear_done(self, words: dict[str, Any]) -> None:
        if self._prepared is not None and not self._prepared.done():
            self._prepared.set_result(None)

    def _hear_sent_away(self, words: dict[str, Any]) -> None:
        if self.on_sent_away is not None:
            self.on_sent_away(words["sent_away"])

    def _hear_prepared(self, words: dict[str, Any]) -> None:
        """The scheduler has heard of it, and lets it in when plugins have done what they do."""
        self._is_prepared = True
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(None)

    def _hear_leaving(self, words: dict[str, Any]) -> None:
        self.is_leaving = True

    def _hear_worked(self, words: dict[str, Any]) -> None:
        self.has_worked = True

    def _hear_beats(self, words: dict[str, Any]) -> None:
        if self.on_beat is not None:
            self.on_beat(self, words["beats"])

    def _hear_ask(self, words: dict[str, Any]) -> None:
        if self.on_ask is not None:
            self.on_ask(self, words)

    def _hear_address(self, words: dict[str, Any]) -> None:
        """It is ready."""
        assert self._ready is not None
        if not self._ready.done():
            self.words, self.address = words, words["address"]
            if self.status is Status.starting:
                self.status = Status.running
            self._ready.set_result(words)

    def _is_running(self) -> bool:
        return self.status is Status.running

    def _last_lines(self) -> str:
        return "" if self._channel is None else self._channel.last_lines()

    def _release(self) -> None:
        if self._child is not None:
            self._child.release()
        self._close_channel()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()


WORDS: Final[dict[str, Callable[[ServiceProcess, dict[str, Any]], None]]] = {
    "address": ServiceProcess._hear_address,
    "ask": ServiceProcess._hear_ask,
    "beats": ServiceProcess._hear_beats,
    "done": ServiceProcess._hear_done,
    "left": ServiceProcess._hear_left,
    "leaving": ServiceProcess._hear_leaving,
    "prepared": ServiceProcess._hear_prepared,
    "prepares": ServiceProcess._hear_prepares,
    "sent_away": ServiceProcess._hear_sent_away,
    "worked": ServiceProcess._hear_worked,
}
"""First word of what a process says → what becomes of it."""


def _name_of_signal(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
