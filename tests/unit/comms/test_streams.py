"""What is said on a stream arrives once and in order, wherever the connections beneath it break."""

import asyncio
import itertools
from typing import Any

import pytest

from shoal.comms.errors import CommClosedError, FrameTooLarge, ProtocolError
from shoal.comms.resuming import DialledStream
from shoal.comms.streams import Stream
from shoal.protocol.streams import BeginStream, ResumeStream
from tests.unit.comms.ends import Note, Parcel
from tests.unit.comms.lines import Conversation, Line, Owner
from tests.until import until

HOLDS = (float("inf"), float("inf"))


def stream_of(owner: Owner) -> Stream:
    assert owner.stream is not None
    return owner.stream


def answer(owner: Owner, message: Any) -> None:
    """Each frame is answered by one, small or with buffers."""
    stream = stream_of(owner)
    if isinstance(message, Parcel):
        stream.send_with_buffers(Parcel(10 * message.request), [b"answer", b""])
    elif message.number % 2:
        stream.send([Note(10 * message.number), Note(10 * message.number + 1)])


async def converse(talk: Conversation) -> None:
    """Once both know that it is a stream, the dialling side says four frames, one after another."""
    talk.begin()
    await until_begun(talk)
    talk.accepting.answer = answer
    stream, loop = stream_of(talk.dialling), asyncio.get_running_loop()
    loop.call_soon(stream.send, [Note(1)])
    loop.call_soon(loop.call_soon, stream.send, [Note(2), Note(3)])
    loop.call_soon(loop.call_soon, loop.call_soon, stream.send_with_buffers, Parcel(4), [b"four"])
    loop.call_soon(loop.call_soon, loop.call_soon, loop.call_soon, stream.send, [Note(5)])


async def begun(**options: float) -> Conversation:
    """One whose sides know that it is a stream, and have spoken; `options`: of a Conversation."""
    talk = Conversation(**options)
    talk.begin()
    await until_begun(talk)
    return talk


async def until_begun(talk: Conversation) -> None:
    """Both sides know that it is a stream, and have spoken."""
    stream_of(talk.dialling).send([Note(0)])
    await talk.accepting.until(lambda owner: owner.messages == [Note(0)])
    stream_of(talk.accepting).send([Note(0)])
    await talk.dialling.until(lambda owner: owner.messages == [Note(0)])


SAID = [Note(0), Note(1), Note(2), Note(3), Parcel(4), Note(5)]
ANSWERED = [Note(0), Note(10), Note(11), Note(30), Note(31), Parcel(40), Note(50), Note(51)]
NFRAMES = 6
"""Of each side, BeginStream and StreamBegun included."""


async def arrives_whole(*breaks: tuple[float, float]) -> Conversation:
    """With lines that break so, both sides have heard all of it once."""
    talk = Conversation(*breaks)
    await converse(talk)
    await talk.dialling.until(lambda owner: len(owner.messages) >= len(ANSWERED))
    assert talk.accepting.messages == SAID, breaks
    assert talk.accepting.buffers == [b"four"], breaks
    assert talk.dialling.messages == ANSWERED, breaks
    assert talk.dialling.buffers == [b"answer", b""], breaks
    talk.lines[-1].hold()  # or the good-bye would be lost, and waited for
    stream_of(talk.dialling).close()
    await talk.accepting.until(lambda owner: bool(owner.reasons))
    await talk.dialling.until(lambda owner: bool(owner.reasons))
    assert talk.dialling.reasons == talk.accepting.reasons == [None], breaks
    assert len(talk.streams) == 0
    return talk


def test_nothing_is_lost_or_doubled_wherever_a_connection_breaks() -> None:
    """After each number of frames in one direction, for each in the other."""

    async def main() -> None:
        points = itertools.product(range(2, NFRAMES + 1), repeat=2)
        talks = await asyncio.gather(*(arrives_whole(point) for point in points))
        assert sum(len(talk.lines) > 1 for talk in talks) > 15

    asyncio.run(main())


def test_nothing_is_lost_or_doubled_if_the_next_connection_breaks_as_well() -> None:
    """Wherever that is: before it is let in, as the stream is resumed, or in what follows."""

    async def main() -> None:
        points = itertools.product(range(2, NFRAMES), repeat=2)
        again = [*itertools.product(range(5), repeat=2)]
        talks = await asyncio.gather(
            *(arrives_whole(*pair) for pair in itertools.product(points, again))
        )
        assert max(len(talk.lines) for talk in talks) == 3

    asyncio.run(main())


def test_the_owner_hears_of_a_break_and_of_its_end_and_of_nothing_else() -> None:
    async def main() -> None:
        talk = await arrives_whole((3, 3))
        for owner in (talk.dialling, talk.accepting):
            assert (owner.nbroken, owner.nresumed) == (1, 1)

    asyncio.run(main())


