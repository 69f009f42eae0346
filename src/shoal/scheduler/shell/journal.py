"""The journal of a scheduler: what a step leaves to be written, and what is said once it is.

While the disk writes, what further steps leave gathers, and is the next record: so what the disk
takes for each sync is shared by all that came meanwhile, and nobody waits for a timer.  The loop
does not wait for the disk, but for a second at its end.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from shoal.protocol.detached import JournalStopped
from shoal.protocol.journal import Entry
from shoal.protocol.messages import Message
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client
from shoal.scheduler.shell.errors import JournalGivenUp, JournalUnreliable
from shoal.scheduler.shell.journal_folder import JournalFolder
from shoal.scheduler.shell.stepping import Stepping
from shoal.storage.waiting_threads import WaitingThreads

logger = logging.getLogger("shoal.scheduler")

OPEN_SECONDS_MAX: Final = 600.0
COMPACT_SECONDS_MAX: Final = 600.0
CLOSE_SECONDS_MAX: Final = 10.0
CLOSE_COMPACTING_SECONDS_MAX: Final = 60.0
"""Where the file is being written anew just then."""
JOIN_SECONDS_MAX: Final = 1.0


class Journaling:
    """Between the machine of a scheduler and the folder of its journal."""

    write_seconds_max = 30.0
    """Silence of the disk after which the scheduler goes on without a journal."""

    def __init__(
        self, folder: JournalFolder, machine: SchedulerMachine, stepping: Stepping
    ) -> None:
        """Nothing happens before `begin`."""
        self.folder = folder
        self._machine = machine
        self._stepping = stepping
        self._threads: WaitingThreads | None = None
        self._entries: list[Entry] = []  # for the next record
        self._held: list[tuple[Client, Message]] = []  # to be said once that is on disk
        self._said_next: list[tuple[Client, Message]] = []  # once what is being written is
        self._is_busy = False  # the disk
        self._is_compacting = False
        self._is_over = False

    async def begin(self) -> None:
        """Have the machine go on with what is there, before it is stepped.

        Raises:
            JournalInUse, JournalNotPrivate, JournalOfAnother, JournalUnusable: see `JournalFolder`.
            TimeoutError: the disk does not answer.
        """
        self._threads = WaitingThreads("shoal-scheduler-journal", 1)
        try:
            journaled, epoch = await self._threads.do(
                self.folder.open, OPEN_SECONDS_MAX, lambda _: self.folder.close()
            )
        except BaseException:
            self._is_over = True
            self._end_thread()
            raise
        now = asyncio.get_running_loop().time()
        self._machine.begin_journal(journaled, epoch, now)
        self._stepping.journal = self
        logger.info(
            "journal in %s: %d tasks, %d datasets, %d tasks that nobody waits for",
            self.folder.path,
            len(journaled.tasks),
            len(journaled.datasets),
            len(journaled.detached),
        )

    def take(self) -> None:
        """A step is over."""
        entries, held = self._machine.take_journaled()
        if not (entries or held):
            return
        self._entries += entries
        self._held += held
        if not self._is_busy:
            self._write()

    async def close(self) -> None:
        """Write what is left, say what that was awaited for, and let others have the folder."""
        if self._threads is None or self._is_over:
            return
        self._is_over = True
        self._stepping.journal = None
        entries, folder = self._entries, self.folder

        def finish() -> None:
            try:
                if entries:
                    folder.append(entries)
                elif folder.failure is not None:  # of what was under way
                    raise folder.failure
            finally:
                folder.close()

        seconds = CLOSE_COMPACTING_SECONDS_MAX if self._is_compacting else CLOSE_SECONDS_MAX
        held = [*self._said_next, *self._held]
        try:
            await self._threads.do(finish, seconds)
        except Exception as error:
            why = _why(error)
            logger.critical("%s", JournalGivenUp(folder.path, why))
            told = dict.fromkeys(client for client, _ in held)  # they wait for what is not written
            self._say_all([(client, JournalStopped(why)) for client in told])
        self._say_all(held)
        self._end_thread()

    def _write(self) -> None:
        """What has gathered is the next record, if there is anything."""
        assert self._threads is not None
        entries, self._entries = self._entries, []
        self._said_next, self._held = self._held, []
        if not entries:
            self._say()
            return
        self._is_busy = True
        folder = self.folder
        try:
            self._threads.begin(
                lambda: folder.append(entries), self._written, self.write_seconds_max
            )
        except RuntimeError as error:  # the system has no thread for us
            self._stop(error)

    def _written(self, _: None, error: BaseException | None) -> None:
        self._is_busy = False
        if self._is_over:
            return
        if error is not None:
            self._stop(error)
            return
        self._say()
        if self.folder.is_due:
            assert self._threads is not None
            self._is_busy = self._is_compacting = True
            self._threads.begin(self.folder.compact, self._compacted, COMPACT_SECONDS_MAX)
        elif self._entries or self._held:
            self._write()

    def _compacted(self, _: None, error: BaseException | None) -> None:
        self._is_busy = self._is_compacting = False
        if self._is_over:
            return
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            logger.warning(
                "the journal in %s could not be written anew, and grows on: %s",
                self.folder.path,
                _why(error),
            )
        elif error is not None:
            self._stop(error)
            return
        if self._entries or self._held:
            self._write()

    def _say(self) -> None:
        said, self._said_next = self._said_next, []
        self._say_all(said)

    def _say_all(self, held: list[tuple[Client, Message]]) -> None:
        self._stepping.say([(client, [message]) for client, message in held])

    def _stop(self, error: BaseException) -> None:
        """Go on without a journal, and let nobody wait for it."""
        self._is_over = True
        why = _why(error)
        logger.critical("%s", JournalGivenUp(self.folder.path, why))
        self._stepping.journal = None
        self._stepping.step(self._machine.stop_journal, why, self._stepping.now())
        self._say_all([*self._said_next, *self._held])
        self._said_next, self._held, self._entries = [], [], []
        assert self._threads is not None
        self._threads.begin(self.folder.close, lambda _, error: self._end_thread())

    def _end_thread(self) -> None:
        """It ends as soon as it has done what it was begun with."""
        assert self._threads is not None
        for thread in self._threads.close():
            thread.join(JOIN_SECONDS_MAX)


def _why(error: BaseException) -> str:
    if isinstance(error, JournalUnreliable):
        return error.why
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
