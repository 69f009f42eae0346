"""What code beside the scheduler may get wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ShoalError
from shoal.units import format_seconds


class MeasureUnknown(ShoalError, ValueError):
    """Workers can't be compared by what was named."""

    def __init__(self, measure: object, known: Sequence[str]) -> None:
        super().__init__(measure, known)
        self.measure, self.known = measure, list(known)

    def __str__(self) -> str:
        return (
            f"There is no measure {self.measure!r} of a worker's memory, to choose by who gets a "
            f"copy of a result or drops one. Those that exist: {', '.join(self.known)}."
        )


class NobodyScales(ShoalError, RuntimeError):
    """A client wants a cluster to adapt, and there is only a scheduler."""

    def __init__(self, address: str) -> None:
        """`address`: the scheduler's."""
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return (
            f"The scheduler at {self.address} was not started by a cluster that can start and end "
            "workers, so nobody can let their number follow the load. Start workers by hand "
            f"(shoal worker {self.address}), or make a cluster that does (LocalCluster, "
            "SpecCluster, ...) and call its adapt()."
        )


class NoSuggestion(ShoalError, TypeError):
    """A policy for copies has yielded something else."""

    def __init__(self, yielded: object) -> None:
        super().__init__(yielded)
        self.yielded = yielded

    def __str__(self) -> str:
        return (
            f"A policy yielded {self.yielded!r}. What it yields is "
            'Suggestion("replicate" or "drop", task) with a task of scheduler.tasks, and perhaps '
            "a set of workers of scheduler.workers among which to choose."
        )


class PolicyRaised(ShoalError):
    """A policy for copies ends with an error."""

    def __init__(self, policy: object, error: BaseException) -> None:
        super().__init__(policy, error)
        self.policy, self.error = policy, error

    def __str__(self) -> str:
        return (
            f"The policy {self.policy!r} for copies of results has raised "
            f"{type(self.error).__name__}: {self.error}. It is asked no more, other policies are. "
            "Mend it, and add it again: manager.add_policy(policy)."
        )


class PolicySlow(ShoalError):
    """A policy for copies keeps the scheduler's loop."""

    def __init__(self, policy: object, seconds: float) -> None:
        super().__init__(policy, seconds)
        self.policy, self.seconds = policy, seconds

    def __str__(self) -> str:
        return (
            f"The policy {self.policy!r} for copies of results took "
            f"{format_seconds(self.seconds)} of the scheduler's loop, in which nothing else is "
            "done; if that goes on it is asked in fewer rounds. Have it look at fewer tasks, or "
            "make active-memory-manager.interval longer."
        )


class JournalInUse(ShoalError, RuntimeError):
    """Another scheduler writes to the journal."""

    def __init__(self, folder: str, holder: str) -> None:
        """`holder`: who says to have it; "": nobody."""
        super().__init__(folder, holder)
        self.folder, self.holder = folder, holder

    def __str__(self) -> str:
        who = self.holder or "another process"
        return (
            f"The journal in {self.folder} is in use: {who} has its lock. Two schedulers can't "
            "write to one journal: end that one, or give this one a folder of its own "
            "(scheduler.journal)."
        )


class JournalNotPrivate(ShoalError, RuntimeError):
    """Others may read what users have pickled, or write what their workers would run."""

    def __init__(self, folder: str, why: str) -> None:
        """`why`: a clause."""
        super().__init__(folder, why)
        self.folder, self.why = folder, why

    def __str__(self) -> str:
        return (
            f"No journal is kept in {self.folder}: {self.why}. What is in it is run by workers, so "
            "nobody else may have access. Name a folder that is yours alone, "
            f"or one that does not exist yet; or: chmod 700 {self.folder}"
        )


class JournalOfAnother(ShoalError, RuntimeError):
    """What is in the folder was written by another version, or is no journal."""

    def __init__(self, folder: str, what: str) -> None:
        """`what`: has written it, or in which format it is; "": it is no journal."""
        super().__init__(folder, what)
        self.folder, self.what = folder, what

    def __str__(self) -> str:
        found = f"is of {self.what}" if self.what else "is no journal of shoal"
        return (
            f"The file {self.folder}/journal {found}, and this version can't read it. Nothing was "
            "changed. Start the version that has written it; or name another folder "
            "(scheduler.journal), and what is in this one is not restored."
        )


