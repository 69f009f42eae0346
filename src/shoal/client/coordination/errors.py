"""Errors of coordination that a user may see: what happened, why, and what to do."""

from shoal.errors import ShoalError


class NotHeld(ShoalError, RuntimeError):
    """Something was released by an object that doesn't hold it."""

    def __init__(self, kind: str, name: str) -> None:
        """`kind`: the class of the object, e.g. "Lock"."""
        super().__init__(kind, name)
        self.kind, self.name = kind, name

    def __str__(self) -> str:
        return (
            f"The {self.kind.lower()} {self.name!r} was released too often: this {self.kind} "
            "object does not hold it.\n"
            "Release it once for each acquire that returned True, by the object that was asked."
        )


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
