"""A scheduler is killed while workers hold results, and started again: what is computed twice?"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import shoal
from tests.cluster.commands import FACES, Command, environment

SECONDS_MAX = 120


def noted(number: int, marks: str) -> int:
    """A result, of which it is noted that it was computed."""
    with open(marks, "ab", buffering=0) as file:
        file.write(b"x")
    return number * number


def slowly_noted(number: int, marks: str, begun: str, gate: str) -> int:
    """The same; whoever reads from `begun` is told, and whoever writes to `gate` lets it end."""
    result = noted(number, marks)
    with open(begun, "w") as told:
        told.write("begun")
    with open(gate) as waiting:
        waiting.read()
    return result


def ncomputed(marks: str) -> int:
    """How often anything was computed."""
    return os.stat(marks).st_size if os.path.exists(marks) else 0


class Site:
    """A scheduler and workers with nannies, as commands in a home of their own."""

    def __init__(self, stack: ExitStack, home: Path, nworkers: int) -> None:
        self._stack, self._home = stack, home
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        self.address = self.scheduler.line()
        self.workers = self._start(
            "worker", self.address, "--nworkers", str(nworkers), "--nthreads", "1"
        )
        for _ in range(nworkers):
            self.workers.line()

    def _start(self, *arguments: str) -> Command:
        command = Command(FACES["shoal"], arguments, self._home)
        self._stack.callback(command.kill)
        return command

    def kill_scheduler(self) -> None:
        """SIGKILL."""
        self.scheduler.signal(signal.SIGKILL)
        self.scheduler.end()

    def start_scheduler(self) -> None:
        """Another one at the same address."""
        port = self.address.rpartition(":")[2]
        self.scheduler = self._start("scheduler", "--port", port, "--no-dashboard")
        assert self.scheduler.line() == self.address

    def end(self) -> list[str]:
        """End all that runs; lines that were said on stderr, but for those of a slow start."""
        said: list[str] = []
        for command in (self.workers, self.scheduler):
            command.signal(signal.SIGTERM)
            said += command.end()[1].splitlines()
        return [line for line in said if not line.endswith("still looking.")]


@contextmanager
def site(home: Path, nworkers: int = 2) -> Iterator[Site]:
    """A site, and this process in its home."""
    with environment(home), ExitStack() as stack:
        yield Site(stack, home, nworkers)


@dataclass(frozen=True)
class Restart:
    """What it came to."""

    nresults: int
    nright: int
    nagain: int  # computed more than once
    seconds: float  # from the start of the second scheduler until all results were there
    said: str  # on stderr, by the commands


def restart(nresults: int, home: Path) -> Restart:
    """So many results are held when the scheduler is killed; another client asks for them again."""
    marks = str(home / "marks")
    with site(home) as place, shoal.Client(place.address) as before:
        futures = before.map(noted, range(nresults), marks=marks)
        shoal.wait(futures, timeout=SECONDS_MAX)
        assert ncomputed(marks) == nresults
        place.kill_scheduler()
        started_at = time.monotonic()
        place.start_scheduler()
        with shoal.Client(place.address, set_as_default=False) as after:
            again = after.map(noted, range(nresults), marks=marks)
            shoal.wait(again, timeout=SECONDS_MAX)
            seconds = time.monotonic() - started_at
            results = after.gather(again)
        nright = sum(result == number**2 for number, result in enumerate(results))
        said = place.end()
        return Restart(nresults, nright, ncomputed(marks) - nresults, seconds, "\n".join(said))
