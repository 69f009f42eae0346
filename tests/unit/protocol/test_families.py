"""What a program teaches a process about its types holds wherever a value of them is pickled."""

import pickle
import re
import threading
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from shoal.protocol import payload
from shoal.protocol.families import registry
from shoal.protocol.families.errors import NamedByText, NoDeserializer, NotBytes
from shoal.protocol.families.pickling import dumps, dumps_by_value
from shoal.protocol.payload import dump, dump_call, dump_small, load, load_call
from shoal.protocol.teaching import context, has_better_way
from tests.programs import printed_by_script

LARGE = payload.OUT_OF_BAND_NBYTES_MIN


class Secret:
    """Can't be pickled."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lock = threading.Lock()


class Derived(Secret):
    """Of a taught class."""


class Holder:
    """Pickles as usual, and holds one that doesn't."""

    def __init__(self, held: object) -> None:
        self.held = held


def from_secret(value: Secret) -> tuple[dict[str, Any], list[Any]]:
    return {"kind": type(value).__name__}, [value.text.encode()]


def to_secret(header: dict[str, Any], frames: list[Any]) -> Secret:
    return Secret(bytes(frames[0]).decode())


@pytest.fixture
def taught() -> Iterator[None]:
    """Secrets have serializers meanwhile."""
    registry.register_serialization(Secret, from_secret, to_secret)
    yield
    for dispatch in (registry.dask_serialize, registry.dask_deserialize):
        for kind in (Secret, Derived):
            dispatch._lookup.pop(kind, None)


def sent(value: object) -> Any:
    """What comes out at the other end, in memory of its own."""
    header, buffers = dump(value)
    return load(header, [bytearray(memoryview(buffer)) for buffer in buffers])


def arguments_sent(value: object) -> Any:
    args, _ = load_call(dump_call((value,), {}))
    return args[0]


def small_sent(value: object) -> Any:
    stream = dump_small(value, 10_000)
    assert stream is not None
    return load(stream)


WAYS: list[Callable[[object], Any]] = [sent, arguments_sent, small_sent]


@pytest.mark.parametrize("way", WAYS, ids=["result", "argument", "small result"])
@pytest.mark.usefixtures("taught")
def test_a_taught_type_travels_by_its_serializer_alone_and_inside_others(
    way: Callable[[object], Any],
) -> None:
    assert way(Secret("alone")).text == "alone"
    assert way([1, {"a": Secret("in containers")}])[1]["a"].text == "in containers"
    assert way(Holder(Secret("in an object"))).held.text == "in an object"
    twice = Secret("twice")
    first, second = way([twice, twice])
    assert first is second
    assert way(Derived("a subclass")).text == "a subclass"


def test_a_type_that_nobody_taught_says_why_it_can_not_travel() -> None:
    with pytest.raises(TypeError, match="lock"):
        dump(Secret("x"))
    assert dump_small(Secret("x"), 10_000) is None


@pytest.mark.usefixtures("taught")
def test_large_frames_travel_beside_the_stream() -> None:
    header, buffers = dump([Secret("x" * LARGE)])
    assert len(header) < 1000
    assert [memoryview(buffer).nbytes for buffer in buffers] == [LARGE]


def test_what_a_serializer_raises_names_it() -> None:
    class Odd:
        pass

    def refuse(value: Odd) -> Any:
        raise ValueError("not today")

    registry.dask_serialize.register(Odd, refuse)
    with pytest.raises(ValueError, match="not today") as caught:
        dump(Odd())
    assert any("refuse" in note and "Odd" in note for note in caught.value.__notes__)


def test_what_a_deserializer_raises_names_it() -> None:
    class Odd:
        pass

    def refuse(header: Any, frames: Any) -> Any:
        raise ValueError("never seen such frames")

    registry.register_serialization(Odd, lambda value: ({}, []), refuse)
    header, buffers = dump(Odd())
    with pytest.raises(ValueError, match="never seen") as caught:
        load(header, buffers)
    assert any("refuse" in note for note in caught.value.__notes__)


