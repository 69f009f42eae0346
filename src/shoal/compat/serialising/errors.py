"""What can go wrong as values are serialised the old way."""

from __future__ import annotations

from typing import Any

from shoal.errors import ShoalError
from shoal.protocol.framing import ProtocolError


class CannotSerialize(ShoalError, TypeError):
    """No family of those that were named could make bytes of a value."""

    def __init__(self, kind: str, shown: str) -> None:
        """`kind`: its type; `shown`: the value as text.  Both are `args`, as they always were."""
        super().__init__(f"Could not serialize object of type {kind}", shown)
        self.kind, self.shown = kind, shown

    def __reduce__(self) -> tuple[Any, ...]:
        return CannotSerialize, (self.kind, self.shown)

    def __str__(self) -> str:
        return (
            f"Could not serialize object of type {self.kind}: {self.shown}\n"
            "Register a serializer for it (register_serialization), or allow the family 'pickle'."
        )


class CannotSpill(ShoalError, TypeError):
    """A mapping that spills can't pickle a value, which is too large for memory."""

    def __init__(self, key: object, kind: str, why: str) -> None:
        """`kind`: its type; `why`: what pickle says."""
        super().__init__(key, kind, why)
        self.key, self.kind, self.why = key, kind, why

    def __str__(self) -> str:
        return (
            f"Failed to pickle {self.key!r}, a {self.kind}: {self.why}\n"
            "What can't be pickled can't be kept on disk: keep less of it, or let memory be larger."
        )


class NotPlain(ProtocolError):
    """A message from somebody who has not proved who it is held more than plain values."""

    def __str__(self) -> str:
        return (
            "a peer that has not proved yet who it is sent a pickle, which was not read. "
            "If it is a program of yours, let both ends use the same version of shoal."
        )
