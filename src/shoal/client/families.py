"""Which families of serialisation one client writes and reads, if its user named them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.protocol.messages import TaskInMemory
from shoal.protocol.payload import Guarded, dump_function
from shoal.protocol.ways import dumps_named, named_families


class Families:
    """Names of families in the order in which they are asked; None: the usual ones."""

    __slots__ = ("read", "written")

    def __init__(self) -> None:
        self.written: Sequence[str] | None = None
        self.read: Sequence[str] | None = None

    def name(self, serializers: Any, deserializers: Any) -> None:
        """Take what the user named; who names none to read by reads by those to write by.

        Raises:
            TypeError: that is no list of texts.
        """
        if serializers is None and deserializers is None:
            return
        self.written = named_families(serializers)
        self.read = self.written if deserializers is None else named_families(deserializers)

    def pickled(self, value: object) -> bytes:
        """A value as one stream.

        Raises:
            Exception: whatever pickle and then cloudpickle raise, or a family does.
        """
        if self.written is not None:
            stream = dumps_named(value, self.written, lambda buffer: True, [])
            if stream is not None:
                return stream
        return dump_function(value)

    def guard(self, header: bytes) -> bytes:
        """The header of a value, which then is loaded only if it may be."""
        return header if self.read is None else Guarded.of(header, self.read)

    def guard_news(self, messages: list[Any]) -> list[Any]:
        """Messages for the machine, with the values that came along guarded."""
        return [
            msgspec.structs.replace(message, value=self.guard(message.value))
            if type(message) is TaskInMemory and message.value is not None
            else message
            for message in messages
        ]
