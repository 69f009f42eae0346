"""What a command may tell its user: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

import click

from shoal.errors import ShoalError


class BadUsage(click.ClickException):
    """The command line makes no sense: one line, and exit code 2."""

    exit_code = 2

    def __init__(self, command: str, problem: str) -> None:
        """`command`: as it was called, such as "dask worker"."""
        super().__init__(problem)
        self.command = command

    def format_message(self) -> str:
        """The line, without the word that comes first."""
        problem = " ".join(self.message.split())
        stop = "" if problem.endswith((".", "?", ")")) else "."
        return f"{problem}{stop} See: {self.command} --help"

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the line."""
        click.echo(f"{self.command}: {self.format_message()}", file=file, err=file is None)


class NoSuchSetting(click.ClickException):
    """No setting has the word in its name that was asked for; exit code 1."""

    def __init__(self, word: str, near: Sequence[str]) -> None:
        """`near`: names that are written much like it."""
        super().__init__(word)
        self.word, self.near = word, list(near)

    def format_message(self) -> str:
        """The line, without the word that comes first."""
        advice = (
            f"Did you mean {' or '.join(self.near)}?"
            if self.near
            else "`shoal config` without a word shows all."
        )
        return f"No setting has {self.word!r} in its name. {advice}"


class NoHostsNamed(ShoalError, ValueError):
    """A cluster over SSH was asked for without a word about where."""

    def __str__(self) -> str:
        return "On which hosts? Name them (host1 host2), or give --hostfile"


class NoSchedulerNamed(ShoalError, ValueError):
    """A worker was started without a word about its scheduler."""

    def __str__(self) -> str:
        return (
            "Which scheduler? Give its address (tcp://host:8786), or --scheduler-file, or set "
            "DASK_SCHEDULER_ADDRESS"
        )


class OptionsClash(ShoalError, ValueError):
    """Two options can't be given together."""

    def __init__(self, one: str, other: str, remedy: str) -> None:
        super().__init__(one, other, remedy)
        self.one, self.other, self.remedy = one, other, remedy

    def __str__(self) -> str:
        return f"{self.one} does not go with {self.other}. {self.remedy}"


class NotASpec(ShoalError, ValueError):
    """A text does not say what to start."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"This is no spec of services: {self.why}"


class NotEnoughPorts(ShoalError, ValueError):
    """Several workers are to share fewer ports."""

    def __init__(self, nports: int, nworkers: int) -> None:
        super().__init__(nports, nworkers)
        self.nports, self.nworkers = nports, nworkers

    def __str__(self) -> str:
        return (
            f"Not enough ports in range: {self.nworkers} workers can't share {self.nports}. Give "
            "--worker-port one for each worker, or leave it out."
        )


class CannotWrite(ShoalError, OSError):
    """A file that was asked for can't be written."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__()  # an OSError would take two arguments for errno and strerror
        self.path, self.why = path, why

    def __reduce__(self) -> tuple[type[CannotWrite], tuple[str, str]]:
        return type(self), (self.path, self.why)

    def __str__(self) -> str:
        return (
            f"Cannot write {self.path}: {self.why}. Name a folder that exists and that this user "
            "may write into."
        )


class NotInstalled(ShoalError, ImportError):
    """A command needs packages that are not there."""

    def __init__(self, command: str, missing: Sequence[str], packages: Sequence[str]) -> None:
        """`missing`: what can't be imported; `packages`: as pip knows them."""
        super().__init__(command, list(missing), list(packages))
        self.command, self.missing, self.packages = command, list(missing), list(packages)

    def __str__(self) -> str:
        return (
            f"{self.command} needs what is not installed ({', '.join(self.missing)}). Run: "
            f"pip install {' '.join(self.packages)}"
        )


class AnswersDiffer(ShoalError, AssertionError):
    """The cluster and pandas don't find the same."""

    def __init__(self, how: str) -> None:
        """`how`: in pandas' words."""
        super().__init__(how)
        self.how = how

    def __str__(self) -> str:
        return (
            "What the cluster computed is not what pandas finds by itself. This is an error in "
            f"shoal or in Dask; please report it with your versions of both.\n{self.how}"
        )


class SchedulerAbsent(ShoalError, TimeoutError):
    """A worker's scheduler did not show up in time."""

    def __init__(self, where: str, timeout_seconds: float) -> None:
        """`where`: the scheduler file."""
        super().__init__(where, timeout_seconds)
        self.where, self.timeout_seconds = where, timeout_seconds

    def __str__(self) -> str:
        return (
            f"No scheduler wrote its address to {self.where} within {self.timeout_seconds:g} s. "
            "Start one with the same --scheduler-file, on a file system that both see; or wait "
            "longer with --death-timeout."
        )


class UnusableFolder(ShoalError, ValueError):
    """A folder for the files of tasks can't be made, or not be written into."""

    def __init__(self, folder: str, why: str) -> None:
        """`why`: in the system's words."""
        super().__init__(folder, why)
        self.folder, self.why = folder, why

    def __str__(self) -> str:
        return (
            f"Cannot write into {self.folder}: {self.why}. Name a folder that this user may make "
            "and write into."
        )