def test_a_serializer_that_declines_leaves_its_value_to_pickle() -> None:
    class Plain:
        def __init__(self) -> None:
            self.n = 3

    def decline(value: Plain) -> Any:
        raise NotImplementedError

    registry.dask_serialize.register(Plain, decline)
    assert sent(Plain()).n == 3


def test_an_answer_that_is_no_header_with_frames_is_refused() -> None:
    class Odd:
        pass

    registry.dask_serialize.register(Odd, lambda value: b"bytes alone")
    with pytest.raises(NotBytes, match=re.escape("header, frames")):
        dump(Odd())


def test_without_any_deserializer_the_reader_is_told_what_to_do() -> None:
    class Odd:
        pass

    registry.dask_serialize.register(Odd, lambda value: ({}, []))
    header, buffers = dump(Odd())
    with pytest.raises(NoDeserializer, match="register_serialization"):
        load(header, buffers)


def test_a_process_that_was_taught_nothing_is_brought_the_deserializer(tmp_path: Path) -> None:
    """The class and both functions exist in the user's program only."""

    class Local:
        def __init__(self) -> None:
            self.lock = threading.Lock()

    def rebuild(header: dict[str, Any], frames: list[Any]) -> Any:
        return ("rebuilt", header["n"], bytes(frames[0]))

    registry.register_serialization(Local, lambda value: ({"n": 1}, [b"frame"]), rebuild)
    header, buffers = dump(Local())
    assert not buffers
    program = f"import pickle\nprint(pickle.loads({header!r}))\n"
    assert printed_by_script(program, tmp_path) == "('rebuilt', 1, b'frame')\n"


def test_types_are_not_registered_by_name() -> None:
    with pytest.raises(NamedByText, match="register_lazy"):
        registry.register_serialization("numpy.ndarray", from_secret, to_secret)
    with pytest.raises(NamedByText, match="register_lazy"):
        registry.register_serialization_lazy("numpy", from_secret)


def test_a_serializer_may_ask_who_sends_and_is_not_asked_before_that_is_known() -> None:
    class Asking:
        pass

    def tell(value: Asking, context: Any = None) -> Any:
        return {"context": context}, []

    registry.register_serialization(Asking, tell, lambda header, frames: header["context"])
    assert dump_small(Asking(), 1000) is None  # nobody wants it yet
    token = context.set({"sender": {"address": "here"}})
    try:
        assert sent(Asking()) == {"sender": {"address": "here"}}
    finally:
        context.reset(token)
    assert sent(Asking()) is None


def test_registering_for_object_leaves_classes_and_functions_alone() -> None:
    registry.dask_serialize.register(object, lambda value: ({}, []))
    try:
        assert sent([Holder, from_secret]) == [Holder, from_secret]
    finally:
        del registry.dask_serialize._lookup[object]
        registry.plain.discard(object)


def test_an_array_that_repeats_one_part_travels_as_that_part() -> None:
    ones = np.broadcast_to(1.0, (3000, 3000))
    assert has_better_way(ones)
    header, buffers = dump(ones)
    assert len(header) + sum(memoryview(buffer).nbytes for buffer in buffers) < 1000
    back = load(header, buffers)
    assert isinstance(back, np.ndarray)
    assert (back.shape, back.strides, back.flags.writeable) == ((3000, 3000), (0, 0), False)
    assert back[17, 4] == 1.0
    small = dump_small(ones, 1000)
    assert small is not None
    assert (load(small) == back).all()


def test_other_arrays_travel_as_numpy_has_it() -> None:
    assert not has_better_way(np.arange(3))
    assert dumps(np.arange(3), 5) == pickle.dumps(np.arange(3), 5)


