"""Why there is no memory for a task, with numbers; what users see of it."""

from collections.abc import Sequence

from shoal.errors import KilledWorker, ShoalError, causes_in_words
from shoal.ids import Key
from shoal.protocol.keys import to_text
from shoal.units import format_nbytes, format_seconds


class KilledByMemory(KilledWorker, MemoryError):
    """A task was running on several workers as each of them died, with its memory full."""

    def __init__(
        self,
        key: str,
        worker: str,
        nfailures: int,
        reason: str = "",
        causes: Sequence[str] = (),
        places: Sequence[tuple[str, int, int]] = (),
        nalone: int = 0,
    ) -> None:
        """As its base.

        Args:
            places: address, bytes as last known, and limit of those whose memory was full.
            nalone: of these, how many ran nothing else.
        """
        super().__init__(key, worker, nfailures, reason, causes)
        self.places, self.nalone = [(str(a), int(n), int(limit)) for a, n, limit in places], nalone
        self.args = (key, worker, nfailures, reason, list(causes), self.places, nalone)

    def __str__(self) -> str:
        where = "\n".join(
            f"  {address}, at {format_nbytes(nbytes)} or more of its {format_nbytes(limit)}"
            for address, nbytes, limit in self.places
        )
        how = f" ({self.reason})" if self.reason else ""
        nfull = len(self.places)
        full = "Their memory" if nfull == self.nfailures else f"The memory of {nfull} of them"
        alone = f"; on {self.nalone} of these nothing else ran" if self.nalone else ""
        if self.nalone == nfull:
            alone = ", and nothing else ran there"
        known = f"They died of: {causes_in_words(self.causes)}.\n" if self.causes else ""
        return (
            f"Task {to_text(Key(self.task))!r} takes more memory than its workers have: "
            f"{self.nfailures} died as they ran it; the last was {self.last_worker}{how}.\n"
            f"{full} was full{alone}:\n{where}\n{known}"
            "It is not run again. Give workers more memory (memory_limit=; fewer workers on a "
            "machine have more each), or make its pieces smaller: more partitions, smaller chunks."
        )


class WorkCanNotRun(ShoalError):
    """Tasks are ready, and nobody who is there may run them.  Logged, never raised."""

    def __init__(self, key: str, ntasks: int, seconds: float, lines: Sequence[str]) -> None:
        """`key`: of one of them; `lines`: why, as explanations have it."""
        super().__init__(key, ntasks, seconds, list(lines))
        self.key, self.ntasks, self.seconds, self.lines = key, ntasks, seconds, list(lines)

    def __str__(self) -> str:
        what = f"The task {to_text(Key(self.key))!r} has"
        if self.ntasks > 1:
            what = f"{self.ntasks} tasks, {to_text(Key(self.key))!r} among them, have"
        return (
            f"{what} been ready for {self.seconds:g} s, and no worker may run "
            f"{'it' if self.ntasks == 1 else 'them'}: {'; '.join(self.lines)}.\n"
            "Start a worker that may, or cancel them; `client.explain` says how it stands."
        )


class WorkStandsStill(ShoalError):
    """A task might have begun, and did not: an error of ours.  Logged, never raised."""

    def __init__(
        self, key: str, state: str, worker: str, seconds: float, records: Sequence[str]
    ) -> None:
        """`records`: the latest transitions of the task, in lines."""
        super().__init__(key, state, worker, seconds, list(records))
        self.key, self.state, self.worker = key, state, worker
        self.seconds, self.records = seconds, list(records)

    def __str__(self) -> str:
        story = "\n".join(f"  {record}" for record in self.records)
        return (
            f"The task {to_text(Key(self.key))!r} ({self.state}) could run, and worker "
            f"{self.worker} has had nothing to do for {self.seconds:.1f} s. That is an error in "
            f"shoal, please report it; it is decided about anew. What it went through:\n{story}"
        )


class AllArePaused(ShoalError):
    """Nothing is begun, as the memory of all workers is short.  Logged, never raised."""

    def __init__(self, nworkers: int, seconds: float, why: str) -> None:
        """`why`: of the fullest of them, with its name."""
        super().__init__(nworkers, seconds, why)
        self.nworkers, self.seconds, self.why = nworkers, seconds, why

    def __str__(self) -> str:
        return (
            f"All {self.nworkers} workers have been paused for {self.seconds:.0f} s, and begin "
            f"nothing: {self.why}.\nThey go on once results are let go of; or start another "
            "worker, or give them more memory (memory_limit=)."
        )


