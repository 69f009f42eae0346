"""What two ends of a free-standing connection say: whole messages of programs, in parcels.

These are said between ends that users made themselves (`distributed.comm.connect` and `listen`),
never between a scheduler, workers and clients; so they are no subject, and no role's decoder takes
them.  Tags 305 to 307.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Parcel(msgspec.Struct, array_like=True, tag=305, frozen=True):
    """One message; its frames are the buffers that follow."""


class Handed(msgspec.Struct, array_like=True, tag=306, frozen=True):
    """One message within a process, by reference.  No socket carries it."""

    value: Any


class Taken(msgspec.Struct, array_like=True, tag=307, frozen=True):
    """The program has read so many bytes of messages since it last said so."""

    nbytes: int


ON_SOCKETS: Final = Parcel | Taken
"""What a peer may say on a socket."""
