"""The codec between the actors, in runs that ask for it: then nothing but bytes is shared."""

from collections.abc import Sequence
from typing import Final, cast

from shoal.protocol.codec import Decoder, encode
from shoal.protocol.directions import (
    ClientToScheduler,
    SchedulerToClient,
    SchedulerToWorker,
    WorkerToScheduler,
)
from shoal.protocol.messages import Message

FROM_CLIENT: Final = Decoder(ClientToScheduler)
TO_CLIENT: Final = Decoder(SchedulerToClient)
FROM_WORKER: Final = Decoder(WorkerToScheduler)
TO_WORKER: Final = Decoder(SchedulerToWorker)


def through(decoder: Decoder, messages: Sequence[Message]) -> list[Message]:
    """The messages as the other side reads them.

    Raises:
        ProtocolError: the other side would not understand them.
    """
    return cast("list[Message]", decoder.decode(encode(messages)))
