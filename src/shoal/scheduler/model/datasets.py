"""A value that is published under a name, and what keeps the results that it refers to."""

from typing import Final

from shoal.ids import Key
from shoal.protocol.keys import to_text

KEEPER_PREFIX: Final = "published-"


class Dataset:
    """A published value."""

    __slots__ = ("name", "payload")

    def __init__(self, name: Key, payload: bytes) -> None:
        self.name = name
        self.payload = payload

    @property
    def keeper(self) -> str:
        """In whose name its results are kept; see `keeping.py`."""
        return keeper_of(self.name)

    def __repr__(self) -> str:
        return f"<Dataset {to_text(self.name)!r}: {len(self.payload)} B>"


def keeper_of(name: Key) -> str:
    """In whose name the results of a dataset are kept; not of its text, which others may have."""
    return KEEPER_PREFIX + name
