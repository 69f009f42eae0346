"""What can be wrong with a way to serialise."""

from __future__ import annotations

from typing import Any

from shoal.errors import ShoalError


class NamedByText(ShoalError, TypeError):
    """A type was registered by its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"A serializer was registered for the text {self.name!r}, and not for a type.  For "
            "types of a library that may never be imported, register a function that registers "
            f'them:\n    @dask_serialize.register_lazy("{self.name.partition(".")[0]}")'
        )


class NoDeserializer(ShoalError, TypeError):
    """Nobody here can make a value of what a registered serializer made of it."""

    def __init__(self, kind: str, why: str = "") -> None:
        """`kind`: the value's type; `why`: what hindered its deserializer from coming along."""
        super().__init__(kind, why)
        self.kind, self.why = kind, why

    def __str__(self) -> str:
        hindrance = f" The sender's could not be brought along: {self.why}." if self.why else ""
        return (
            f"A {self.kind} came here by a serializer that was registered for its type, and this "
            f"process has no deserializer for it.{hindrance}  Register one where the type is "
            "defined, so that whoever imports it knows it: register_serialization(cls, "
            "serialize, deserialize)."
        )


class NotBytes(ShoalError, TypeError):
    """A registered serializer answered with something else than a header and frames."""

    def __init__(self, kind: str, answer: Any) -> None:
        """`kind`: the value's type; `answer`: what came, or its repr."""
        answer = answer if isinstance(answer, str) else repr(answer)[:200]
        super().__init__(kind, answer)
        self.kind, self.answer = kind, answer

    def __str__(self) -> str:
        return (
            f"The serializer that is registered for {self.kind} returned {self.answer}, which is "
            "not (header, frames): a dict, and a list of bytes-like objects."
        )


class NotReadOnly(ShoalError, TypeError):
    """An open file was to travel that may be written to."""

    def __init__(self, form: str, path: str) -> None:
        """`form`: what kind of file; `path`: which."""
        super().__init__(form, path)
        self.form, self.path = form, path

    def __str__(self) -> str:
        return (
            f"{self.path!r} can't travel: it is an open {self.form} file that may be written to, "
            "and several processes can't write to one.  Open it with mode='r', or open it inside "
            "of the task."
        )


class FamilyNotAllowed(ShoalError, TypeError):
    """A value came by a family that its reader does not accept."""

    def __init__(self, name: str, allowed: list[str]) -> None:
        super().__init__(name, allowed)
        self.name, self.allowed = name, allowed

    def __str__(self) -> str:
        return (
            f"Data serialized with {self.name} but only able to deserialize data with "
            f"{self.allowed}.  Name it in deserializers=, or have the sender use one of those."
        )


class NoSuchFamily(ShoalError, ValueError):
    """A family was named that nobody registered."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return (
            f"There is no family {self.name!r} here, only {self.known}.  Register it in every "
            "process that writes or reads with it: register_serialization_family(name, dumps, "
            "loads)."
        )


class NoneOfTheFamilies(ShoalError, TypeError):
    """None of the families that were named can write a value."""

    def __init__(self, kind: str, names: list[str]) -> None:
        """`kind`: the value's type; `names`: of the families that were asked."""
        super().__init__(kind, names)
        self.kind, self.names = kind, names

    def __str__(self) -> str:
        return (
            f"Could not serialize object of type {self.kind} with {self.names}.  Register a "
            "serializer for it (register_serialization), or name the family 'pickle' as well."
        )
