"""Every text about actors that a user may see: what happened, why, and what to do."""

from __future__ import annotations

from shoal.errors import ShoalError


class AttributeStays(ShoalError, AttributeError):
    """Somebody sets an attribute of an actor from outside."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind)
        self.name, self.kind = name, kind

    def __str__(self) -> str:
        return (
            f"The attribute {self.name!r} of the actor {self.kind} can't be set from here: it "
            "would be set on this proxy alone.\nGive the class a method that sets it."
        )


class NoActorAttribute(ShoalError, AttributeError):
    """The class of an actor has no such attribute."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind)
        self.name, self.kind = name, kind

    def __str__(self) -> str:
        return (
            f"type object {self.kind!r} has no attribute {self.name!r}. An actor shows what its "
            "class names: methods, properties, class attributes and annotations. Name it there if "
            "it is set in __init__ only."
        )


class CallStays(ShoalError, TypeError):
    """The future of a call to an actor is to be pickled."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"The future of the call {self.key!r} belongs to whoever called, so that it can't be "
            "pickled.\nPass it to submit or map as an argument, or pass its result."
        )


class NobodyCalls(ShoalError, RuntimeError):
    """There is neither a client nor a worker by way of which an actor could be called."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"The actor {self.key!r} can't be called: there is no client here, and this is not "
            "part of a task.\nConnect a client first: Client(address)."
        )


class CallCutShort(ShoalError, ConnectionError):
    """The connection broke during a call, and the actor is there as before."""

    def __init__(self, key: str, worker: str, why: str) -> None:
        """`why`: how the connection ended, as a clause."""
        super().__init__(key, worker, why)
        self.key, self.worker, self.why = key, worker, why

    def __str__(self) -> str:
        return (
            f"The connection to the actor {self.key!r} on {self.worker} ended during a call: "
            f"{self.why.rstrip('.')}.\nThe actor is there as before, but whether the call was made "
            "nobody can tell. Call it again, if that does no harm."
        )


class CallerGone(ShoalError, ConnectionError):
    """The client or worker by way of which an actor was called has ended."""

    def __init__(self, key: str, why: str = "") -> None:
        """`why`: as a clause, if there is more to say."""
        super().__init__(key, why)
        self.key, self.why = key, why

    def __str__(self) -> str:
        why = f" ({self.why.rstrip('.')})" if self.why else ""
        return (
            f"A call to the actor {self.key!r} was given up, as the client or worker by way of "
            f"which it was made has ended{why}.\nWhether it was made nobody can tell. Make it "
            "again by way of one that runs, if that does no harm."
        )


class ActorSilent(ShoalError, TimeoutError):
    """A call to an actor has not ended in time."""

    def __init__(self, key: str, seconds: float) -> None:
        super().__init__(key, seconds)
        self.key, self.seconds = key, seconds

    def __str__(self) -> str:
        return (
            f"The call {self.key!r} has not ended within {self.seconds:g} s. It goes on; ask its "
            "future again, or give it more time."
        )
