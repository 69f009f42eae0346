"""`distributed.protocol` of old: headers, frames and messages as programs expect them."""

import asyncio
import importlib
import pickle
import struct
from array import array
from enum import Enum
from typing import Any

import numpy as np
import pytest
from dask.sizeof import sizeof

from shoal.compat import pickling
from shoal.compat.paths import PATHS
from shoal.compat.protocol_paths import PROTOCOL_PATHS
from shoal.compat.serialising import compressing, memory, messages, splitting, streams
from shoal.compat.serialising.errors import CannotSerialize
from shoal.compat.serialising.hosts import get_host_array
from shoal.compat.serialising.messages import dumps, loads, nested_deserialize
from shoal.compat.serialising.serialising import (
    check_dask_serializable,
    deserialize,
    register_generic,
    serialize,
)
from shoal.compat.serialising.sizes import safe_sizeof
from shoal.compat.serialising.wrappers import Pickled, Serialize, Serialized, ToPickle
from shoal.protocol.families import registry
from shoal.protocol.families.errors import FamilyNotAllowed


class Colour(Enum):
    RED = 1


class Stubborn:
    """Refuses to be pickled."""

    def __getstate__(self) -> Any:
        raise ValueError("never")


class Taught:
    """Refuses to be pickled, and has a serializer."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __getstate__(self) -> Any:
        raise ValueError("never")


registry.register_serialization(
    Taught,
    lambda value: ({"n": value.n}, []),
    lambda header, frames: Taught(header["n"]),
)


@pytest.mark.parametrize("module", sorted(PROTOCOL_PATHS))
def test_every_old_name_has_a_home(module: str) -> None:
    for name, home in PATHS[module].items():
        where, _, attribute = home.partition(":")
        found = importlib.import_module(where)
        assert not attribute or hasattr(found, attribute), (name, home)


@pytest.mark.parametrize(
    ("value", "family"),
    [
        (1, "pickle"),
        ("text", "pickle"),
        (b"bytes", "dask"),
        (bytearray(b"ab"), "dask"),
        (array("d", [1.5]), "dask"),
        (memoryview(b"abc"), "dask"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_header_says_which_family_it_was(value: Any, family: str) -> None:
    header, frames = serialize(value)
    assert header["serializer"] == family
    back = deserialize(header, frames)
    assert type(back) is type(value)
    assert back == value


def test_items_of_a_collection_go_by_their_own_families() -> None:
    for value in ([np.arange(3), "x"], (np.arange(3), "x"), {"a": np.arange(3), 2: "x"}):
        header, frames = serialize(value)
        assert header["is-collection"]
        assert header["type-serialized"] == type(value).__name__
        assert [part["serializer"] for part in header["sub-headers"]] == ["dask", "pickle"]
        back = deserialize(header, frames)
        assert type(back) is type(value)
        first, second = back.values() if isinstance(back, dict) else back
        assert first.tolist() == [0, 1, 2]
        assert second == "x"
    header, frames = serialize(tuple(range(1000)))
    assert len(frames) == 1


def test_what_can_not_be_serialised_says_so_where_it_arrives_or_at_once() -> None:
    header, frames = serialize(Stubborn())
    assert header == {"serializer": "error"}
    with pytest.raises(TypeError, match=r"(?s)object of type Stubborn.*never"):
        deserialize(header, frames)
    with pytest.raises(CannotSerialize, match="Stubborn") as caught:
        serialize(Stubborn(), on_error="raise")
    assert str(caught.value.__cause__) == "never"
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    with pytest.raises(ValueError, match="on_error"):
        serialize(Stubborn(), on_error="what")  # type: ignore[arg-type]


def test_a_reader_may_refuse_families() -> None:
    header, frames = serialize(1)
    with pytest.raises(FamilyNotAllowed, match="pickle"):
        deserialize(header, frames, deserializers=["msgpack"])
    header, frames = serialize([1, "a"], serializers=["msgpack"])
    assert deserialize(header, frames, deserializers=["msgpack"]) == [1, "a"]


def test_attributes_travel_each_by_its_family() -> None:
    class Parts:
        def __init__(self) -> None:
            self.array, self.text, self.list = np.arange(3), "x", [np.arange(2)]

    register_generic(Parts)
    header, frames = serialize(Parts())
    assert header["serializer"] == "dask"
    back = deserialize(header, frames)
    assert (back.array.tolist(), back.text, back.list[0].tolist()) == ([0, 1, 2], "x", [0, 1])


def test_a_taught_type_can_be_pickled_through_the_old_name() -> None:
    back = pickling.loads(pickling.dumps({"a": [Taught(3)]}))
    assert back["a"][0].n == 3
    with pytest.raises(ValueError, match="never"):
        pickling.dumps([Stubborn()])
    assert check_dask_serializable([Taught(1)])
    assert not check_dask_serializable([1, Taught(1)])


def test_a_text_that_only_mentions_main_is_pickled_once() -> None:
    text = "what `__main__` is"
    assert pickling.dumps(text) == pickle.dumps(text, pickle.HIGHEST_PROTOCOL)


@pytest.mark.parametrize("protocol", [4, 5])
def test_buffers_are_given_away_if_the_protocol_knows_them(protocol: int) -> None:
    buffers: list[Any] = []
    collect = {"buffer_callback": buffers.append} if protocol == 5 else {}
    stream = pickling.dumps(np.arange(3), protocol=protocol, **collect)
    assert len(buffers) == (protocol == 5)
    assert pickling.loads(stream, buffers=buffers).tolist() == [0, 1, 2]


def test_a_message_and_what_is_marked_in_it_come_back() -> None:
    marked = {"x": Serialize(np.arange(3)), "y": ToPickle(Colour), "z": Serialize(Taught(2))}
    message = {**marked, "e": Colour.RED, "s": {1, 2}, "plain": [1, b"2", None]}
    back = loads(dumps(message))
    assert back["x"].tolist() == [0, 1, 2]
    assert (back["y"], back["z"].n, back["e"], back["s"]) == (Colour, 2, Colour.RED, {1, 2})
    assert back["plain"] == (1, b"2", None)  # sequences are tuples


def test_who_passes_a_message_on_leaves_what_is_marked_alone() -> None:
    frames = dumps({"x": Serialize(b"0" * 100_000)}, context={"compression": "zlib"})
    assert sum(map(len, frames)) < 1000
    passed = loads(frames, deserialize=False)
    assert isinstance(passed["x"], Serialized)
    assert sum(map(len, passed["x"].frames)) < 1000
    assert loads(dumps(passed)) == {"x": b"0" * 100_000}
    assert nested_deserialize({"a": [ToPickle(1), Serialize(2)]}) == {"a": [1, 2]}
    assert nested_deserialize([Serialize(2)], emulate_deserialize=False) == [Serialize(2)]


def test_long_frames_are_cut_and_joined() -> None:
    data = bytes(range(256)) * 40
    frames = dumps({"x": Serialize(data)}, frame_split_size=3000)
    assert [len(frame) for frame in frames[2:]] == [3000, 3000, 3000, 1240]
    assert loads(frames) == {"x": data}
    assert loads([bytes(frame) for frame in frames]) == {"x": data}  # as they came by wire


@pytest.mark.parametrize("value", [1, "x" * 50_000, {"a": np.ones(100_000)}], ids=str)
def test_one_piece_of_bytes_holds_a_value(value: Any) -> None:
    for compression in ("auto", "zlib", False):
        whole = splitting.serialize_bytes(value, compression=compression)
        back = splitting.deserialize_bytes(whole)
        assert str(back) == str(value)


def test_messages_are_read_and_written_on_a_loop() -> None:
    async def there_and_back(message: Any) -> Any:
        return await streams.from_frames(await streams.to_frames(message))

    for size in (10, streams.OFFLOAD_THRESHOLD + 1):
        assert asyncio.run(there_and_back({"x": Serialize("x" * size)})) == {"x": "x" * size}


def test_deep_messages_are_refused_by_msgpack_and_not_by_their_measuring() -> None:
    deep: Any = {}
    for _ in range(2000):
        deep = {"children": deep}
    with pytest.raises(ValueError, match="recursion"):
        asyncio.run(streams.to_frames(deep))


def test_wrappers_compare_and_count_what_they_wrap() -> None:
    assert Serialize(1) == Serialize(1) != Serialize(2)
    assert hash(ToPickle("a")) == hash(ToPickle("a"))
    assert Serialized({}, [b"a"]) == Serialized({}, [b"a"]) != Pickled({}, [b"a"])
    assert sizeof(Serialize(b"0" * 10_000)) >= 10_000  # type: ignore[no-untyped-call]
    assert sizeof(Pickled({}, [b"0" * 10_000])) >= 10_000  # type: ignore[no-untyped-call]
    assert "123" in repr(Serialize(123))


def test_compression_is_used_where_it_pays() -> None:
    assert compressing.maybe_compress(b"0" * 100, compression="zlib") == (None, b"0" * 100)
    name, less = compressing.maybe_compress(b"0" * 100_000, compression="zlib")
    assert (name, len(less) < 1000) == ("zlib", True)
    assert compressing.decompress({"compression": ["zlib", None]}, [less, b"x"]) == [
        b"0" * 100_000,
        b"x",
    ]
    noise = np.random.default_rng(1).integers(0, 256, 100_000, dtype="u1").tobytes()
    assert compressing.maybe_compress(noise, compression="zlib") == (None, noise)


def test_frames_are_packed_and_unpacked() -> None:
    packed = memory.pack_frames([b"123", bytearray(b"asdf")])
    assert struct.unpack_from("3Q", packed) == (2, 3, 4)
    assert memory.unpack_frames(packed) == [b"123", b"asdf"]
    assert memory.unpack_frames(packed + b"x", remainder=True) == [b"123", b"asdf", b"x"]
    assert memory.unpack_frames(packed[:-1], partial=True) == ([b"123"], [4])
    with pytest.raises(AssertionError, match="cut off"):
        memory.unpack_frames(packed[:-1])


def test_neighbouring_views_become_one_without_a_copy() -> None:
    base = bytes(range(10))
    view = memoryview(base)
    whole = memory.merge_memoryviews([view[1:4], view[4:4], view[4:8]])
    assert whole.obj is base
    assert whole == base[1:8]
    with pytest.raises(ValueError, match="does not start where"):
        memory.merge_memoryviews([view[1:4], view[5:8]])
    with pytest.raises(ValueError, match="different buffer"):
        memory.merge_memoryviews([view, memoryview(bytes(3))])


def test_any_memory_is_seen_as_bytes() -> None:
    for value in (np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), b"ab"):
        view = memory.ensure_memoryview(value)
        assert (view.ndim, view.format, view.nbytes) == (1, "B", memory.nbytes(value))
    assert memory.ensure_memoryview(np.arange(6)[::2]).nbytes == 24
    assert memory.nbytes("abc") == 3
    joined = memory.host_array_from_buffers([b"abc", np.arange(2, dtype="u1")])
    assert bytes(joined) == b"abc\x00\x01"
    assert get_host_array(np.frombuffer(joined, "u1")[1:]) is joined.obj


def test_cutting_frames_needs_a_length() -> None:
    assert [bytes(part) for part in memory.frame_split_size(b"abcde", 2)] == [b"ab", b"cd", b"e"]
    with pytest.raises(ValueError, match="positive"):
        memory.frame_split_size(b"abc", 0)


def test_a_size_that_can_not_be_measured_is_assumed(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def __sizeof__(self) -> int:
            raise ValueError("no")

    assert safe_sizeof(Odd(), 5) == 5
    assert "Odd' failed. Defaulting to 5 B" in caplog.text


def test_what_msgpack_can_not_write_is_pickled_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "shoal.protocol.core")
    frames = dumps({"a": np.int64(1), "b": 2})
    assert loads(frames) == {"a": 1, "b": 2}
    assert "can not serialize 'numpy.int64'" in caplog.text
    assert messages.loads(dumps(3)) == 3
