"""Errors of clusters that a user may see: what happened, why, and what to do."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from shoal.errors import ShoalError


def ending_of(exit_code: int | None) -> str:
    """How a process ended, for people: `"exit code 3"`, `"killed by SIGKILL"`."""
    if exit_code is None:
        return "it is still running"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


class ProcessDied(ShoalError, RuntimeError):
    """A process of the cluster ended before it was ready."""

    def __init__(self, what: str, exit_code: int | None, last_lines: str) -> None:
        """`what`: "the scheduler", "worker 0"; `last_lines`: what it wrote to stderr."""
        super().__init__(what, exit_code, last_lines)
        self.what, self.exit_code, self.last_lines = what, exit_code, last_lines

    def __str__(self) -> str:
        said = f" It wrote:\n{self.last_lines}" if self.last_lines else " It wrote nothing."
        if self.exit_code is not None and self.exit_code < 0:
            return (
                f"The process of {self.what} was {ending_of(self.exit_code)} before it was "
                f"ready.{said}\n"
                "Somebody ended it, or the system did because memory ran out (SIGKILL), or native "
                "code crashed (SIGSEGV, SIGABRT). Start it again: cluster.scale(n), or a new "
                "cluster with fewer workers if memory is short."
            )
        return (
            f"Cluster failed to start: the process of {self.what} ended before it was ready "
            f"({ending_of(self.exit_code)}).{said}\n"
            "It runs the same interpreter as this one and imports only shoal, so look for what "
            "differs there: environment variables, limits on memory or processes, a module that "
            "shadows another; or use LocalCluster(processes=False)."
        )


class ProcessLate(ShoalError, TimeoutError):
    """A process of the cluster did not become ready in time."""

    def __init__(self, what: str, timeout_seconds: float, last_lines: str) -> None:
        """`what`: "the scheduler", "worker 0"; `last_lines`: what it wrote to stderr."""
        super().__init__(what, timeout_seconds, last_lines)
        self.what, self.timeout_seconds, self.last_lines = what, timeout_seconds, last_lines

    def __str__(self) -> str:
        said = f" It wrote:\n{self.last_lines}" if self.last_lines else ""
        return (
            f"Cluster failed to start: the process of {self.what} was not ready after "
            f"{self.timeout_seconds:g} s.{said}\n"
            "The machine may be overloaded, or the interpreter slow to load from a network disk; "
            "allow more time with dask.config.set({'distributed.comm.timeouts.connect': '120s'})."
        )


class ClusterClosed(ShoalError, RuntimeError):
    """A cluster was asked for something after its end."""

    def __init__(self, name: str, status: str) -> None:
        super().__init__(name, status)
        self.name, self.status = name, status

    def __str__(self) -> str:
        return (
            f"The cluster {self.name!r} is {self.status}, so it can't do this. "
            "Make a new one to go on."
        )


class WrongWith(ShoalError, TypeError):
    """`with` was used on a cluster that needs `async with`, or the other way round."""

    def __init__(self, kind: str, *, asynchronous: bool) -> None:
        super().__init__(kind)
        self.kind, self.asynchronous = kind, asynchronous

    def __reduce__(self) -> tuple[object, ...]:
        return (_wrong_with, (self.kind, self.asynchronous))

    def __str__(self) -> str:
        if self.asynchronous:
            return (
                f"Used 'with' with asynchronous class; please use 'async with': this {self.kind} "
                "was made with asynchronous=True, so it starts and ends on the event loop."
            )
        return (
            f"Used 'async with' with a blocking {self.kind}; please use 'with', or make it with "
            "asynchronous=True."
        )


def _wrong_with(kind: str, asynchronous: bool) -> WrongWith:
    return WrongWith(kind, asynchronous=asynchronous)


class UnknownOptions(ShoalError, TypeError):
    """A cluster was given keyword arguments that neither it nor its workers have."""

    def __init__(self, names: Sequence[str], near: Sequence[str]) -> None:
        """`near`: options that exist and are spelt like the unknown ones."""
        super().__init__(list(names), list(near))
        self.names, self.near = list(names), list(near)

    def __str__(self) -> str:
        meant = f" Did you mean {', '.join(self.near)}?" if self.near else ""
        return (
            f"Unexpected keyword arguments: {', '.join(self.names)}. Neither LocalCluster nor its "
            f"workers know them.{meant}"
        )


class NotPlain(ShoalError, TypeError):
    """An option of a worker or scheduler can't be sent to another process."""

    def __init__(self, option: str, value_type: str) -> None:
        super().__init__(option, value_type)
        self.option, self.value_type = option, value_type

    def __str__(self) -> str:
        return (
            f"The option {self.option} is a {self.value_type}, and options of services in "
            "processes of their own are plain: numbers, texts, lists and mappings. Use "
            "LocalCluster(processes=False) to pass objects."
        )
