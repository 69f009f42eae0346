"""How a process ended: the record that restarts, logs and errors are written from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal.units import format_nbytes

_SIGNALS = {
    "SIGKILL": "somebody ended it, or the system did because memory ran out",
    "SIGTERM": "somebody asked it to end",
    "SIGHUP": "its terminal or session went away",
    "SIGSEGV": "native code crashed",
    "SIGBUS": "native code crashed, or a mapped file or shared memory could not be filled",
    "SIGFPE": "native code crashed",
    "SIGILL": "native code crashed: it has instructions that this processor lacks",
    "SIGABRT": "native code gave up",
    "SIGSYS": "it made a system call that is forbidden here",
    "SIGXCPU": "it used up the processor time that the system allows it",
}


class KillsBySystem:
    """Processes that the system has ended for want of memory: each explains one death of ours."""

    def __init__(self, count: Callable[[], int]) -> None:
        """`count`: how many there were so far, of whomever."""
        self._count = count
        self._nexplained = 0

    @property
    def nunexplained(self) -> int:
        """As a process starts: how many kills there were that are no death of ours."""
        return self._count() - self._nexplained

    def explains(self, nbefore: int) -> bool:
        """Whether a kill is left that may be the death of a process which started with so many."""
        if self.nunexplained <= nbefore:
            return False
        self._nexplained += 1
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The end of a process that was ours."""

    pid: int

    exit_code: int | None = None
    """As `subprocess` has it: negative is minus the signal's number.  None: nobody was told."""

    signal: str = ""
    """Name of the signal that ended it, such as `"SIGKILL"`; empty: none did."""

    memory_nbytes: int | None = None
    """Resident memory when it was last looked at; None: never."""

    memory_peak_nbytes: int | None = None
    """The most it ever had resident, as the system counts; None: not known."""

    memory_limit_nbytes: int = 0
    """What it was allowed; 0: no limit."""

    by_memory_limit: bool = False
    """We ended it, since it came too near to its limit."""

    by_system: bool = False
    """The system ended a process of our container, as there was no memory left for it."""

    last_lines: str = ""
    """What it wrote to stderr before it was ready."""

    @property
    def is_clean(self) -> bool:
        """Whether it ended by itself, and in good order."""
        return self.exit_code == 0

    def describe(self) -> str:
        """How it ended, in one sentence without a subject, capital or full stop.

        For example `"exit code 3"`, `"killed by SIGSEGV (native code crashed)"`, or `"killed at
        967.00 MiB, too near to its memory limit of 1.00 GiB"`.
        """
        if self.by_memory_limit:
            at = "" if self.memory_nbytes is None else f" at {format_nbytes(self.memory_nbytes)}"
            limit = format_nbytes(self.memory_limit_nbytes)
            is_above = (self.memory_nbytes or 0) > self.memory_limit_nbytes
            return (
                f"killed{at}, {'above' if is_above else 'too near to'} its memory limit of {limit}"
            )
        if self.exit_code is None:
            return "its exit code is not known, as the process that had started it ended before"
        if not self.signal:
            return f"exit code {self.exit_code}"
        why = _SIGNALS.get(self.signal, "")
        if self.by_system:
            why = "the system ended it, as its container had no memory left"
        if self.signal == "SIGKILL" and (memory := self._describe_memory()):
            why = f"{why}; {memory}"
        return f"killed by {self.signal}" + (f" ({why})" if why else "")

    @property
    def used_nbytes(self) -> int:
        """The most that is known of; 0: nothing is.

        What the system counts may be of its last moments only: a worker has it begin anew.
        """
        return max(self.memory_peak_nbytes or 0, self.memory_nbytes or 0)

    @property
    def for_memory_nbytes(self) -> int:
        """What it had, if that is what it was ended for; else 0."""
        return self.used_nbytes if self.by_memory_limit or self.by_system else 0

    def _describe_memory(self) -> str:
        """What it used, for who must guess whether memory was the reason."""
        if self.memory_peak_nbytes is None and self.memory_nbytes is None:
            return ""
        used = self.used_nbytes
        limit = self.memory_limit_nbytes
        of = f" of its limit of {format_nbytes(limit)}" if limit else ""
        return f"it had used up to {format_nbytes(used)}{of}"
