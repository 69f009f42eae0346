"""Codec: what goes in comes out, typed; what doesn't belong is refused with its place."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.protocol.codec import Decoder, encode
from shoal.protocol.framing import ProtocolError


class Count(msgspec.Struct, array_like=True, tag=1):
    number: int
    words: list[str] = []


class Blob(msgspec.Struct, array_like=True, tag=2):
    content: bytes


class Stranger(msgspec.Struct, array_like=True, tag=9):
    number: int


DECODER = Decoder(Count | Blob)

MESSAGES = st.lists(
    st.one_of(
        st.builds(Count, st.integers(-(2**63), 2**63 - 1), st.lists(st.text(), max_size=3)),
        st.builds(Blob, st.binary(max_size=50)),
    )
)


@given(messages=MESSAGES)
def test_what_is_encoded_is_decoded_to_the_same(messages: list[msgspec.Struct]) -> None:
    body = encode(messages)
    assert DECODER.decode(body) == messages
    assert DECODER.decode(memoryview(body)) == messages


@given(body=st.binary(max_size=200))
def test_arbitrary_bytes_are_messages_or_a_protocol_error(body: bytes) -> None:
    try:
        messages = DECODER.decode(body)
    except ProtocolError:
        return
    assert all(isinstance(message, (Count, Blob)) for message in messages)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (encode([Count(1), Stranger(2)]), r"\$\[1\]"),  # an unknown tag, in the second message
        (msgspec.msgpack.encode([[1, "five"]]), r"Expected `int`, got `str`.*\$\[0\]\[1\]"),
        (msgspec.msgpack.encode([[1, 5, ["a", 7]]]), r"\$\[0\]\[2\]\[1\]"),
        (msgspec.msgpack.encode({"op": "x"}), "Expected `array`"),
        (b"", "truncated"),
        (encode([Count(1)])[:-1], "truncated"),
        (encode([Count(1)]) + b"\x00", "trailing"),
        (b"\x91" * 5000, r"\$\[0\]"),  # nested where no nesting belongs
        (b"\x91\x93\x01\x05\xdd\xff\xff\xff\xff", "truncated"),  # announces 4 G elements
        (b"\x91\x93\x01\x05\x91\xa1\xff", "UTF-8"),  # not UTF-8
    ],
)
def test_a_body_that_does_not_belong_is_refused_with_its_place(body: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        DECODER.decode(body)


def test_a_field_added_later_is_no_trouble_for_an_older_reader() -> None:
    """Fields are only ever added, with a default: each side ignores or fills what it must."""
    assert DECODER.decode(msgspec.msgpack.encode([[1, 5, ["a"], "new"]])) == [Count(5, ["a"])]
    assert DECODER.decode(msgspec.msgpack.encode([[1, 5]])) == [Count(5)]


class Box(msgspec.Struct, array_like=True, tag=1):
    anything: object


def test_a_body_nested_without_end_is_refused_like_any_other() -> None:
    with pytest.raises(ProtocolError, match="recursion"):
        Decoder(Box).decode(b"\x91\x92\x01" + b"\x91" * 100_000)
