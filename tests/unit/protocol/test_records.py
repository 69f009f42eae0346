"""A file of records says what was written, whatever a crash or a bad disk has made of it."""

from shoal.protocol.records import FORMAT, MAGIC, format_of, read_records, to_record

BODIES = [b"one", b"", b"three" * 100, b"\xa7rec\xa7rec"]


def a_file(bodies=BODIES) -> bytes:
    return MAGIC + b"".join(to_record(number, body) for number, body in enumerate(bodies))


def test_what_was_written_is_read() -> None:
    whole = a_file()
    assert read_records(whole) == (BODIES, len(whole), 0, 0, 0)


def test_a_file_without_records_says_nothing() -> None:
    assert read_records(MAGIC) == ([], len(MAGIC), 0, 0, 0)


def test_a_file_that_ends_anywhere_says_what_was_whole_and_how_much_is_torn() -> None:
    for end in range(len(MAGIC), len(a_file()) + 1):
        reading = read_records(a_file()[:end])
        assert reading.bodies == BODIES[: len(reading.bodies)]
        assert reading.nbytes + reading.ntorn == end
        assert reading.nbytes == len(a_file(BODIES[: len(reading.bodies)]))
        assert (reading.nlost, reading.nrecords_lost) == (0, 0)


def test_zeros_or_noise_behind_the_last_record_are_torn() -> None:
    for noise in (b"\0", b"\xa7", b"\xa7rec", b"r"):
        for ntimes in (1, 3, 20, 4096):
            tail = noise * ntimes
            reading = read_records(a_file() + tail)
            assert (reading.bodies, reading.ntorn, reading.nlost) == (BODIES, len(tail), 0)


def test_a_byte_that_changed_ends_what_is_read_and_nothing_wrong_is_said() -> None:
    for place in range(len(MAGIC), len(a_file())):
        for change in (1, 0x80, 0xFF):
            whole = bytearray(a_file())
            whole[place] ^= change
            reading = read_records(bytes(whole))
            nwhole = len(reading.bodies)
            assert reading.bodies == BODIES[:nwhole]
            assert nwhole < len(BODIES)
            nfollowing = len(BODIES) - nwhole - 1
            assert reading.nrecords_lost == nfollowing
            assert (reading.nlost > 0) == (nfollowing > 0)
            assert (reading.ntorn > 0) == (nfollowing == 0)
            assert reading.nbytes + reading.nlost + reading.ntorn == len(whole)


def test_a_record_that_is_missing_is_damage() -> None:
    whole = MAGIC + to_record(0, b"one") + to_record(2, b"three")
    reading = read_records(whole)
    assert (reading.bodies, reading.nrecords_lost) == ([b"one"], 1)


def test_a_file_tells_of_which_format_it_is() -> None:
    assert format_of(MAGIC) == FORMAT
    assert format_of(MAGIC.replace(b"   1", b"  17") + b"more") == 17
    assert format_of(MAGIC[:-2]) is None
    assert format_of(b"PK\x03\x04 something else entirely") is None
    assert format_of(b"") is None
