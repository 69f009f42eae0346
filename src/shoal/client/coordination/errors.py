"""Errors of coordination that a user may see: what happened, why, and what to do."""

from shoal.client.errors import NoClient
from shoal.errors import ShoalError
from shoal.units import format_nbytes


class NotBound(NoClient, RuntimeError):
    """Something that is known by its name is used where there is no client to ask."""

    def __str__(self) -> str:
        return f"{self.what} is not properly initialized here. {NoClient(why=self.why)}"


class NotHeld(ShoalError, RuntimeError):
    """Something was released by an object that doesn't hold it."""

    def __init__(self, kind: str, name: str) -> None:
        """`kind`: the class of the object, e.g. "Lock"."""
        super().__init__(kind, name)
        self.kind, self.name = kind, name

    def __str__(self) -> str:
        return (
            f"Released too often: this {self.kind} object does not hold the "
            f"{self.kind.lower()} {self.name!r}.\n"
            "Release it once for each acquire that returned True, by the object that was asked."
        )


class NotLocked(NotHeld, ValueError):
    """As NotHeld, of several names at once."""


class NotAwaited(ShoalError, TypeError):
    """A `with` on something whose client is asynchronous, so that it can't wait for it."""

    def __init__(self, kind: str, name: str) -> None:
        """`kind`: the class of the object, e.g. "Lock"."""
        super().__init__(kind, name)
        self.kind, self.name = kind, name

    def __str__(self) -> str:
        kind = self.kind.lower()
        return (
            f"`with` can't wait for the {kind} {self.name!r}, since its client is asynchronous: "
            f"the block would have begun without it.\nWrite `async with {kind}:` instead."
        )


class NothingCame(ShoalError, TimeoutError):
    """What was waited for did not come in time: a value, or room for one."""

    def __init__(self, what: str, seconds: float) -> None:
        """`what`: e.g. "value in the queue 'x'"."""
        super().__init__()  # an OSError would take two arguments for errno and strerror
        self.what, self.seconds = what, seconds

    def __reduce__(self) -> tuple[type["NothingCame"], tuple[str, float]]:
        return type(self), (self.what, self.seconds)

    def __str__(self) -> str:
        return (
            f"There was no {self.what} within {self.seconds:g} s.\n"
            "client.coordination_info() shows what is there, and who waits."
        )


class QueueClosed(ShoalError, RuntimeError):
    """A queue was closed by the client that waited for it."""

    def __init__(self, what: str, name: object) -> None:
        """`what`: was waited for, e.g. "value"."""
        super().__init__(what, name)
        self.what, self.name = what, name

    def __str__(self) -> str:
        return (
            f"The queue {self.name!r} was closed by this client while it waited for a {self.what} "
            "there.\nClose a queue once none of the client's threads and tasks waits for it."
        )


class ValueTooLarge(ShoalError, ValueError):
    """A value that the scheduler would have to keep, and that is data rather than a message."""

    def __init__(self, what: str, nbytes: int, nbytes_max: int) -> None:
        """`what`: e.g. "queue 'x'"."""
        super().__init__(what, nbytes, nbytes_max)
        self.what, self.nbytes, self.nbytes_max = what, nbytes, nbytes_max

    def __str__(self) -> str:
        return (
            f"A value for the {self.what} has {format_nbytes(self.nbytes)} when pickled, but the "
            f"scheduler, which keeps it, takes no more than {format_nbytes(self.nbytes_max)}.\n"
            "Leave it with a worker, and hand over its future: client.scatter(value)."
        )
