"""Values on their way through the scheduler, which opens none of them, and the futures in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from shoal.client.coordination.errors import ValueTooLarge
from shoal.client.current import enter, leave
from shoal.client.future import Future, pickled_are_noted
from shoal.ids import Key
from shoal.protocol.coordination import IsLocked
from shoal.protocol.keys import to_canonical
from shoal.protocol.payload import dump, load
from shoal.units import MIB

VALUE_BYTES_MAX: Final = 64 * MIB
"""Of one value, pickled: the scheduler keeps it until it is taken."""


class Packed:
    """A value in pieces, and what must not be let go of before the scheduler keeps it."""

    __slots__ = ("futures", "pieces")

    def __init__(self, what: str, value: object) -> None:
        """Pickle `value`.

        Args:
            what: what it is for, for errors.

        Raises:
            ValueTooLarge: it is data rather than a message.
            Exception: whatever pickle and then cloudpickle raise.
        """
        with pickled_are_noted() as futures:
            header, buffers = dump(value)
        self.futures: list[Future] = futures
        nbytes = len(header) + sum(memoryview(buffer).nbytes for buffer in buffers)
        if nbytes > VALUE_BYTES_MAX:
            raise ValueTooLarge(what, nbytes, VALUE_BYTES_MAX)
        self.pieces = [header, *(bytes(memoryview(buffer)) for buffer in buffers)]

    @property
    def keys(self) -> list[Key]:
        """Of the futures in it, each once."""
        return list(dict.fromkeys(to_canonical(future.key) for future in self.futures))


async def hear_of_futures(session: Any) -> None:
    """Be told how far the futures are that were just made: the scheduler answers in order."""
    await session.call(partial(IsLocked, name=""))


def unpack(client: Any, pieces: Sequence[bytes]) -> Any:
    """The value; futures in it are of `client`.

    Raises:
        BaseException: whatever the value's own code raises.
    """
    header, *buffers = pieces
    entered = enter(client)
    try:
        return load(header, [bytearray(piece) for piece in buffers])
    finally:
        leave(entered)