def test_what_is_said_during_a_break_is_heard_after_it() -> None:
    async def main() -> None:
        talk = await begun()
        talk.is_reachable = False
        talk.lines[0].cut()
        await talk.accepting.until(lambda owner: owner.nbroken == 1)
        stream_of(talk.accepting).send([Note(1)])
        stream_of(talk.dialling).send([Note(2)])
        assert stream_of(talk.accepting).unsent_nbytes > 0
        assert not stream_of(talk.accepting).closed
        talk.is_reachable = True
        await talk.dialling.until(lambda owner: owner.messages == [Note(0), Note(1)])
        await talk.accepting.until(lambda owner: owner.messages == [Note(0), Note(2)])

    asyncio.run(main())


def test_a_side_that_comes_back_before_the_other_has_noticed_the_break_is_let_in() -> None:
    """One half of the connection is open, and says nothing any more."""

    async def main() -> None:
        talk = await begun()
        talk.lines[0].dialled.end(CommClosedError.lost("there", "only this end was reset"))
        await talk.dialling.until(lambda owner: owner.nresumed == 1)
        assert talk.accepting.nbroken == 0
        stream_of(talk.accepting).send([Note(1)])
        stream_of(talk.dialling).send([Note(2)])
        await talk.dialling.until(lambda owner: owner.messages == [Note(0), Note(1)])
        await talk.accepting.until(lambda owner: owner.messages == [Note(0), Note(2)])
        await talk.lines[0].accepted.wait_closed()

    asyncio.run(main())


def test_a_break_that_lasts_longer_than_the_window_is_the_end_and_says_so() -> None:
    async def main() -> None:
        talk = await begun(allowed_seconds=0.05)
        talk.is_reachable = False
        talk.lines[0].cut()
        for owner in (talk.dialling, talk.accepting):
            await owner.until(lambda owner: bool(owner.reasons))
            assert isinstance(owner.reasons[0], CommClosedError)
            assert "did not come back within 0.05 s" in str(owner.reasons[0])
            with pytest.raises(CommClosedError):
                stream_of(owner).send([Note(1)])
        assert len(talk.streams) == 0

    asyncio.run(main())


def test_whoever_knows_that_nobody_will_come_back_may_end_a_break() -> None:
    async def main() -> None:
        talk = await begun()
        talk.is_reachable = False
        talk.lines[0].cut()
        await talk.accepting.until(lambda owner: owner.nbroken == 1)
        stream_of(talk.accepting).give_up()
        await talk.accepting.until(lambda owner: bool(owner.reasons))
        assert "the line was cut" in str(talk.accepting.reasons[0])
        talk.is_reachable = True  # and whoever comes back is told that it is over
        await talk.dialling.until(lambda owner: bool(owner.reasons))
        assert talk.dialling.nresumed == 0

    asyncio.run(main())


def test_an_end_that_is_meant_is_no_break() -> None:
    async def main() -> None:
        for closes in ("dialling", "accepting"):
            talk = await begun()
            stream_of(getattr(talk, closes)).close()
            for owner in (talk.dialling, talk.accepting):
                await owner.until(lambda owner: bool(owner.reasons))
                assert owner.reasons == [None]
                assert owner.nbroken == 0
            assert len(talk.lines) == 1

    asyncio.run(main())


def test_an_owner_may_end_it_during_a_break() -> None:
    async def main() -> None:
        talk = await begun()
        talk.is_reachable = False
        talk.lines[0].cut()
        for owner in (talk.dialling, talk.accepting):
            await owner.until(lambda owner: owner.nbroken == 1)
            stream_of(owner).close()
            stream_of(owner).abort()
            await stream_of(owner).wait_closed()
            assert owner.reasons == [None]
        assert len(talk.streams) == 0

    asyncio.run(main())


def test_before_the_other_side_has_agreed_a_break_is_the_end() -> None:
    async def main() -> None:
        talk = Conversation((1, 0))
        talk.begin()
        await talk.dialling.until(lambda owner: bool(owner.reasons))
        assert talk.dialling.nbroken == 0
        assert len(talk.lines) == 1
        stream_of(talk.accepting).abort()
        await stream_of(talk.accepting).wait_closed()

    asyncio.run(main())


def test_a_side_without_patience_keeps_its_plain_connection() -> None:
    async def main() -> None:
        talk = Conversation(allowed_seconds=0.0)
        talk.begin()
        stream = stream_of(talk.dialling)
        stream.send([Note(1)])
        await talk.accepting.until(lambda owner: owner.messages == [Note(1)])
        assert talk.plain is not None
        assert talk.accepting.stream is None
        stream.tell_received()
        stream.send_with_buffers(Parcel(2), [b"x"])
        stream.close()  # and says nothing that only streams understand
        await talk.accepting.until(lambda owner: bool(owner.reasons))
        assert talk.accepting.messages == [Note(1), Parcel(2)]
        assert len(talk.streams) == 0

    asyncio.run(main())


