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