def test_a_masked_array_travels_beside_the_stream() -> None:
    masked = np.ma.masked_array(np.arange(LARGE), mask=np.arange(LARGE) % 2 == 0)
    header, buffers = dump(masked)
    assert len(header) < 1000
    back = load(header, buffers)
    assert isinstance(back, np.ma.MaskedArray)
    assert back.sum() == masked.sum()
    back[0] = 7
    assert back[0] == 7


def test_views_of_memory_can_be_results() -> None:
    view = memoryview(bytearray(b"abcd" * LARGE)).cast("I")
    back = sent(view)
    assert isinstance(back, memoryview)
    assert (back.format, back.tolist() == view.tolist()) == ("I", True)
    assert sent([memoryview(b"abc")[::2]])[0].tobytes() == b"ac"
    with pytest.raises(TypeError, match="Python objects"):
        dump(memoryview(np.array(["text"], dtype=object)))


def test_parts_of_tables_travel_without_the_rest() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": np.arange(1_000_000)})
    header, buffers = dump(table.slice(10, 5))
    assert len(header) + sum(memoryview(buffer).nbytes for buffer in buffers) < 10_000
    assert load(header, buffers) == table.slice(10, 5)
    whole, beside = dump(table)
    assert len(beside) == 1
    assert np.shares_memory(np.frombuffer(beside[0], np.int64), table["a"].to_numpy())
    assert load(whole, beside) == table


def test_open_files_that_are_read_travel_as_where_they_are(tmp_path: Any) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["group/x"] = np.arange(4)
        with pytest.raises(TypeError, match="mode='r'"):
            dump(file["group/x"])
    with h5py.File(path, "r") as file:
        back = sent({"x": file["group/x"]})["x"]
        assert back[:].tolist() == [0, 1, 2, 3]
        back.file.close()


@pytest.mark.parametrize(
    "value",
    [b"ab", bytearray(b"ab"), array("d", [1.5]), array("I"), memoryview(b"abc"), memoryview(b"")],
    ids=["bytes", "bytearray", "doubles", "no integers", "view", "empty view"],
)
def test_memory_is_its_own_frame(value: Any) -> None:
    serialize = registry.dask_serialize.dispatch(type(value))
    deserialize = registry.dask_deserialize.dispatch(type(value))
    header, frames = serialize(value)
    cut = [piece for frame in frames for piece in (bytes(frame)[:1], bytes(frame)[1:], b"")]
    for pieces in (frames, cut):
        back = deserialize(header, pieces)
        assert type(back) is type(value)
        assert back == value


@pytest.mark.usefixtures("taught")
def test_by_value_the_same_holds() -> None:
    assert load(dumps_by_value([Secret("x"), lambda: 1], 5))[0].text == "x"  # type: ignore[index]


def test_sizes_that_a_program_registers_are_believed() -> None:
    from dask.sizeof import sizeof

    class Sized:
        pass

    sizeof.register(Sized, lambda value: 12_345)  # type: ignore[no-untyped-call]
    assert payload.nbytes_of(Sized()) == 12_345
    frame = pandas.DataFrame({"a": [1, 2]})
    usual = payload.nbytes_of(frame)
    sizeof.dispatch(pandas.DataFrame)  # type: ignore[no-untyped-call]  # which registers dask's
    dasks = sizeof._lookup[pandas.DataFrame]
    assert payload.nbytes_of(frame) == usual
    sizeof.register(pandas.DataFrame, lambda value: 54_321)  # type: ignore[no-untyped-call]
    try:
        assert payload.nbytes_of(frame) == 54_321
    finally:
        sizeof._lookup[pandas.DataFrame] = dasks


def test_types_that_were_looked_for_are_not_held_for_ever() -> None:
    def seen(n: int) -> type:
        kind = type(f"Made{n}", (), {})
        registry.serializer_of(kind())
        return kind

    first = seen(0)
    assert first in registry.plain
    for n in range(registry.TYPES_MAX):
        seen(n)
    assert first not in registry.plain
    assert len(registry.plain) <= registry.TYPES_MAX
