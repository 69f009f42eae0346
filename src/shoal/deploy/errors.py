"""Errors of clusters that a user may see: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ShoalError


class ClusterClosed(ShoalError, RuntimeError):
    """A cluster was asked for something after its end."""

    def __init__(self, name: str, status: str, why: str = "") -> None:
        """`why`: how its scheduler ended, if that was the reason."""
        super().__init__(name, status, why)
        self.name, self.status, self.why = name, status, why

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return (
            f"The cluster {self.name!r} is {self.status}, so it can't do this{why}. "
            "Make a new one to go on."
        )


class SchedulerNotStarted(ShoalError, RuntimeError):
    """The process of a scheduler did not become one."""

    def __init__(self, why: str) -> None:
        """`why`: in the words of what kept it from that."""
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"Scheduler failed to start: {self.why}"


class CannotScale(ShoalError, NotImplementedError):
    """A kind of cluster has no way to change how many workers it has."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        return (
            f"A {self.kind} can't be scaled: it does not say how workers are started. Use a "
            "LocalCluster or a SpecCluster, or give a class of your own a method scale(n)."
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


class SSHNotInstalled(ShoalError, ImportError):
    """A cluster over SSH needs a library that is not there."""

    def __init__(self, why: str) -> None:
        """`why`: in Python's words."""
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"Clusters over SSH need asyncssh ({self.why}). Run: pip install 'shoal[ssh]'"


class HostFailed(ShoalError, RuntimeError):
    """A host did not run what a cluster wants to have there."""

    def __init__(self, host: str, what: str, why: str, remedy: str) -> None:
        """`what` was to run, `why` it does not, and what to do."""
        super().__init__(host, what, why, remedy)
        self.host, self.what, self.why, self.remedy = host, what, why, remedy

    def __str__(self) -> str:
        why = self.why if self.why.endswith((".", "\n")) else f"{self.why}. "
        return f"Host {self.host!r} does not run {self.what}: {why.rstrip(' ')} {self.remedy}"


class HostsFailed(ShoalError, RuntimeError):
    """Several hosts did not run what a cluster wants to have there."""

    def __init__(self, failures: Sequence[HostFailed]) -> None:
        """`failures`: of each host, in their order."""
        super().__init__(list(failures))
        self.failures = list(failures)

    def __str__(self) -> str:
        return "\n".join(map(str, self.failures))


class HostsMissing(ShoalError, ValueError):
    """A cluster over SSH was given too few hosts."""

    def __init__(self, hosts: object) -> None:
        super().__init__(hosts)
        self.hosts = hosts

    def __str__(self) -> str:
        return (
            "hosts= is a list of two or more: the scheduler's host, then one for the workers of "
            f"each other host; a host may stand in it several times. It is {self.hosts!r}."
        )


class ListsDiffer(ShoalError, RuntimeError):
    """An option of a cluster has a value for each host, but not as many as there are hosts."""

    def __init__(self, option: str, nvalues: int, nhosts: int) -> None:
        super().__init__(option, nvalues, nhosts)
        self.option, self.nvalues, self.nhosts = option, nvalues, nhosts

    def __str__(self) -> str:
        return (
            f"{self.option}= is a list of {self.nvalues} for {self.nhosts} hosts: give one for "
            "each host, the scheduler's first, or a single one for all."
        )