class JournalUnusable(ShoalError, OSError):
    """A scheduler that shall keep a journal can't."""

    def __init__(self, folder: str, why: str) -> None:
        """`why`: a clause."""
        super().__init__(folder, why)
        self.folder, self.why = folder, why

    def __str__(self) -> str:
        return (
            f"The journal in {self.folder} can't be opened: {self.why}. The scheduler does not "
            "start, as it would keep nothing for the next. Make room there or mend it, name "
            "another folder (scheduler.journal), or start without a journal."
        )


class JournalTorn(ShoalError):
    """The end of a journal is missing.  Logged, never raised."""

    def __init__(self, folder: str, nbytes: int) -> None:
        super().__init__(folder, nbytes)
        self.folder, self.nbytes = folder, nbytes

    def __str__(self) -> str:
        return (
            f"The journal in {self.folder} ended in the midst of a record, of which there were "
            f"{self.nbytes:,} bytes: it was being written as the scheduler before was killed. They "
            "are cut. Nobody was told that what they said was on disk."
        )


class JournalDamaged(ShoalError):
    """A journal can be read up to a point only.  Logged, never raised."""

    def __init__(self, folder: str, nbytes: int, nlost: int, nrecords: int, beside: str) -> None:
        """`nbytes`: that could be read; `nlost`: that follow, with so many whole records among
        them; `beside`: the name that the file has now."""
        super().__init__(folder, nbytes, nlost, nrecords, beside)
        self.folder, self.nbytes, self.nlost = folder, nbytes, nlost
        self.nrecords, self.beside = nrecords, beside

    def __str__(self) -> str:
        records = "1 record" if self.nrecords == 1 else f"{self.nrecords} records"
        return (
            f"The journal in {self.folder} is damaged behind its first {self.nbytes:,} bytes. What "
            f"was written after that is lost: {self.nlost:,} bytes, with {records} that are whole "
            "but can't be relied upon without what was before. So datasets that were published "
            "and work that was fired since is missing, and what had ended since may be done again. "
            f"The scheduler goes on with the rest; the file is kept as {self.beside}. Look after "
            "the disk."
        )


class JournalIncomplete(ShoalError):
    """Tasks of a journal refer to what is not in it.  Logged, never raised."""

    def __init__(self, folder: str, ntasks: int) -> None:
        super().__init__(folder, ntasks)
        self.folder, self.ntasks = folder, ntasks

    def __str__(self) -> str:
        tasks = "A task" if self.ntasks == 1 else f"{self.ntasks} tasks"
        return (
            f"{tasks} of the journal in {self.folder} can't be restored, as what is needed to "
            "compute them is not in it: a disk has lost it. Datasets that they were part of lack "
            "them. The scheduler goes on with the rest; look after the disk."
        )


class JournalUnreliable(ShoalError):
    """A running scheduler's journal may not be what it has written: it is not gone on with."""

    def __init__(
        self, folder: str, nbytes: int = 0, beside: str = "", error: OSError | None = None
    ) -> None:
        """`nbytes`: that are as they were written; `beside`: the name that the file has as well;
        or the `error` of making it safe that another file has its name."""
        super().__init__(folder, nbytes, beside, error)
        self.folder, self.nbytes, self.beside, self.error = folder, nbytes, beside, error

    @property
    def why(self) -> str:
        """As a clause."""
        if self.error is not None:
            reason = (self.error.strerror or str(self.error)).lower()
            return f"it was written anew, and the disk does not keep its name: {reason}"
        return (
            f"behind its first {self.nbytes:,} bytes it is not as it was written, by a fault of "
            f"the disk or by somebody else; it is kept as {self.beside}"
        )

    def __str__(self) -> str:
        return f"The journal in {self.folder} can't be relied upon: {self.why}."


class JournalGivenUp(ShoalError):
    """Nothing can be written to the journal any more.  Logged, never raised."""

    def __init__(self, folder: str, why: str) -> None:
        """`why`: a clause."""
        super().__init__(folder, why)
        self.folder, self.why = folder, why

    def __str__(self) -> str:
        return (
            f"The journal in {self.folder} has stopped: {self.why}. The scheduler goes on without: "
            "what is published and fired from now on goes with it, and what has ended since would "
            "be done again by a scheduler that is started on this folder. Mend the disk, and start "
            "the scheduler anew at a time that suits you."
        )