def test_the_shorter_patience_counts() -> None:
    async def main() -> None:
        for asked, allowed in ((1.0, 3.0), (3.0, 1.0)):
            talk = await begun(window_seconds=asked, allowed_seconds=allowed)
            assert stream_of(talk.dialling).window_seconds == 1.0
            assert stream_of(talk.accepting).window_seconds == 1.0

    asyncio.run(main())


def test_who_says_nothing_though_it_is_asked_is_dialled_anew() -> None:
    """The line is as good as ever, by all that the system knows."""

    async def main() -> None:
        talk = await begun()
        stream, line = stream_of(talk.dialling), talk.lines[0]
        assert isinstance(stream, DialledStream)
        for now in (0.0, 6.0, 12.0):  # it answers each time
            before = line.dialled.received_nbytes
            stream.make_sure(now)
            await until(lambda before=before: line.dialled.received_nbytes > before)
        stream.make_sure(16.0)  # not yet again
        line.dialled.is_deaf = True
        stream.make_sure(18.0)
        stream.make_sure(22.0)
        assert not line.dialled.closed
        stream.make_sure(24.0)
        await talk.dialling.until(lambda owner: owner.nresumed == 1)
        stream_of(talk.accepting).send([Note(1)])
        await talk.dialling.until(lambda owner: owner.messages == [Note(0), Note(1)])
        assert len(talk.lines) == 2
        assert talk.dialling.nbroken == 1

    asyncio.run(main())


def test_what_has_arrived_is_kept_no_more() -> None:
    """Neither of many small frames nor of a quiet conversation with signs of life."""

    async def main() -> None:
        talk = await begun()
        stream = stream_of(talk.dialling)
        for number in range(1000):
            stream.send([Note(number)])
        await talk.accepting.until(lambda owner: len(owner.messages) == 1001)
        stream_of(talk.accepting).send([Note(1)])
        await talk.dialling.until(lambda owner: owner.messages == [Note(0), Note(1)])
        assert len(stream._sent) <= 256
        assert len(stream_of(talk.accepting)._sent) == 2
        stream.tell_received()
        stream.send([Note(1000)])
        await talk.accepting.until(lambda owner: len(owner.messages) == 1002)
        assert len(stream_of(talk.accepting)._sent) == 0

    asyncio.run(main())


def test_what_a_line_can_not_carry_is_refused_and_not_kept() -> None:
    """Also during a break, since it could not be sent after it."""

    async def main() -> None:
        talk = await begun()
        stream = stream_of(talk.dialling)
        for is_broken in (False, True):
            if is_broken:
                talk.is_reachable = False
                talk.lines[0].cut()
                await talk.dialling.until(lambda owner: owner.nbroken == 1)
            for number in range(3):
                with pytest.raises(FrameTooLarge):
                    stream.send([Note(number, "x" * 1000)])
                with pytest.raises(FrameTooLarge):
                    stream.send_with_buffers(Parcel(number), [b"x" * 1001])
        talk.is_reachable = True
        stream.send([Note(1)])
        await talk.accepting.until(lambda owner: owner.messages == [Note(0), Note(1)])

    asyncio.run(main())


def test_an_owner_that_fails_ends_it_for_good() -> None:
    async def main() -> None:
        talk = await begun()

        def fail(owner: Owner, message: Any) -> None:
            raise CommClosedError.already("elsewhere")

        talk.accepting.answer = fail
        with pytest.raises(CommClosedError):
            stream_of(talk.accepting)._receive([Note(1)], [])
        talk.lines[0].cut()
        await talk.accepting.until(lambda owner: bool(owner.reasons))
        assert talk.accepting.nbroken == 0

    asyncio.run(main())


def test_a_name_is_begun_once_and_resumed_by_nobody_of_another_role() -> None:
    async def main() -> None:
        talk = await begun()
        (name,) = talk.streams._stream_by_name
        with pytest.raises(ProtocolError, match="already"):
            talk.streams.begin(Line(HOLDS).accepted, BeginStream(name, 1.0))
        stranger = Line(HOLDS, role="worker").accepted
        assert not talk.streams.resume(stranger, ResumeStream(name, 1))
        await stranger.wait_closed()
        assert len(talk.streams) == 1

    asyncio.run(main())


def test_whoever_has_heard_what_nobody_said_is_not_resumed() -> None:
    async def main() -> None:
        talk = await begun()
        (name,) = talk.streams._stream_by_name
        assert not talk.streams.resume(Line(HOLDS).accepted, ResumeStream(name, 17))
        await talk.accepting.until(lambda owner: bool(owner.reasons))

    asyncio.run(main())


def test_a_stream_is_drained_once_it_is_carried_again() -> None:
    async def main() -> None:
        talk = await begun()
        talk.is_reachable = False
        talk.lines[0].cut()
        await talk.dialling.until(lambda owner: owner.nbroken == 1)
        drained = asyncio.ensure_future(stream_of(talk.dialling).drain())
        talk.is_reachable = True
        await talk.dialling.until(lambda owner: owner.nresumed == 1)
        await drained

    asyncio.run(main())
