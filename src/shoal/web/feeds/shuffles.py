"""What the page shows of shuffles whose outputs are not all made: how far, how fast, how even."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from shoal.protocol.keys import to_text
from shoal.scheduler.model.shuffles import Shuffle

SHUFFLES_MAX: Final = 20
"""That have a row: the newest."""

SHUFFLES_LOOKED_AT_MAX: Final = 2_000


def shuffle_columns(shuffles: dict[str, Shuffle]) -> dict[str, list[Any]]:
    """One entry of each column for each shuffle, the newest first.

    Cost: O(input and output partitions) of those shown.
    """
    newest = islice(reversed(shuffles.values()), SHUFFLES_LOOKED_AT_MAX)
    rows = list(islice((shuffle for shuffle in newest if shuffle.is_active), SHUFFLES_MAX))
    return {
        "name": [to_text(shuffle.barrier.key) for shuffle in rows],
        "ninputs": [shuffle.ninputs for shuffle in rows],
        "nmade": [shuffle.nmade for shuffle in rows],
        "noutputs": [shuffle.noutputs for shuffle in rows],
        "njoined": [shuffle.njoined for shuffle in rows],
        "in_bytes": [shuffle.made_nbytes for shuffle in rows],
        "disk_bytes": [shuffle.disk_nbytes for shuffle in rows],
        "out_bytes": [shuffle.joined_nbytes for shuffle in rows],
        "bytes_per_second": [round(shuffle.bytes_per_second) for shuffle in rows],
        "skew": [round(shuffle.skew, 2) for shuffle in rows],
        "nagain": [max(0, shuffle.nepochs - 1) for shuffle in rows],
    }
