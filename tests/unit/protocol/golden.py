"""Samples of every message, and the bytes that they had when they were last looked at.

`python -m tests.unit.protocol.golden` writes `messages.hex`; a change of that file is to be read:
a line that changed is a message that peers of other versions will misunderstand.
"""

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from shoal.protocol.codec import encode
from shoal.protocol.directions import SUBJECTS
from shoal.protocol.messages import Part
from shoal.protocol.streams import STREAM_WORDS

FILE = Path(__file__).with_name("messages.hex")


def classes() -> dict[str, type[msgspec.Struct]]:
    """Every message of the dictionary by its name, in the order of the tags, and each word of
    streams."""
    found = {kind.__name__: kind for subject in SUBJECTS for table in subject for kind in table}
    found |= {kind.__name__: kind for kind in typing.get_args(STREAM_WORDS)}
    return dict(sorted(found.items(), key=lambda item: item[1].__struct_config__.tag))


def least(kind: type[msgspec.Struct]) -> Any:
    """One with every default."""
    fields = msgspec.structs.fields(kind)
    return kind(
        **{field.name: sample(field.type, field.name) for field in fields if field.required}
    )


def full(kind: type[msgspec.Struct]) -> Any:
    """One with every field set, to something that is not its default."""
    values = {field.name: sample(field.type, field.name) for field in msgspec.structs.fields(kind)}
    for field in msgspec.structs.fields(kind):
        if field.default is True:
            values[field.name] = False
    return kind(**values)


def sample(kind: Any, name: str) -> Any:
    """A value of a type that is unlike that of other fields, and the same in every run."""
    kind = getattr(kind, "__supertype__", kind)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [sample(choice, name) for choice in alternatives(inner[0])]
    if origin is dict:
        return {sample(inner[0], name): sample(inner[1], name)}
    if origin is tuple:
        return tuple(sample(part, name) for part in inner)
    if origin in (types.UnionType, typing.Union):
        return sample(alternatives(kind)[0], name)
    if kind is Any:  # of what is shown to people only
        return name
    if kind is msgspec.Raw:
        return msgspec.Raw(msgspec.msgpack.encode(name))
    if isinstance(kind, type) and issubclass(kind, Part):
        return full(kind)
    simple = {int: len(name), float: len(name) + 0.5, bool: True, str: name, bytes: name.encode()}
    return simple[kind]


def alternatives(kind: Any) -> list[Any]:
    """The types of a union, None left out; the type itself if it is none."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return [part for part in typing.get_args(kind) if part is not type(None)]
    return [kind]


def lines() -> Iterator[tuple[str, str]]:
    """The name of each sample, and its bytes."""
    for name, kind in classes().items():
        yield f"{name}.least", encode([least(kind)]).hex()
        yield f"{name}.full", encode([full(kind)]).hex()


def read() -> dict[str, str]:
    """What the file says."""
    return dict(line.split() for line in FILE.read_text(encoding="ascii").splitlines())


if __name__ == "__main__":
    FILE.write_text("".join(f"{name} {said}\n" for name, said in lines()), encoding="ascii")
