"""What was sent is kept until it has arrived, within bounds."""

import pytest

from shoal.comms.unacknowledged import ASK_BYTES, FRAME_BYTES, KeptFrame, Unacknowledged
from shoal.protocol.framing import ProtocolError


def frame(nmessages: int = 1, nbytes: int = 10) -> KeptFrame:
    return (nmessages, nbytes, b"x", None, ())


def test_what_lacks_is_what_was_sent_after_what_has_arrived() -> None:
    sent = Unacknowledged()
    frames = [frame(1), frame(2), frame(3)]
    for each in frames:
        sent.keep(each)
    assert sent.nsent == 6
    assert sent.lacking(1) == frames[1:]
    assert sent.lacking(3) == frames[2:]
    assert sent.lacking(6) == []
    assert sent.nbytes == 0


def test_less_than_had_arrived_before_or_more_than_was_sent_is_impossible() -> None:
    sent = Unacknowledged()
    sent.keep(frame(2))
    for nreceived in (-1, 3):
        assert sent.lacking(nreceived) is None
        with pytest.raises(ProtocolError, match="said to have arrived"):
            sent.acknowledge(nreceived)
    sent.acknowledge(2)
    assert sent.lacking(0) is None


def test_a_frame_does_not_arrive_in_part() -> None:
    sent = Unacknowledged()
    sent.keep(frame(2))
    assert sent.lacking(1) is None


def test_more_than_the_bound_is_not_kept_and_can_not_be_completed_until_it_has_arrived() -> None:
    sent = Unacknowledged(bytes_max=25)
    for _ in range(2):
        sent.keep(frame())
    assert sent.is_complete
    sent.keep(frame())
    assert not sent.is_complete
    assert sent.nbytes == 0
    sent.keep(frame())
    sent.acknowledge(2)
    assert not sent.is_complete
    assert sent.lacking(2) is None
    sent.acknowledge(3)
    assert sent.is_complete
    assert sent.lacking(3) == [frame()]


def test_the_other_side_is_asked_after_many_frames_and_after_large_ones() -> None:
    sent = Unacknowledged()
    nsmall = -(-ASK_BYTES // (FRAME_BYTES + 10))
    asked = [sent.keep(frame()) for _ in range(2 * nsmall)]
    assert [number + 1 for number, is_due in enumerate(asked) if is_due] == [nsmall, 2 * nsmall]
    assert nsmall <= 256
    assert sent.keep(frame(nbytes=ASK_BYTES))


def test_nothing_is_kept_for_nobody() -> None:
    sent = Unacknowledged()
    sent.keep(frame())
    sent.stop()
    assert not any(sent.keep(frame(nbytes=ASK_BYTES)) for _ in range(3))
    assert sent.nbytes == len(sent) == 0
