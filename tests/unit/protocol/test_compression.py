"""Large buffers are made smaller where that pays, and are what they were afterwards."""

import mmap
import os
import random
import zlib

import pytest

from shoal.protocol.compression import (
    AS_IT_IS,
    NBYTES_MAX,
    NBYTES_MIN,
    Effort,
    accepted,
    compress,
    restore,
)
from shoal.protocol.framing import ProtocolError

REGULAR = b"".join(number.to_bytes(8, "little") for number in range(40_000))
RANDOM = random.Random(1).randbytes(len(REGULAR))
NAMES = ("zlib", "lz4", "zstd")
LIBRARIES = {"lz4": "lz4.block", "zstd": "zstandard"}


@pytest.fixture(params=NAMES)
def name(request):
    """A way that is installed."""
    if request.param in LIBRARIES:
        pytest.importorskip(LIBRARIES[request.param])
    return request.param


def test_what_is_regular_becomes_smaller_and_is_the_same_afterwards(name):
    (smaller,), marks = compress([REGULAR], [name], Effort())
    assert marks == [(name, len(REGULAR))]
    assert len(smaller) < 0.8 * len(REGULAR)
    (restored,) = restore([smaller], marks)
    assert bytes(restored) == REGULAR
    assert not memoryview(restored).readonly


def test_what_is_random_or_small_is_sent_as_it_is(name):
    small = bytes(NBYTES_MIN - 1)
    buffers, marks = compress([RANDOM, small, b""], [name], Effort())
    assert all(sent is given for sent, given in zip(buffers, (RANDOM, small, b""), strict=True))
    assert marks == [(AS_IT_IS, 0)] * 3
    assert restore(buffers, marks) == [RANDOM, small, b""]


def test_what_only_begins_regular_is_sent_as_it_is(name):
    """The samples are taken from everywhere; and the whole has the last word."""
    mixed = REGULAR[:60_000] + RANDOM
    (buffer,), marks = compress([mixed], [name], Effort())
    assert (buffer, marks) == (mixed, [(AS_IT_IS, 0)])


def test_memory_of_any_shape_is_taken(name):
    view = memoryview(REGULAR).cast("Q", [200, 200])
    (smaller,), marks = compress([view], [name], Effort())
    assert bytes(restore([smaller], marks)[0]) == REGULAR


@pytest.mark.parametrize("wrong", [-1, 1])
def test_what_has_another_length_than_it_says_is_refused(name, wrong):
    (smaller,), _ = compress([REGULAR], [name], Effort())
    with pytest.raises(ProtocolError, match=f"What was compressed by {name}"):
        restore([smaller], [(name, len(REGULAR) + wrong)])


def test_what_is_no_compressed_buffer_is_refused(name):
    with pytest.raises(ProtocolError, match=r"can't be read|another length"):
        restore([os.urandom(1000)], [(name, NBYTES_MIN)])


@pytest.mark.parametrize("marks", [[], [(AS_IT_IS, 0)] * 2])
def test_as_many_buffers_as_marks_must_come(marks):
    with pytest.raises(ProtocolError, match=f"1 buffers have come, and {len(marks)} marks"):
        restore([b"abc"], marks)


@pytest.mark.parametrize("nbytes", [-1, NBYTES_MIN - 1, NBYTES_MAX + 1, 10**15])
def test_no_memory_is_taken_for_what_nobody_compresses(name, nbytes):
    with pytest.raises(ProtocolError, match="is not compressed by anybody"):
        restore([zlib.compress(REGULAR)], [(name, nbytes)])


def test_no_more_is_compressed_than_lz4_takes(tmp_path):
    """Its LZ4_MAX_INPUT_SIZE, beyond which it fails."""
    with (tmp_path / "sparse").open("w+b") as file:
        file.truncate(NBYTES_MAX + 1)  # neither disk nor memory is taken for that
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as large:
            _, marks = compress([large], ["zlib"], Effort())
    assert marks == [(AS_IT_IS, 0)]
    assert NBYTES_MAX == 2_113_929_216


def test_a_small_buffer_that_would_become_huge_is_refused(name):
    """It is never more than was announced that is asked of the memory."""
    huge = bytes(50_000_000)
    (smaller,), _ = compress([huge], [name], Effort())
    with pytest.raises(ProtocolError):
        restore([smaller], [(name, NBYTES_MIN)])


def test_a_way_that_nobody_knows_is_refused():
    with pytest.raises(ProtocolError, match="What was compressed by rot13"):
        restore([b"abc"], [("rot13", NBYTES_MIN)])


def test_the_first_way_that_is_there_is_taken_and_without_one_nothing_is_done():
    _, marks = compress([REGULAR], ["rot13", "zlib"], Effort())
    assert marks == [("zlib", len(REGULAR))]
    buffers, marks = compress([REGULAR], ["rot13"], Effort())
    assert (buffers, marks) == ([REGULAR], [(AS_IT_IS, 0)])


def test_what_is_asked_for_goes_by_the_setting():
    assert accepted("zlib") == ["zlib"]
    assert "zlib" not in accepted("auto")


def test_zstd_tries_as_hard_as_it_is_told():
    pytest.importorskip("zstandard")
    text = "".join(str(number) for number in range(50_000)).encode()
    ((quick,), _), ((thorough,), _) = (
        compress([text], ["zstd"], Effort(level)) for level in (-7, 19)
    )
    assert len(thorough) < len(quick)
    assert len(zlib.compress(text)) < len(text)