class WorkerIsSilent(ShoalError):
    """A worker gives no sign of life, or of hearing.  Logged, never raised."""

    def __init__(
        self, name: str, address: str, pid: int, seconds: float, *, is_deaf: bool = False
    ) -> None:
        """`is_deaf`: it says that it lives, and receives nothing of what it is told."""
        super().__init__(name, address, pid, seconds)
        self.name, self.address, self.pid, self.seconds = name, address, pid, seconds
        self.is_deaf = is_deaf

    def __str__(self) -> str:
        if self.is_deaf:
            return (
                f"Worker {self.name} ({self.address}, process id {self.pid}) has heard nothing of "
                f"what it was told for {format_seconds(self.seconds)}, though it says that it "
                "lives: it is given nothing more, and what it ran and held is computed elsewhere. "
                "The network loses what goes there. Once it hears again it is taken back with its "
                "results."
            )
        return (
            f"Worker {self.name} ({self.address}, process id {self.pid}) has been silent for "
            f"{format_seconds(self.seconds)}, and nobody vouches for it: it is given nothing more, "
            "and what it ran and held is computed elsewhere. It was stopped, or a task never lets "
            "go of its interpreter, or the network is broken. Once it is heard again it is taken "
            "back with its results."
        )


class WorkerFailsAll(ShoalError):
    """All fails on one worker that succeeds elsewhere.  Logged, never raised."""

    def __init__(
        self, name: str, address: str, nfailed: int, nwell: int, seconds: float, latest: str
    ) -> None:
        """`nwell`: runs of the same kinds that ended well elsewhere; `latest`: what was raised."""
        super().__init__(name, address, nfailed, nwell, seconds, latest)
        self.name, self.address, self.nfailed, self.nwell = name, address, nfailed, nwell
        self.seconds, self.latest = seconds, latest

    def __str__(self) -> str:
        return (
            f"On worker {self.name} ({self.address}) the last {self.nfailed} runs have failed, "
            f"while {self.nwell} of the same kinds ended well elsewhere: it is given nothing for "
            f"{format_seconds(self.seconds)}, and then tried again. The latest raised: "
            f"{self.latest} Look at its machine: a full disk, a library or a mount that is "
            "missing. (The setting scheduler.quarantine-failures; 0: never.)"
        )


class NotEnoughMemory(ShoalError, MemoryError):
    """What a task needs, or what is to be scattered, is larger than any worker's memory."""

    def __init__(
        self,
        key: str,
        nbytes: int,
        limit: int,
        largest: Sequence[tuple[str, int]] = (),
        ninputs: int = 0,
    ) -> None:
        """`nbytes`: of all inputs, the `largest` of which are named with their bytes; without
        inputs, of the scattered value; `limit`: of the worker with the most memory."""
        super().__init__(key, nbytes, limit, [tuple(pair) for pair in largest], ninputs)
        self.key, self.nbytes, self.limit, self.ninputs = key, nbytes, limit, ninputs
        self.largest = [(str(name), int(size)) for name, size in largest]

    def __str__(self) -> str:
        limit = f"no worker has more than {format_nbytes(self.limit)}"
        if not self.ninputs:
            return (
                f"The value {self.key!r} takes {format_nbytes(self.nbytes)}, and {limit}, so it "
                "can't be scattered.\nGive workers more memory, or scatter it in pieces."
            )
        named = ", ".join(f"{name!r} ({format_nbytes(size)})" for name, size in self.largest)
        largest = "the largest are" if self.ninputs > len(self.largest) else "they are"
        return (
            f"Task {self.key!r} needs {self.ninputs} results of {format_nbytes(self.nbytes)} "
            f"together, and {limit}; {largest} {named}.\n"
            "It can't run. Give workers more memory (memory_limit=), or make its pieces smaller: "
            "more partitions, smaller chunks, a reduction in steps."
        )


class OutputTooLarge(NotEnoughMemory):
    """An output partition of a shuffle is larger than any worker's memory."""

    def __init__(self, key: str, shuffle: str, output: int, nbytes: int, limit: int) -> None:
        """`nbytes`: of its shards, those of other shuffles that are joined with it included."""
        super().__init__(key, nbytes, limit)
        self.args = (key, shuffle, output, nbytes, limit)
        self.shuffle, self.output = shuffle, output

    def __str__(self) -> str:
        return (
            f"Task {self.key!r} is to make output partition {self.output} of the shuffle "
            f"{self.shuffle!r}, of {format_nbytes(self.nbytes)}, and no worker has more than "
            f"{format_nbytes(self.limit)}.\nMake more partitions (npartitions=), or give workers "
            "more memory (memory_limit=). If few values of the column have most of the rows, more "
            "partitions don't part those: aggregate before the shuffle, or treat them apart."
        )
