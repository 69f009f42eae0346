"""What messages of one kind have in common: which way each is said, and what answers it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

UNANSWERED: Final = "unanswered"
"""In place of an answer: nobody awaits one."""

Said = Mapping[type[msgspec.Struct], Any]
"""Message -> the type of the value of its Answer, or the message that answers it, or UNANSWERED."""

NOTHING: Final[Said] = {}


class Subject(NamedTuple):
    """The messages of one file, by direction; `directions.py` has the list of all subjects."""

    from_client: Said = NOTHING  # to the scheduler
    to_client: Said = NOTHING  # from the scheduler
    from_worker: Said = NOTHING  # to the scheduler
    to_worker: Said = NOTHING  # from the scheduler
    from_peer: Said = NOTHING  # to a worker, from another one or from a client
    to_peer: Said = NOTHING  # from a worker, back to that one
