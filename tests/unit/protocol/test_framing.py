"""Framing: however the bytes are split, the same frames come out, within the limits."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.protocol.framing import (
    DIRECT_NBYTES,
    HEADER,
    SCRATCH_NBYTES,
    Frame,
    FrameLimits,
    FrameReader,
    FrameTooLarge,
    frame_head,
)

SIZES = st.one_of(
    st.integers(0, 40),
    st.sampled_from([DIRECT_NBYTES - 1, DIRECT_NBYTES, SCRATCH_NBYTES - 8, SCRATCH_NBYTES]),
    st.integers(0, 3 * SCRATCH_NBYTES),
)
SPLITS = st.lists(st.one_of(st.integers(1, 20), st.integers(1, 200_000)), min_size=1, max_size=20)


def content(nbytes: int, seed: int) -> bytes:
    """Bytes of which no two places look alike."""
    return (b"%d|" % seed + bytes(range(251)) * (nbytes // 251 + 1))[:nbytes]


def on_the_wire(body: bytes, buffers: list[bytes]) -> bytes:
    return frame_head(body, [len(buffer) for buffer in buffers]) + b"".join(buffers)


def read(reader: FrameReader, stream: bytes, splits: list[int]) -> list[Frame]:
    """Feed `stream` in pieces of the sizes in `splits`, again and again, as a socket would.

    After a thousand the pieces are as large as there is room for, so that it ends.
    """
    frames: list[Frame] = []
    at, turn = 0, 0
    while at < len(stream):
        room = reader.get_buffer()
        assert len(room) > 0
        piece = splits[turn % len(splits)] if turn < 1000 else len(stream)
        nbytes = min(len(room), piece, len(stream) - at)
        room[:nbytes] = stream[at : at + nbytes]
        frames += reader.buffer_updated(nbytes)
        at, turn = at + nbytes, turn + 1
    return frames


@settings(deadline=None)  # it moves up to megabytes
@given(
    shapes=st.lists(st.tuples(SIZES, st.lists(SIZES, max_size=4)), max_size=6),
    splits=SPLITS,
)
def test_any_split_of_the_stream_gives_the_same_frames(
    shapes: list[tuple[int, list[int]]], splits: list[int]
) -> None:
    """The sizes lie on both sides of every threshold, and the frames follow each other."""
    sent = [
        (content(nbody, i), [content(nbytes, 100 + j) for j, nbytes in enumerate(lengths)])
        for i, (nbody, lengths) in enumerate(shapes)
    ]
    stream = b"".join(on_the_wire(body, buffers) for body, buffers in sent)
    reader = FrameReader()
    frames = read(reader, stream, splits)
    assert [(bytes(body), [bytes(b) for b in buffers]) for body, buffers in frames] == sent
    assert reader.at_boundary


@given(cut=st.integers(1, 51))
def test_a_stream_that_ends_inside_a_frame_is_not_at_a_boundary(cut: int) -> None:
    stream = on_the_wire(b"x" * 20, [b"y" * 16])
    assert len(stream) == 52
    reader = FrameReader()
    read(reader, stream + stream[:cut], [7])
    assert not reader.at_boundary


def test_a_large_buffer_lands_in_the_one_piece_of_memory_that_was_allocated_for_it() -> None:
    allocated: list[bytearray] = []

    def allocate(nbytes: int) -> bytearray:
        allocated.append(bytearray(nbytes))
        return allocated[-1]

    large = content(5 * SCRATCH_NBYTES, 1)
    frames = read(FrameReader(allocate=allocate), on_the_wire(b"b", [large]), [50_000])
    assert [len(memory) for memory in allocated] == [len(large)]
    assert frames[0].buffers[0].obj is allocated[0]
    assert allocated[0] == large


def test_memory_that_is_larger_than_asked_for_is_cut_to_size() -> None:
    """An allocator may round up, to whole pages say."""
    reader = FrameReader(allocate=lambda nbytes: bytearray(nbytes + 4096))
    (frame,) = read(reader, on_the_wire(b"b", [b"z" * SCRATCH_NBYTES]), [SCRATCH_NBYTES])
    assert bytes(frame.buffers[0]) == b"z" * SCRATCH_NBYTES


def test_frames_stay_as_they_were_when_more_bytes_arrive() -> None:
    """The scratch is used again and again, so what is given out must not live there."""
    reader = FrameReader()
    (first,) = read(reader, on_the_wire(b"first", []), [64])
    read(reader, on_the_wire(b"other", []), [64])
    assert first.body == b"first"


def test_readers_that_share_a_scratch_do_not_mix_their_streams() -> None:
    """Bytes of both arrive in turn, cut at every place in a frame."""
    scratch = bytearray(SCRATCH_NBYTES)
    streams = [on_the_wire(content(30, i), [content(40, i)]) * 3 for i in range(2)]
    for piece_nbytes in range(1, 90):
        readers = [FrameReader(scratch=scratch) for _ in streams]
        frames: list[list[Frame]] = [[], []]
        for at in range(0, len(streams[0]), piece_nbytes):
            for i, stream in enumerate(streams):
                frames[i] += read(readers[i], stream[at : at + piece_nbytes], [piece_nbytes])
        for i in range(2):
            assert [bytes(frame.body) for frame in frames[i]] == [content(30, i)] * 3
            assert [bytes(frame.buffers[0]) for frame in frames[i]] == [content(40, i)] * 3


LIMITS = FrameLimits(body_bytes_max=1000, nbuffers_max=3, buffer_bytes_max=5000)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (HEADER.pack(1001, 0), "bytes of messages"),
        (HEADER.pack(0xFFFFFFFF, 0), "bytes of messages"),
        (HEADER.pack(1, 4), "buffers"),
        (HEADER.pack(1, 0xFFFFFFFF), "buffers"),
        (HEADER.pack(1, 1) + struct.pack("<Q", 5001), "bytes of buffers"),
        (HEADER.pack(1, 3) + struct.pack("<3Q", 2000, 2000, 2000), "bytes of buffers"),
        (HEADER.pack(1, 1) + struct.pack("<Q", 2**64 - 1), "bytes of buffers"),
    ],
)
def test_a_frame_beyond_the_limits_is_refused_before_memory_is_allocated(
    head: bytes, what: str
) -> None:
    asked: list[int] = []

    def allocate(nbytes: int) -> bytearray:
        asked.append(nbytes)
        return bytearray(nbytes)

    with pytest.raises(FrameTooLarge, match="limit") as caught:
        read(FrameReader(LIMITS, allocate), head, [100])
    assert caught.value.what == what
    assert asked == []


def test_a_frame_at_the_limits_is_accepted() -> None:
    stream = on_the_wire(b"x" * 1000, [b"1" * 2000, b"2" * 3000, b""])
    (frame,) = read(FrameReader(LIMITS), stream, [333])
    assert [len(buffer) for buffer in frame.buffers] == [2000, 3000, 0]
