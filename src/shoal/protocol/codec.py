"""Messages to the body of a frame and back.

A message is a ``msgspec.Struct(array_like=True, tag=<int>)``; a body is a msgpack array of them.
What a peer may say is a union of such types, made into a Decoder once per role.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from shoal.protocol.framing import ProtocolError

_encode: Final = msgspec.msgpack.Encoder().encode


def encode(messages: Sequence[msgspec.Struct]) -> bytes:
    """The body of a frame that carries `messages`, in their order.

    Raises:
        TypeError: a field holds something that msgpack cannot express.

    Cost: about 0.15 us for one message, 0.03 us for each further one.
    """
    return _encode(messages)


class Decoder:
    """Reads bodies whose messages all belong to one union of Struct types.

    Args:
        union: one Struct type, or a union of several with different tags.
        last_word: makes the message that tells a peer why it is not understood.
    """

    __slots__ = ("_decode", "_last_word")

    def __init__(
        self, union: Any, last_word: Callable[[str], msgspec.Struct] | None = None
    ) -> None:
        self._last_word = last_word
        self._decode: Callable[[bytes | memoryview], list[msgspec.Struct]]
        self._decode = msgspec.msgpack.Decoder(list[union]).decode

    def decode(self, body: bytes | memoryview) -> list[msgspec.Struct]:
        """All messages of one body.  Cost: 0.1 to 0.2 us for one message, less in a batch.

        Raises:
            ProtocolError: the body is not msgpack, has an unknown tag, or a field of a wrong
                type; the text says which, as a path such as ``$[2][0]``.
        """
        try:
            return self._decode(body)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
            refused = ProtocolError(
                f"A frame of {len(body):,} bytes holds something that this side does not "
                f"understand: {error}. Nothing of it was used. If the peer is trusted, the two "
                "run different versions of shoal: install the same one on both sides."
            )
            if self._last_word is not None:
                refused.last_word = self._last_word(str(refused))
            raise refused from error
