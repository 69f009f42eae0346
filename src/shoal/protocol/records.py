"""Records of a file that is only ever appended to: to bytes, and back, whatever became of those.

A file begins with `MAGIC`, which names its format.  A record is ``<4sIQI`` (mark, length of the
body, its number in the file, CRC-32 of number and body), then the body.  What is written between
two syncs is one record, so what a crash may leave is one that is torn, and nothing after it.
"""

import struct
import zlib
from typing import Final, NamedTuple

FORMAT: Final = 1
"""Of records and of what is in them; raised when something can't be read any more by what was
made for the format before."""

_TITLE: Final = b"shoal journal "
MAGIC: Final = _TITLE + b"%4d\n" % FORMAT

_MARK: Final = b"\xa7rec"
_HEADER: Final = struct.Struct("<4sIQI")
_NUMBER: Final = struct.Struct("<Q")

NBYTES_MAX: Final = (1 << 32) - 1
"""Of one body."""


class Reading(NamedTuple):
    """What a file says, as far as it can be trusted."""

    bodies: list[memoryview]
    nbytes: int
    """Up to the end of the last record that is whole, from the beginning of the file."""
    ntorn: int
    """Bytes of a record that was being written as its writer ended; nothing follows it."""
    nlost: int
    """Bytes from a damaged record on, where others follow that are whole."""
    nrecords_lost: int
    """Of those that follow it."""


def format_of(start: bytes | memoryview) -> int | None:
    """The format that a file begins to tell; None if it is no journal.

    Args:
        start: at least as many bytes as MAGIC has; fewer are no journal.
    """
    head = bytes(start[: len(MAGIC)])
    number = head[len(_TITLE) : -1].strip()
    if len(head) == len(MAGIC) and head.startswith(_TITLE) and number.isdigit():
        return int(number)
    return None


def to_record(number: int, body: bytes) -> bytes:
    """The record of this body.

    Args:
        number: one more than that of the record before it; that of the first is 0.

    Raises:
        ValueError: the body is too long.
    """
    if len(body) > NBYTES_MAX:
        raise ValueError(f"a record has at most {NBYTES_MAX:,} bytes, not {len(body):,}")
    return _HEADER.pack(_MARK, len(body), number, _check_sum(number, body)) + body


def read_records(whole: bytes | memoryview) -> Reading:
    """All records of a file that begins with MAGIC, up to the first that is not as it was written.

    Cost: 1 ms for each MB; where there is damage, a look at all that follows.
    """
    view = memoryview(whole)
    bodies: list[memoryview] = []
    at = min(len(MAGIC), view.nbytes)
    while at < view.nbytes:
        body = _record_at(view, at, len(bodies))
        if body is None:
            break
        bodies.append(body)
        at += _HEADER.size + body.nbytes
    nleft = view.nbytes - at
    nfollowing = _count_following(whole, at) if nleft else 0
    if nfollowing:
        return Reading(bodies, at, 0, nleft, nfollowing)
    return Reading(bodies, at, nleft, 0, 0)


def _check_sum(number: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(_NUMBER.pack(number)))


def _record_at(view: memoryview, at: int, number: int | None) -> memoryview | None:
    """The body of a whole record at this place, which has this number; None: there is none.

    `number`: None if it may be any.
    """
    if view.nbytes - at < _HEADER.size:
        return None
    mark, nbytes, told, check_sum = _HEADER.unpack_from(view, at)
    body = view[at + _HEADER.size : at + _HEADER.size + nbytes]
    if mark != _MARK or body.nbytes != nbytes or number not in (None, told):
        return None
    return body if _check_sum(told, body) == check_sum else None


def _count_following(whole: bytes | memoryview, at: int) -> int:
    """Whole records behind one that is not."""
    text = bytes(whole[at:])
    view = memoryview(text)
    nfound = 0
    place = text.find(_MARK)
    while place >= 0:
        body = _record_at(view, place, None)
        nfound += body is not None
        place = text.find(_MARK, place + (1 if body is None else _HEADER.size + body.nbytes))
    return nfound
